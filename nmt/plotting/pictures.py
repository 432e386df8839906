"""Draw attention over pictures, word by word, as in figure 2 of "Show, Attend and Tell" (Xu et al. 2015)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from nmt.alignment.weights import Matrix
from nmt.errors import DataError
from nmt.plotting.fonts import choose_families, label, text_width
from nmt.plotting.style import FAINT, file_format, house_style, save
from nmt.runtime.arguments import as_path
from nmt.runtime.wording import counted

_PANEL, _BETWEEN, _TITLE, _FONT = 1.0, 0.08, 0.24, 10.0  # inches, and points
_VEIL = LinearSegmentedColormap.from_list("nmt-veil", [(0.06, 0.07, 0.1, 0.82), (0.06, 0.07, 0.1, 0.0)])
"""Darkens what gets no weight, and leaves what gets the largest as it is."""


@dataclass(frozen=True, eq=False)
class PictureAttention:
    """A picture, words about it, and where in the picture each word was read from.

    Attributes:
        pixels: red, green and blue from 0 to 1, [3 H W].
        words: the words, in their order.
        weights: the attention of each word over a grid of cells, [T rows columns], from the top left.

    Raises:
        DataError: there are no words.
        ValueError: the shapes do not belong together.
    """

    pixels: Matrix
    words: Sequence[str]
    weights: Matrix

    def __post_init__(self) -> None:
        if not self.words:
            raise DataError("There is nothing to draw: a picture needs at least one word.")
        if self.pixels.ndim != 3 or len(self.pixels) != 3:
            raise ValueError(f"The pixels of a picture must be [3 H W], but are {list(self.pixels.shape)}.")
        if self.weights.ndim != 3 or len(self.weights) != len(self.words):
            words = counted(len(self.words), "word")
            raise ValueError(f"The weights of {words} must be [T rows columns], but are {list(self.weights.shape)}.")


def plot_picture_attention(pictures: Sequence[PictureAttention], path: str | Path, *, dpi: float = 150) -> None:
    """Draw each picture in a row: as it is, then once per word, bright where the word was read and dark elsewhere.

    The largest weight of a word leaves the picture as it is. Grids are interpolated.

    Args:
        pictures: what to draw, one per row.
        path: .png, .pdf or .svg; the suffix chooses the format.
        dpi: dots per inch of a PNG.

    Raises:
        UsageError: the suffix is unknown, or the resolution out of range.
        DataError: there is no picture, or the file cannot be written.
    """
    output = as_path(path, "The picture")
    file_format(output)
    if not pictures:
        raise DataError("There is nothing to draw: give at least one picture.")
    families = choose_families([label(word) for picture in pictures for word in picture.words])
    with house_style(families):
        save(_draw(pictures, families), output, dpi=dpi)


def _draw(pictures: Sequence[PictureAttention], families: Sequence[str]) -> Figure:
    """Draw a grid of panels. A unit of the figure is an inch, and saving crops it."""
    figure = Figure(figsize=(1, 1), facecolor="white")
    widest = max(text_width(label(word), _FONT, families) / 72 for picture in pictures for word in picture.words)
    column = max(_PANEL, widest) + _BETWEEN
    for row, picture in enumerate(pictures):
        for panel, word in enumerate(["", *picture.words]):
            axes = figure.add_axes((column * panel, -row * (_TITLE + _PANEL + _BETWEEN), _PANEL, _PANEL))
            _draw_panel(axes, picture, panel - 1 if word else None)
            axes.set_title(label(word), fontsize=_FONT, pad=4)
    return figure


def _draw_panel(axes: Axes, picture: PictureAttention, word: int | None) -> None:
    """Draw the picture, under the veil of a word's attention if one is given."""
    height, width = picture.pixels.shape[1:]
    corners = (0, width, height, 0)
    axes.imshow(picture.pixels.transpose(1, 2, 0), extent=corners, interpolation="nearest")
    if word is not None:
        weights = picture.weights[word]
        axes.imshow(
            weights, cmap=_VEIL, vmin=0, vmax=weights.max() or 1, extent=corners, interpolation="bilinear"
        )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(color=FAINT, linewidth=0.5)
