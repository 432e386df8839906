"""`nmt plot --self`: what the words of a sentence read of each other in the encoder of a Transformer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import UsageError

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle
    from nmt.plotting.heatmap import Heatmap


def check_options(output: Path, others: Mapping[str, object]) -> None:
    """Raise UsageError for a page, and for options that say how a translation is found or compared."""
    from nmt.plotting.explorer import is_page

    for name, value in others.items():
        if value:
            raise UsageError(f"--self shows one sentence and no translation: leave out --{name}.")
    if is_page(output):
        raise UsageError("--self draws pictures: write to a .png, .svg or .pdf.")


def heads_to_draw(bundle: Bundle, head: Any) -> int:
    """How many matrices a sentence has."""
    return getattr(bundle.recipe.model, "heads", 1) if head == "all" else 1


def draw_self_attention(
    output: Path, bundle: Bundle, sources: Sequence[str], view: Mapping[str, Any], **picture: Any
) -> None:
    """Draw a matrix per sentence, or one of each head for `head: all`: one page per sentence in a PDF, else all in one figure.

    Args:
        output: the picture.
        bundle: the model.
        sources: the sentences.
        view: `layer`, `head`, `to` and `subwords` as in `read_self_attention`.
        picture: `style`, `font` and `dpi` as in `plot_heatmaps`.
    """
    from nmt.plotting.heatmap import plot_heatmaps
    from nmt.plotting.style import file_format

    pages = [list(_panels(bundle, line, dict(view))) for line in sources]
    if file_format(output) != "pdf":
        pages = [list(chain(*pages))]
    plot_heatmaps(pages, output, weights="self-attention weight", **picture)


def _panels(bundle: Bundle, line: str, view: dict[str, Any]) -> Iterator[Heatmap]:
    """The matrices of a sentence."""
    from nmt.decoding.self_attention import read_self_attention
    from nmt.plotting.heatmap import Heatmap

    if view["head"] != "all":
        yield Heatmap(read_self_attention(bundle, line, **view))
        return
    for head in range(1, heads_to_draw(bundle, "all") + 1):
        yield Heatmap(read_self_attention(bundle, line, **{**view, "head": head}), f"head {head}")
