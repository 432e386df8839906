"""`nmt plot`: the command and its options."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from nmt.cli.options import (
    AttentionLayer,
    BeamSize,
    Device,
    Model,
    Quiet,
    Threads,
    To,
    argument,
    build_translator,
    load_models,
    option,
    set_up,
)
from nmt.errors import DataError, UsageError

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle
    from nmt.plotting.heatmap import Heatmap
    from nmt.recipe import TransformerModelConfig

MOST_PANELS = 25
"""Most matrices of a figure; in a PDF, which has one page per sentence, of a page."""
_picture_option = partial(option, panel="Picture")
_ALL = "all"
"""The value of --head that draws every head of the layer."""


def _head(text: str) -> int | str:
    """The number of a head, or all of them."""
    if text == _ALL or (text.isdecimal() and int(text) > 0):
        return text if text == _ALL else int(text)
    raise typer.BadParameter(f"'{text}' is neither a number from 1 up nor '{_ALL}'.")


def plot(
    model: Model,
    sentences: Annotated[
        list[str] | None, argument("Sentence to translate; or use --input.", "SENTENCE", default=False)
    ] = None,
    output: Annotated[Path, option("Picture (.png, .pdf, .svg) or page (.html).", "FILE", "--output", "-o")] = Path(
        "alignment.png"
    ),
    source: Annotated[
        Path | None, option("Sentences, one per line; - is stdin.", "FILE", "--input", "-i", default="none")
    ] = None,
    to: To = None,
    target: Annotated[str | None, option("Align this translation of SENTENCE.", "TEXT", default="the model's")] = None,
    reference: Annotated[
        Path | None, option("Reference translations, for BLEU.", "FILE", "--reference", "-r", default="none")
    ] = None,
    force: Annotated[bool, option("Align the references instead of the model's translations.", "", "--force")] = False,
    gold: Annotated[
        Path | None, option("Gold links (Pharaoh or NAACL), for the AER. Implies --force.", "FILE", default="none")
    ] = None,
    posterior: Annotated[
        bool, option("Show the posterior alignment given the target words, not the attention.", "", "--posterior")
    ] = False,
    self_attention: Annotated[
        bool, option("Show what the words of SENTENCE read of each other, in a Transformer.", "", "--self")
    ] = False,
    layer: AttentionLayer = None,
    head: Annotated[
        Any,
        option(
            "Head of that layer, or all.",
            f"H|{_ALL}",
            default="mean of the layer's heads",
            parser=_head,
        ),
    ] = None,
    beam_size: BeamSize = None,
    n_best: Annotated[int, _picture_option("Draw the N best translations side by side.", "N", min=1)] = 1,
    rank: Annotated[
        int | None, _picture_option("Draw the K-th best translation alone.", "K", default="the best", min=1)
    ] = None,
    subwords: Annotated[bool, _picture_option("Show subword tokens instead of words.", "", "--subwords")] = False,
    style: Annotated[Literal["color", "gray"], _picture_option("color, or gray as in the papers.", "NAME")] = "color",
    font: Annotated[
        Path | None, _picture_option("Font of the words (.ttf, .otf, .ttc).", "FILE", default="DejaVu Sans")
    ] = None,
    dpi: Annotated[float, _picture_option("Dots per inch of a PNG.", "N")] = 150,
    compare: Annotated[
        Path | None, option("A second model beside the first, on a page.", "MODEL", default="none")
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

    Rows are target words, columns source words, colors attention weights from 0 to 1. Several sentences become panels of a
    .png or .svg (25 at most), pages of a .pdf, or an .html page to explore.

    The model translates, unless --target, or --reference with --force, gives the translations. Gold links are orange
    squares, dashed where only possible; diamonds mark the centers of local attention. Scripts such as Chinese and Japanese need
    an installed font or --font.
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.cli.plotting.page import write_page
    from nmt.cli.plotting.picture import translation_panels
    from nmt.cli.plotting.request import read_request
    from nmt.plotting.explorer import is_page
    from nmt.plotting.heatmap import plot_heatmaps
    from nmt.plotting.style import file_format

    page = is_page(output)
    kind = "html" if page else file_format(output)
    chooses_attention, chooses_rank = layer is not None or head is not None, n_best > 1 or rank is not None
    for_translations = target or reference or force or gold or posterior or compare or beam_size or chooses_rank
    _refuse(
        {
            "--layer and --head choose attention weights: leave them out, or --posterior.": posterior
            and chooses_attention,
            "--n-best draws the best translations side by side, --rank one of them: give only one.": n_best > 1
            and rank is not None,
            "A page shows the best translation of each sentence, its words and its subwords: leave out --n-best, --rank, "
            "--subwords and --font, or write a picture.": page and (chooses_rank or subwords or font),
            "--head all is for pictures: a page shows one alignment of each sentence by each model.": page
            and head == _ALL,
            f"--compare is for pages: write to a name that ends with .html, not to '{output}'.": compare and not page,
            "--self draws pictures: write to a .png, .svg or .pdf.": self_attention and page,
            "--self shows one sentence and no translation: give no option of translations.": self_attention
            and for_translations,
        }
    )
    request = read_request(sentences or [], source, to=to, target=target, reference=reference, gold=gold, force=force)
    chosen = "--n-best and --rank choose from what the model finds, but the translations are given."
    _refuse({chosen: request.forced and chooses_rank})
    ranks = range(n_best) if rank is None else range(rank - 1, rank)
    _check_count(len(request.sources), kind, matrices=len(ranks))
    folders = [model] if compare is None else [model, compare]
    bundles = load_models(folders, device, attending=not self_attention)
    if self_attention:
        weights = "self-attention weight"
        pages = _self_attention(bundles[0], request.sources, kind, layer, head, to, subwords=subwords)
    else:
        weights = "posterior weight" if posterior else "attention weight"
        views = _named(folders, bundles, layer, head) if page else _views(bundles[0], layer, head)
        _check_count(len(request.sources), kind, matrices=len(ranks) * len(views))
        options: dict[str, Any] = {"n_best": ranks.stop, "posterior": posterior, "to": to}
        if beam_size is not None:
            options["beam_size"] = beam_size
        if head == _ALL:  # the coverage penalty reads the attention, so each head would get a translation of its own
            options["coverage_penalty"] = 0.0
        if not page:  # the centers of a window need the whole sentence, so a picture does not split long ones
            options["max_source"] = 2**31 - 1
        readers = [(name, bundle, build_translator([bundle], **options)) for name, bundle in views]
        if page:
            write_page(output, request, readers, quiet=quiet)
            typer.echo(output)
            return
        pages = translation_panels(request, readers, ranks, subwords=subwords, quiet=quiet)
    if kind != "pdf":
        pages = [list(chain(*pages))]
    plot_heatmaps(pages, output, weights=weights, style=style, font=font, dpi=dpi)
    typer.echo(output)


def _refuse(cases: dict[str, object]) -> None:
    """Raise UsageError with the first message whose condition holds."""
    for message, holds in cases.items():
        if holds:
            raise UsageError(message)


def _check_count(sentences: int, kind: str, *, matrices: int) -> None:
    """Raise DataError if there are no sentences or too many, with so many matrices for each."""
    from nmt.plotting.explorer import MOST_SENTENCES

    if not sentences:
        raise DataError("There is no sentence to plot: the input is empty.")
    if kind in ("html", "pdf") and sentences > MOST_SENTENCES:
        holds = f"A page or a PDF holds at most {MOST_SENTENCES} sentences"
        raise DataError(f"{holds}, but there are {sentences:,}: choose some, for instance with `head`.")
    count = matrices if kind == "pdf" else matrices * sentences
    if kind != "html" and count > MOST_PANELS:
        remedy = "choose fewer" if matrices > MOST_PANELS else "write a .pdf, a page for each sentence, or a page.html"
        raise DataError(f"A figure holds at most {MOST_PANELS} matrices, but there would be {count:,}: {remedy}.")


def _named(
    folders: Sequence[Path], bundles: Sequence[Bundle], layer: int | None, head: int | None
) -> list[tuple[str, Bundle]]:
    """The models of a page: each by the name of its folder, or its path if names are equal, and the attention if it is chosen."""
    from nmt.bundle.folder import choose_attention
    from nmt.bundle.places import model_name

    names = [model_name(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    views = choose_attention(bundles, layer, head)
    return [
        (name if view is bundle else f"{name}, {_transformer(view).aligned_by}", view)
        for name, bundle, view in zip(names, bundles, views, strict=True)
    ]


def _views(bundle: Bundle, layer: int | None, head: Any) -> list[tuple[str, Bundle]]:
    """The attentions of a model that a picture shows: the recipe's, which needs no name, that of a layer and head, or all heads'."""
    if layer is None and head is None:
        return [("", bundle)]
    heads = range(1, _transformer(bundle.attending(layer)).heads + 1) if head == _ALL else [head]
    views = [bundle.attending(layer, number) for number in heads]
    return [(_transformer(view).aligned_by, view) for view in views]


def _self_attention(
    bundle: Bundle, lines: Sequence[str], kind: str, layer: int | None, head: Any, to: str | None, *, subwords: bool
) -> list[list[Heatmap]]:
    """A matrix of each sentence and head: of all heads with their names, of one, or of their mean, which need none."""
    from nmt.decoding.self_attention import read_self_attention
    from nmt.plotting.heatmap import Heatmap

    heads: list[tuple[str, int | None]] = [("", head)]
    if head == _ALL:
        heads = [(f"head {number}", number) for number in range(1, getattr(bundle.recipe.model, "heads", 1) + 1)]
    _check_count(len(lines), kind, matrices=len(heads))
    return [
        [
            Heatmap(read_self_attention(bundle, line, head=number, layer=layer, to=to, subwords=subwords), title)
            for title, number in heads
        ]
        for line in lines
    ]


def _transformer(bundle: Bundle) -> TransformerModelConfig:
    """The settings of a Transformer."""
    return cast("TransformerModelConfig", bundle.recipe.model)
