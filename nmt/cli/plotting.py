"""`nmt plot`: alignments as pictures, or as a page to explore."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from nmt.cli import options
from nmt.cli.options import argument, build_translator, load_models, option, set_up
from nmt.errors import DataError, UsageError

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle
    from nmt.cli.plot_request import Request
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
    model: options.Model,
    sentences: Annotated[
        list[str] | None, argument("Sentence to translate; or use --input.", "SENTENCE", default=False)
    ] = None,
    output: Annotated[Path, option("Picture (.png, .pdf, .svg) or page (.html).", "FILE", "--output", "-o")] = Path(
        "alignment.png"
    ),
    source: Annotated[
        Path | None, option("Sentences, one per line; - is stdin.", "FILE", "--input", "-i", default="none")
    ] = None,
    to: options.To = None,
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
    layer: options.AttentionLayer = None,
    head: Annotated[
        Any,
        option(
            "Head of that layer, or all.",
            f"H|{_ALL}",
            default="mean of the layer's heads",
            parser=_head,
        ),
    ] = None,
    beam_size: options.BeamSize = None,
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
    device: options.Device = "auto",
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Draw the alignment of sentences and their translations.

    Examples:
      nmt plot runs/bahdanau "A man is riding a horse." -o align.png
      nmt plot runs/bahdanau -i test.en -r test.de -o page.html

    Details:

    Rows are target words, columns source words, colors attention weights from 0 to 1. Several sentences become panels of a
    .png or .svg (25 at most), pages of a .pdf, or an .html page to explore.

    The model translates, unless --target, or --reference with --force, gives the translations. Gold links are orange
    squares, dashed where only possible. Scripts such as Chinese and Japanese need an installed font or --font.
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.cli.plot_request import read_request
    from nmt.plotting.heatmap import plot_heatmaps
    from nmt.plotting.style import FORMATS, file_format

    kind = file_format(output, ("html", *FORMATS))
    page = kind == "html"
    chooses_attention, chooses_rank = layer is not None or head is not None, n_best > 1 or rank is not None
    for_translations = target or reference or force or gold or posterior or compare or beam_size or chooses_rank
    refused = {
        "--layer and --head choose attention weights: leave them out, or --posterior.": posterior and chooses_attention,
        "--n-best draws the best translations side by side, --rank one of them: give only one.": n_best > 1 and rank,
        "A page shows the best translation of each sentence, its words and its subwords: leave out --n-best, --rank, "
        "--subwords and --font, or write a picture.": page and (chooses_rank or subwords or font),
        "Gold links are between words: leave out --subwords, or --gold.": subwords and gold,
        "--head all is for pictures: a page shows one alignment of each sentence by each model.": page and head == _ALL,
        f"--compare is for pages: write to a name that ends with .html, not to '{output}'.": compare and not page,
        "--self draws pictures: write to a .png, .svg or .pdf.": self_attention and page,
        "--self shows one sentence and no translation: give no option of translations.": self_attention
        and for_translations,
        "--n-best and --rank choose from what the model finds, but the translations are given.": chooses_rank
        and (target or force or gold),
    }
    if message := next((message for message, holds in refused.items() if holds), None):
        raise UsageError(message)
    request = read_request(sentences or [], source, to=to, target=target, reference=reference, gold=gold, force=force)
    ranks = range(n_best) if rank is None else range(rank - 1, rank)
    folders = [model] if compare is None else [model, compare]
    bundles = load_models(folders, device, attending=not self_attention)
    heads = [head]
    if head == _ALL:
        heads = list(range(1, getattr(bundles[0].recipe.model, "heads", 1) + 1))
    _check_count(len(request.sources), kind, matrices=len(ranks) * len(heads))
    if self_attention:
        weights = "self-attention weight"
        pages = _self_attention(bundles[0], request, layer, heads, subwords=subwords)
    else:
        weights = "posterior weight" if posterior else "attention weight"
        search: dict[str, Any] = {"n_best": ranks.stop, "posterior": posterior, "to": to}
        if beam_size is not None:
            search["beam_size"] = beam_size
        if head == _ALL:  # the coverage penalty reads the attention, so each head would get a translation of its own
            search["coverage_penalty"] = 0.0
        names = _names(folders) if page else [""]
        readers = [
            (name, bundle, build_translator([bundle], **search))
            for name, bundle in _views(names, bundles, layer, heads)
        ]
        if page:
            request.write_page(output, readers, quiet=quiet)
            typer.echo(output)
            return
        pages = request.panels(readers, ranks, subwords=subwords, quiet=quiet)
    if kind != "pdf":
        pages = [list(chain(*pages))]
    plot_heatmaps(pages, output, weights=weights, style=style, font=font, dpi=dpi)
    typer.echo(output)


def _check_count(sentences: int, kind: str, *, matrices: int) -> None:
    """Raise DataError if there are too many sentences, with so many matrices for each."""
    from nmt.plotting.explorer import MOST_SENTENCES

    if kind in ("html", "pdf") and sentences > MOST_SENTENCES:
        holds = f"A page or a PDF holds at most {MOST_SENTENCES} sentences"
        raise DataError(f"{holds}, but there are {sentences:,}: choose some, for instance with `head`.")
    count = matrices if kind == "pdf" else matrices * sentences
    if kind != "html" and count > MOST_PANELS:
        remedy = "choose fewer" if matrices > MOST_PANELS else "write a .pdf, a page for each sentence, or a page.html"
        raise DataError(f"A figure holds at most {MOST_PANELS} matrices, but there would be {count:,}: {remedy}.")


def _names(folders: Sequence[Path]) -> list[str]:
    """The names of the models of a page: those of their folders, or their paths if two are equal."""
    from nmt.bundle.places import model_name

    names = [model_name(folder) for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _views(
    names: Sequence[str], bundles: Sequence[Bundle], layer: int | None, heads: Sequence[int | None]
) -> list[tuple[str, Bundle]]:
    """Each model with its name and the attention that is shown: the recipe's, which needs no name, or that of a layer and head."""
    from nmt.bundle.folder import choose_attention

    views = []
    for head in heads:
        for name, bundle, view in zip(names, bundles, choose_attention(bundles, layer, head), strict=True):
            attention = "" if view is bundle else cast("TransformerModelConfig", view.recipe.model).aligned_by
            views.append((", ".join(filter(None, (name, attention))), view))
    return views


def _self_attention(
    bundle: Bundle, request: Request, layer: int | None, heads: Sequence[int | None], *, subwords: bool
) -> list[list[Heatmap]]:
    """A matrix of each sentence and head; only one of several heads needs a name."""
    from nmt.decoding.self_attention import read_self_attention
    from nmt.plotting.heatmap import Heatmap

    return [
        [
            Heatmap(
                read_self_attention(bundle, line, head=head, layer=layer, to=request.to, subwords=subwords),
                f"head {head}" if len(heads) > 1 else "",
            )
            for head in heads
        ]
        for line in request.sources
    ]
