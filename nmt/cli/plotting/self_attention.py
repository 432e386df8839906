"""`nmt plot --self`: what the words of a sentence read of each other in the encoder of a Transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import UsageError

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle


def check_options(output: Path, others: Mapping[str, object]) -> None:
    """Raise UsageError for a page, and for options that say how a translation is found or compared."""
    from nmt.plotting.explorer import is_page

    for name, value in others.items():
        if value:
            raise UsageError(f"--self shows one sentence and no translation: leave out --{name}.")
    if is_page(output):
        raise UsageError("--self draws pictures: write to a .png, .svg or .pdf.")


def draw_self_attention(
    output: Path,
    bundle: Bundle,
    sources: Sequence[str],
    heads: Sequence[tuple[str, int | None]],
    view: Mapping[str, Any],
    **picture: Any,
) -> None:
    """Draw a matrix of each sentence and head: one page per sentence in a PDF, else all in one figure.

    Args:
        output: the picture.
        bundle: the model.
        sources: the sentences.
        heads: the heads as in `read_self_attention`, each with a title.
        view: `layer`, `to` and `subwords` as there.
        picture: `style`, `font` and `dpi` as in `plot_heatmaps`.
    """
    from nmt.decoding.self_attention import read_self_attention
    from nmt.plotting.heatmap import Heatmap, plot_heatmaps
    from nmt.plotting.style import file_format

    pages = [
        [Heatmap(read_self_attention(bundle, line, head=head, **view), title) for title, head in heads]
        for line in sources
    ]
    if file_format(output) != "pdf":
        pages = [list(chain(*pages))]
    plot_heatmaps(pages, output, weights="self-attention weight", **picture)
