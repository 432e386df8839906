"""`nmt plot`: the command and its options."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
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
    number_or,
    option,
    set_up,
)
from nmt.errors import DataError, UsageError

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle
    from nmt.cli.plotting.request import Request
    from nmt.recipe import TransformerModelConfig

_picture_option = partial(option, panel="Picture")
_ALL = "all"
"""The value of --head that draws every head of the layer."""


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
            parser=number_or(_ALL, int, 1),
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
    from nmt.cli.plotting.picture import Picture
    from nmt.cli.plotting.request import read_request
    from nmt.cli.plotting.self_attention import check_options, draw_self_attention
    from nmt.plotting.explorer import is_page

    if self_attention:
        others = {"target": target, "reference": reference, "force": force, "gold": gold, "posterior": posterior}
        check_options(
            output, {**others, "compare": compare, "beam-size": beam_size, "n-best": n_best > 1, "rank": rank}
        )
        request, [bundle] = read_request(sentences or [], source, to=to), load_models([model], device)
        heads = _heads_of_encoder(bundle, head)
        _check_count(request, output, ranks=1, heads=len(heads))
        view = {"layer": layer, "to": to, "subwords": subwords}
        draw_self_attention(output, bundle, request.sources, heads, view, style=style, font=font, dpi=dpi)
        typer.echo(output)
        return
    page = is_page(output)
    folders = [model] if compare is None else [model, compare]
    for_pictures = {"--n-best": n_best > 1, "--rank": rank, "--subwords": subwords, "--font": font}
    _check_format(output, compare, for_pictures)
    _check_attention(posterior=posterior, layer=layer, head=head, page=page)
    ranks = range(n_best) if rank is None else range(rank - 1, rank)
    request = read_request(
        sentences or [], source, to=to, target=target, reference=reference, gold=gold, force=force, posterior=posterior
    )
    _check_ranks(n_best, rank, forced=request.forced)
    _check_count(request, output, ranks=len(ranks))
    bundles = load_models(folders, device, attending=True)
    views = _named(folders, bundles, layer, head) if page else _views(bundles[0], layer, head)
    _check_count(request, output, ranks=len(ranks), heads=len(views))
    settings: dict[str, Any] = {
        "n_best": ranks.stop,
        "posterior": posterior,
        "decoding": {"beam_size": beam_size},
        "to": to,
    }
    if head == _ALL:  # the coverage penalty reads the attention, so each head would get a translation of its own
        settings["decoding"]["coverage_penalty"] = 0.0
    if not page:  # the centers of a window need the whole sentence, so a picture does not split long ones
        settings["max_source"] = sys.maxsize
    readers = ((name, bundle, build_translator([bundle], **settings)) for name, bundle in views)
    if page:
        write_page(output, request, list(readers), quiet=quiet)
    else:
        Picture(request, ranks, subwords, style, font, dpi).write(output, readers, quiet=quiet)
    typer.echo(output)


def _check_format(output: Path, compare: Path | None, for_pictures: Mapping[str, object]) -> None:
    """Raise UsageError for options of the other format, picture or page."""
    from nmt.plotting.explorer import is_page
    from nmt.plotting.style import file_format

    if is_page(output):
        for name, value in for_pictures.items():
            if value:
                shows = "a page shows the best translation of each sentence, its words and its subwords"
                raise UsageError(f"{name} is for pictures: {shows}.")
        return
    file_format(output)
    if compare is not None:
        raise UsageError(f"--compare is for pages: write to a name that ends with .html, not to '{output}'.")


def _check_attention(*, posterior: bool, layer: int | None, head: Any, page: bool) -> None:
    """Raise UsageError for a choice of attention that cannot be shown."""
    if posterior and (layer is not None or head is not None):
        raise UsageError("--layer and --head choose attention weights: leave them out, or --posterior.")
    if page and head == _ALL:
        raise UsageError("--head all is for pictures: a page shows one alignment of each sentence by each model.")


def _check_ranks(n_best: int, rank: int | None, *, forced: bool) -> None:
    """Raise UsageError if --n-best and --rank contradict each other or given translations."""
    if n_best > 1 and rank is not None:
        raise UsageError(
            "Give --n-best for the best translations side by side, or --rank for one of them, and not both."
        )
    if forced and (n_best > 1 or rank is not None):
        option = "--rank" if rank is not None else "--n-best"
        raise UsageError(f"{option} chooses from what the model finds, but the translations are given.")


def _check_count(request: Request, output: Path, *, ranks: int, heads: int = 1) -> None:
    """Raise DataError if there are no sentences or too many, with a matrix for each translation and each head."""
    from nmt.cli.plotting.picture import MOST_PANELS
    from nmt.plotting.explorer import MOST_SENTENCES, is_page

    count = len(request.sources)
    if not count:
        raise DataError("There is no sentence to plot: the input is empty.")
    whole = is_page(output) or output.suffix.lower() == ".pdf"
    if whole and count > MOST_SENTENCES:
        holds = f"{'A page' if is_page(output) else 'A PDF'} holds at most {MOST_SENTENCES} sentences"
        raise DataError(f"{holds}, but there are {count:,}: choose some, for instance with `head`.")
    if not is_page(output) and (matrices := ranks * heads * (1 if whole else count)) > MOST_PANELS:
        pages = "write a .pdf, a page for each sentence" + ", or a page.html" * (heads == 1)
        remedy = "choose fewer" if count == 1 or whole else pages
        raise DataError(f"A figure holds at most {MOST_PANELS} matrices, but there would be {matrices:,}: {remedy}.")


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


def _heads_of_encoder(bundle: Bundle, head: Any) -> list[tuple[str, int | None]]:
    """The heads of the self-attention that a picture shows, with their names: all heads', one, or their mean, which need none."""
    if head != _ALL:
        return [("", head)]
    return [(f"head {number}", number) for number in range(1, getattr(bundle.recipe.model, "heads", 1) + 1)]


def _transformer(bundle: Bundle) -> TransformerModelConfig:
    """The settings of a Transformer."""
    return cast("TransformerModelConfig", bundle.recipe.model)
