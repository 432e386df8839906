"""`nmt plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.options import (
    BeamSize,
    Device,
    Model,
    Quiet,
    Threads,
    build_translator,
    load_models,
    need_attention,
    set_up,
)
from nmt.errors import DataError, UsageError

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.cli.exploring import Request
    from nmt.decoding.translator import Translator

_PAGE = "Page"
"""Panel of the options that are for .html."""


def plot(
    model: Model,
    sentences: Annotated[
        list[str] | None,
        typer.Argument(metavar="SENTENCE", help="The sentence to translate; several for a page.", show_default=False),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A picture, .png, .pdf or .svg, or a page to explore, .html."
        ),
    ] = Path("alignment.png"),
    source: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", metavar="FILE", help="The sentences, one a line; - is stdin.", show_default=False
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Show how the model would read the source for this translation.", show_default=False
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            "-r",
            metavar="FILE",
            help="Known translations, line by line: the page shows them and BLEU.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Show how the model would read the source for the references.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Links between sources and references that people made (i-j sure, ipj possible), to show over the "
            "attention; the references are forced.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="A second model beside the first.", show_default=False, rich_help_panel=_PAGE
        ),
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, metavar="N", help="Draw the N best translations side by side.")] = 1,
    beam_size: BeamSize = None,
    style: Annotated[
        Literal["color", "grey"], typer.Option(help="Blue on white, or white on black as in the paper.")
    ] = "color",
    dpi: Annotated[float, typer.Option(help="Dots an inch of a PNG.")] = 150,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Draw which source words each word of the translation was aligned to.

    A picture shows one sentence. A page (.html) shows up to 500, with ribbons and matrices to point at, between words or
    subwords, sorted by BLEU, length, entropy or alignment error rate; it is one file, which works without any network.

    [bold]Examples[/bold]

      nmt plot runs/bahdanau "A man is riding a horse." -o align.png

      nmt plot runs/bahdanau "A man is riding a horse." --target "Ein Mann reitet auf einem Pferd." -o align.svg

      head -200 test.en | nmt plot runs/bahdanau -i - -o page.html

      nmt plot runs/bahdanau -i gold.en -r gold.fr --gold gold.align --compare runs/luong -o page.html
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.cli.exploring import check_count, read_request, write_page
    from nmt.plotting.explorer import is_page

    page = is_page(output)
    folders = [model] if compare is None else [model, compare]
    _check_output(output, page=page, n_best=n_best, models=len(folders))
    request = read_request(sentences or [], source, target=target, reference=reference, gold=gold, force=force)
    check_count(request, page=page)
    readers = _readers(folders, device, beam_size=beam_size, n_best=n_best)
    if page:
        write_page(output, request, readers, quiet=quiet)
    else:
        _, bundle, translator = readers[0]
        _draw_picture(output, request, bundle, translator, style=style, dpi=dpi, quiet=quiet)
    typer.echo(output)


def _check_output(output: Path, *, page: bool, n_best: int, models: int) -> None:
    """What cannot be is said before any work is done. Raises UsageError."""
    from nmt.plotting.style import file_format

    if page and n_best > 1:
        raise UsageError("--n-best is for pictures: a page shows the best translation of each sentence.")
    if not page:
        file_format(output)
        if models > 1:
            raise UsageError(f"--compare is for pages: write to a name that ends with .html, not to '{output}'.")


def _readers(
    folders: Sequence[Path], device: str, *, beam_size: int | None, n_best: int
) -> list[tuple[str, Bundle, Translator]]:
    """The models with their names and translators; names are those of the folders, or whole paths if these are equal."""
    bundles = load_models(folders, device)
    for bundle, folder in zip(bundles, folders, strict=True):
        need_attention(bundle, folder)
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    decoding = {"beam_size": beam_size}
    translators = [build_translator([bundle], decoding=decoding, n_best=n_best) for bundle in bundles]
    return list(zip(names, bundles, translators, strict=True))


def _draw_picture(
    output: Path,
    request: Request,
    bundle: Bundle,
    translator: Translator,
    *,
    style: Literal["color", "grey"],
    dpi: float,
    quiet: bool,
) -> None:
    """Draw the one sentence, a panel for each hypothesis."""
    from nmt.aligning import word_alignment
    from nmt.cli.exploring import read
    from nmt.plotting.heatmap import plot_alignment

    found = next(read(request, translator))
    if not found.source_ids:
        raise DataError("The sentence to plot is empty.")
    panels = [word_alignment(found, bundle, rank) for rank in range(len(found.hypotheses))]
    titles = [f"{rank}: {hypothesis.score:.2f}" for rank, hypothesis in enumerate(found.hypotheses, start=1)]
    golds = None if request.gold is None else request.gold * len(panels)
    plot_alignment(panels, output, title=titles if len(panels) > 1 else None, gold=golds, style=style, dpi=dpi)
    if not quiet:
        for panel in panels:
            typer.echo(" ".join(panel.target), err=True)
