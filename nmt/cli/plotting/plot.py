"""`nmt plot`: the command and its options."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    from nmt.cli.plotting.request import Request
    from nmt.decoding.translator import Translator
    from nmt.model_folder import Bundle

_PICTURE, _PAGE = "Picture", "Page"
"""Help panels of the options for pictures (.png, .pdf, .svg) and for pages (.html)."""


def plot(
    model: Model,
    sentences: Annotated[
        list[str] | None,
        typer.Argument(metavar="SENTENCE", help="Sentence to translate; or use --input.", show_default=False),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Picture (.png, .pdf, .svg) or page (.html)."),
    ] = Path("alignment.png"),
    source: Annotated[
        Path | None,
        typer.Option("--input", "-i", metavar="FILE", help="Sentences, one per line; - is stdin.", show_default="none"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Align this translation of SENTENCE.", show_default="the model's"),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference", "-r", metavar="FILE", help="Reference translations, for BLEU.", show_default="none"
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Align the references instead of the model's translations.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Gold links (Pharaoh or NAACL), for the AER. Implies --force.", show_default="none"
        ),
    ] = None,
    posterior: Annotated[
        bool,
        typer.Option("--posterior", help="Show the posterior alignment given the target words, not the attention."),
    ] = False,
    beam_size: BeamSize = None,
    n_best: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Draw the N best translations side by side.", rich_help_panel=_PICTURE),
    ] = 1,
    rank: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="Draw the K-th best translation alone.",
            show_default="the best",
            rich_help_panel=_PICTURE,
        ),
    ] = None,
    subwords: Annotated[
        bool, typer.Option("--subwords", help="Show subword tokens instead of words.", rich_help_panel=_PICTURE)
    ] = False,
    style: Annotated[
        Literal["color", "grey"],
        typer.Option(
            metavar="NAME",
            help="color, or grey as in the papers.",
            rich_help_panel=_PICTURE,
        ),
    ] = "color",
    font: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Font of the words (.ttf, .otf, .ttc).",
            show_default="DejaVu Sans",
            rich_help_panel=_PICTURE,
        ),
    ] = None,
    dpi: Annotated[float, typer.Option(metavar="N", help="Dots per inch of a PNG.", rich_help_panel=_PICTURE)] = 150,
    compare: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="A second model beside the first.", show_default="none", rich_help_panel=_PAGE
        ),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Draw the alignment of sentences and their translations.

    Examples:
      nmt plot runs/bahdanau "A man is riding a horse." -o align.png
      nmt plot runs/bahdanau -i test.en -r test.de -o page.html

    Details:

    Rows are target words, columns source words, colours attention weights from 0 to 1. Several sentences become panels of a
    .png or .svg (25 at most), pages of a .pdf, or an .html page to explore in a browser without network.

    The model translates, unless --target, or --reference with --force, gives the translations. Gold links are orange
    squares, dashed where only possible; diamonds mark the centres of local attention.

    Scripts such as Chinese and Japanese need an installed font or --font.
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.cli.plotting.page import write_page
    from nmt.cli.plotting.picture import PictureOptions, write_picture
    from nmt.cli.plotting.request import read_request
    from nmt.plotting.explorer import is_page

    page = is_page(output)
    folders = [model] if compare is None else [model, compare]
    for_pictures = {"--n-best": n_best > 1, "--rank": rank, "--subwords": subwords, "--font": font}
    _check_output(output, models=len(folders), for_pictures=[name for name, value in for_pictures.items() if value])
    ranks = range(n_best) if rank is None else range(rank - 1, rank)
    request = read_request(
        sentences or [], source, target=target, reference=reference, gold=gold, force=force, posterior=posterior
    )
    _check_ranks(n_best, rank, forced=request.forced)
    _check_count(request, output, panels=len(ranks))
    # The centres of a window need the whole sentence, so a picture does not split long ones.
    longest = {} if page else {"max_source": sys.maxsize}
    readers = _readers(folders, device, beam_size=beam_size, n_best=ranks.stop, posterior=posterior, **longest)
    if page:
        write_page(output, request, readers, quiet=quiet)
    else:
        _, bundle, translator = readers[0]
        options = PictureOptions(ranks, subwords=subwords, style=style, font=font, dpi=dpi)
        write_picture(output, request, bundle, translator, options, quiet=quiet)
    typer.echo(output)


def _check_output(output: Path, *, models: int, for_pictures: Sequence[str]) -> None:
    """Check the options before any work is done. Raises UsageError."""
    from nmt.plotting.explorer import is_page
    from nmt.plotting.style import file_format

    if is_page(output) and for_pictures:
        shows = "a page shows the best translation of each sentence, its words and its subwords"
        raise UsageError(f"{for_pictures[0]} is for pictures: {shows}.")
    if not is_page(output):
        file_format(output)
        if models > 1:
            raise UsageError(f"--compare is for pages: write to a name that ends with .html, not to '{output}'.")


def _check_ranks(n_best: int, rank: int | None, *, forced: bool) -> None:
    """Raise UsageError if --n-best and --rank contradict each other or given translations."""
    if n_best > 1 and rank is not None:
        raise UsageError(
            "Give --n-best for the best translations side by side, or --rank for one of them, and not both."
        )
    if forced and (n_best > 1 or rank is not None):
        option = "--rank" if rank is not None else "--n-best"
        raise UsageError(f"{option} chooses from what the model finds, but the translations are given.")


def _check_count(request: Request, output: Path, *, panels: int) -> None:
    """Raise DataError if there are no sentences or too many; `panels` is the number of matrices per sentence."""
    from nmt.cli.plotting.picture import MOST_PANELS
    from nmt.plotting.explorer import MOST_SENTENCES, is_page

    count = len(request.sources)
    if not count:
        raise DataError("There is no sentence to plot: the input is empty.")
    whole = is_page(output) or output.suffix.lower() == ".pdf"
    if whole and count > MOST_SENTENCES:
        holds = f"{'A page' if is_page(output) else 'A PDF'} holds at most {MOST_SENTENCES} sentences"
        raise DataError(f"{holds}, but there are {count:,}: choose some, for instance with `head`.")
    if not is_page(output) and (matrices := panels if whole else count * panels) > MOST_PANELS:
        remedy = "choose fewer" if count == 1 or whole else "write a .pdf, a page for each sentence, or a page.html"
        raise DataError(f"A figure holds at most {MOST_PANELS} matrices, but there would be {matrices:,}: {remedy}.")


def _readers(
    folders: Sequence[Path], device: str, *, beam_size: int | None, **options: Any
) -> list[tuple[str, Bundle, Translator]]:
    """Load the models; returns (name, bundle, translator). The name is that of the folder, or the path if names are equal."""
    bundles = load_models(folders, device)
    for bundle, folder in zip(bundles, folders, strict=True):
        need_attention(bundle, folder)
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    decoding = {"beam_size": beam_size}
    translators = [build_translator([bundle], decoding=decoding, **options) for bundle in bundles]
    return list(zip(names, bundles, translators, strict=True))
