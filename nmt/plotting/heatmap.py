"""Draw alignment heatmaps like figure 3 of Bahdanau et al. (2015): source words on top, target words on the left."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import ceil, sqrt
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from nmt.alignment.links import GoldLinks, check_within
from nmt.alignment.weights import Alignment
from nmt.errors import DataError, UsageError
from nmt.plotting.fonts import add_font, choose_families, is_right_to_left, label, text_width
from nmt.plotting.style import FAINT, INK, ORANGE, Drawing, file_format, house_style, render
from nmt.runtime.arguments import as_path, described
from nmt.runtime.wording import counted

Gold = GoldLinks | AbstractSet[tuple[int, int]]
Style = Literal["color", "gray"]

ANNOTATED_UP_TO = 12  # words; larger matrices have no numbers in the cells
_WEIGHTS = "attention weight"
_TITLE_SIZE = 11.0  # points
_LABEL_PAD = 0.06  # inches between a word and its row or column
_GAP = 0.35  # inches between panels


@dataclass(frozen=True)
class _Look:
    """The colors of a style.

    Attributes:
        colormap: colors of weights from 0 to 1.
        grid: color of the lines between cells.
        outline: color of the squares of gold links.
        halo: border of these squares, if they need one to be visible on any cell.
        zero, one: text color on cells of small and of large weight.
        leaves_zeros: whether cells of weight 0 are left white.
    """

    colormap: Colormap
    grid: str
    outline: str
    halo: str | None
    zero: str
    one: str
    leaves_zeros: bool


_BLUES = ["#edf2f8", "#c5d9ec", "#8fbbdc", "#5296c8", "#246aa8", "#0f427d", "#08264f"]
_LOOKS = {
    "color": _Look(
        LinearSegmentedColormap.from_list("nmt-blues", _BLUES),
        grid="white", outline=ORANGE, halo=None, zero=INK, one="white", leaves_zeros=True,
    ),
    "gray": _Look(
        LinearSegmentedColormap.from_list("nmt-grays", ["black", "white"]),
        grid="#404040", outline="white", halo="black", zero="white", one=INK, leaves_zeros=False,
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Heatmap:
    """One matrix with its title and gold links.

    Attributes:
        alignment: the weights [T S] with their words.
        title: text above the matrix.
        gold: gold links, drawn as squares, dashed if only possible.

    Raises:
        DataError: the alignment has no words, or gold links lie outside it.
    """

    alignment: Alignment
    title: str = ""
    gold: Gold | None = None

    def __post_init__(self) -> None:
        if not self.alignment.weights.size:
            raise DataError("There is nothing to draw: an alignment needs at least one source and one target word.")
        targets, sources = self.alignment.weights.shape
        check_within(self.links.possible, sources, targets, "Gold links")

    @property
    def links(self) -> GoldLinks:
        """The gold links; those of a plain set are sure."""
        if isinstance(self.gold, GoldLinks):
            return self.gold
        return GoldLinks(frozenset(self.gold or ()), frozenset())


def plot_alignment(
    alignment: Alignment | Sequence[Alignment],
    path: str | Path | None = None,
    *,
    weights: str = _WEIGHTS,
    title: str | Sequence[str] | None = None,
    gold: Gold | Sequence[Gold | None] | None = None,
    style: Style = "color",
    font: str | Path | None = None,
    dpi: float = 150,
) -> Drawing:
    """Draw alignment matrices, alpha_ij of target word i and source word j (Bahdanau et al. 2015, eq. 6).

    Cells are square, and colors always range from 0 to 1, so figures are comparable. The figure grows with the number of
    words. Small matrices show their weights in the cells. Weights of exactly 0 are left white.

    Args:
        alignment: one matrix [T S] with its words, or several for panels side by side. Those of `Alignment.of_links` are
            drawn without a color bar.
        path: .png, .pdf or .svg; the suffix chooses the format. Default: a PNG in memory.
        weights: label of the color bar.
        title: the title of each panel; a single one is for the first panel.
        gold: the gold links of each panel, likewise; drawn as squares, dashed if only possible.
        style: `color`, or `gray` as in the paper (black is 0, white is 1).
        font: a font file for the words; installed fonts supply characters it lacks.
        dpi: dots per inch of a PNG.

    Returns:
        The picture, which a notebook shows.

    Raises:
        UsageError: the suffix or style is unknown, or the resolution out of range.
        DataError: an alignment has no words, gold links lie outside it, or the font or the picture cannot be used.
        ValueError: there are more titles or gold links than panels.
    """
    alignments = list(alignment) if isinstance(alignment, Sequence) else [alignment]
    for matrix in alignments:
        if not isinstance(matrix, Alignment):
            raise UsageError(f"What is drawn must be an Alignment, but is {described(matrix)}.")
    titles = [title] if isinstance(title, str) else list(title or ())
    golds = [gold] if isinstance(gold, GoldLinks | AbstractSet) else list(gold or ())
    if max(len(titles), len(golds)) > len(alignments):
        titles_or_golds = counted(max(len(titles), len(golds)), "title")
        raise ValueError(f"There are {titles_or_golds} or gold standards for {counted(len(alignments), 'alignment')}.")
    page = [
        Heatmap(matrix, matrix_title or "", links)
        for matrix, matrix_title, links in zip_longest(alignments, titles, golds)
    ]
    output = None if path is None else as_path(path, "The picture")
    font_file = None if font is None else as_path(font, "The font")
    picture = _render([page], "png" if output is None else file_format(output), style, font_file, weights, dpi)
    if output is not None:
        picture.save(output)
    return picture


def plot_heatmaps(
    pages: Sequence[Sequence[Heatmap]],
    path: Path,
    *,
    weights: str = _WEIGHTS,
    style: Style = "color",
    font: Path | None = None,
) -> None:
    """Draw matrices as panels of a page, or of several pages of a PDF.

    Args:
        pages: the panels of each page.
        path, style, font: as for `plot_alignment`.
        weights: label of the color bar.

    Raises:
        UsageError: there are several pages, but the format is not PDF; or as for `plot_alignment`.
        DataError: there is nothing to draw; or as for `plot_alignment`.
    """
    kind = file_format(path)
    if len(pages) > 1 and kind != "pdf":
        raise UsageError(f"A .{kind} has one page, but there are {len(pages)}: write a .pdf.")
    _render(pages, kind, style, font, weights, 150).save(path)


def _render(
    pages: Sequence[Sequence[Heatmap]], kind: str, style: Style, font: Path | None, weights: str, dpi: float
) -> Drawing:
    """Draw the pages one by one. Raises UsageError, or DataError without panels."""
    if style not in _LOOKS:
        raise UsageError(f"There is no style '{style}' of heatmap; choose color or gray.")
    if not pages or not all(pages):
        raise DataError("There is nothing to draw: a picture needs at least one alignment.")
    words = [label(word) for heatmap in chain(*pages) for word in heatmap.alignment.source + heatmap.alignment.target]
    texts = [*words, *(heatmap.title for heatmap in chain(*pages))]
    families = choose_families(texts, first=[add_font(font)] if font else [])
    with house_style(families):
        return render((_draw(page, _LOOKS[style], families, weights) for page in pages), kind, dpi=dpi)


# --- drawing ----------------------------------------------------------------------------------------------------


def _draw(page: Sequence[Heatmap], look: _Look, families: Sequence[str], weights: str) -> Figure:
    """Draw each matrix, then move them by what their words take. A unit of the figure is an inch, and saving crops it."""
    figure = Figure(figsize=(1, 1), facecolor="white")
    # Links of an aligner have no weights between 0 and 1.
    has_bar = any((heatmap.alignment.weights % 1 > 0).any() for heatmap in page)
    panels = []
    for heatmap in page:
        targets, columns = heatmap.alignment.weights.shape
        longest = max(targets, columns)
        # Large for a few words, at least readable for many, smaller only if the figure would get huge.
        cell = min(max(6 / longest, 0.28), 0.6, 28 / longest)
        size = min(72 * cell * 0.45, 11.0)
        widest = max(text_width(label(word), size, families) / 72 for word in heatmap.alignment.source)
        axes = figure.add_axes((0, -cell * targets, cell * columns, cell * targets))
        _draw_matrix(axes, heatmap, look, cell, has_bar=has_bar, numbers=has_bar and longest <= ANNOTATED_UP_TO)
        _write_words(axes, heatmap.alignment, cell, size, slanted=widest > cell - _LABEL_PAD)
        if heatmap.title:  # above all words, from the left of the target words on, in lines about as long as the matrix
            left, right = _extent(axes).intervalx
            letter = text_width(heatmap.title, _TITLE_SIZE, families) / 72 / len(heatmap.title)
            lines = "\n".join(textwrap.wrap(heatmap.title, max(30, int((right - left) / letter))))
            axes.set_title(lines, loc="left", x=left / (cell * columns), fontsize=_TITLE_SIZE, pad=8)
        panels.append(axes)
    right, top, bottom = _arrange(panels)
    if has_bar:
        bar_height = min(max(top - bottom, 1.3), 2.5)
        bar = figure.colorbar(
            ScalarMappable(Normalize(0, 1), look.colormap),
            cax=figure.add_axes((right + 0.2, top - bar_height, 0.12, bar_height)),
            ticks=[0, 0.25, 0.5, 0.75, 1],
        )
        bar.set_label(weights, fontsize=9)
        bar.ax.tick_params(length=2, labelsize=8)
        bar.outline.set_linewidth(0.5)
        bottom = min(bottom, top - bar_height)
    if marks := _legend(page, look, has_bar=has_bar):
        figure.legend(
            list(marks.values()), list(marks), loc="upper left", bbox_to_anchor=(0, bottom),
            ncols=max(int(right / 1.9), 1), frameon=False, fontsize=9, handlelength=1.6, handleheight=1.6,
        )  # fmt: skip
    return figure


def _extent(axes: Axes) -> Bbox:
    """The rectangle of a matrix with its words and title, in inches."""
    extent = axes.get_tightbbox()
    assert extent is not None, "a matrix has cells"
    return extent.transformed(axes.figure.dpi_scale_trans.inverted())


def _arrange(panels: Sequence[Axes]) -> tuple[float, float, float]:
    """Move matrices into rows that are filled from the left, about as many as columns.

    Returns where they end on the right, and where they begin and end from top to bottom.
    """
    extents = [_extent(axes) for axes in panels]
    widths = [extent.width + _GAP for extent in extents]
    limit = max(*widths, (ceil(sqrt(len(panels))) + 0.5) * sum(widths) / len(widths))
    rows: list[list[int]] = [[]]
    for number, width in enumerate(widths):
        if sum(widths[placed] for placed in rows[-1]) + width > limit:
            rows.append([])
        rows[-1].append(number)
    right, bottom = 0.0, _GAP
    for row in rows:
        left, top = 0.0, bottom - _GAP - max(extents[number].y1 for number in row)
        for number in row:
            _, _, width, height = panels[number].get_position().bounds
            panels[number].set_position((left - extents[number].x0, top - height, width, height))
            left += widths[number]
        # Slanted words of the first row may reach over the color bar beside it.
        reach = width - extents[row[-1]].x1 if row is rows[0] else 0.0
        right = max(right, left - _GAP + reach)
        bottom = top + min(extents[number].y0 for number in row)
    return right, panels[0].get_position().y1, bottom


def _legend(page: Sequence[Heatmap], look: _Look, *, has_bar: bool) -> dict[str, Artist]:
    """The marks that occur on a page, by their meaning."""
    marks: dict[str, Artist] = {}
    if not has_bar:
        marks["link"] = Rectangle((0, 0), 1, 1, color=look.colormap(1.0))
    elif look.leaves_zeros and any((heatmap.alignment.weights == 0).any() for heatmap in page):
        marks["weight 0"] = Rectangle((0, 0), 1, 1, fill=False, edgecolor=FAINT, linewidth=0.8)
    if any(heatmap.links.sure for heatmap in page):
        marks["sure gold link"] = _square(look, 0, 0, 1, is_sure=True)
    if any(heatmap.links.possible - heatmap.links.sure for heatmap in page):
        marks["possible gold link"] = _square(look, 0, 0, 1, is_sure=False)
    return marks


def _draw_matrix(axes: Axes, heatmap: Heatmap, look: _Look, cell: float, *, has_bar: bool, numbers: bool) -> None:
    """Draw the cells with their gold links, with `numbers` of weights from 0.1 on."""
    weights, thin = heatmap.alignment.weights, min(1.0, 72 * cell / 20)
    shown = np.ma.masked_equal(weights, 0) if look.leaves_zeros and has_bar else weights
    axes.pcolormesh(shown, cmap=look.colormap, vmin=0, vmax=1, edgecolors=look.grid, linewidth=thin)
    for target, source in np.argwhere(weights >= 0.1) if numbers else ():
        weight = weights[target, source]
        color = look.one if weight > 0.5 else look.zero
        axes.text(source + 0.5, target + 0.5, f"{weight:.2f}", color=color, fontsize=8, ha="center", va="center")
    for source, target in sorted(heatmap.links.possible):
        is_sure = (source, target) in heatmap.links.sure
        axes.add_patch(_square(look, source + 0.06, target + 0.06, 0.88, is_sure=is_sure))


def _write_words(axes: Axes, alignment: Alignment, cell: float, size: float, *, slanted: bool) -> None:
    """Write the target words on the left, and the source words above, at 45 degrees if they are `slanted`."""
    targets, sources = alignment.weights.shape
    turned = is_right_to_left(alignment.source)
    axes.set(xlim=(sources, 0) if turned else (0, sources), ylim=(targets, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=72 * _LABEL_PAD, labelsize=size)
    axes.xaxis.tick_top()
    axes.set_yticks(np.arange(targets) + 0.5, [label(word) for word in alignment.target])
    places, words = np.arange(sources) + 0.5, [label(word) for word in alignment.source]
    if not slanted:
        axes.set_xticks(places, words)
        return
    # Shift slanted words by half the height of a lower-case letter, so that they point at their columns.
    places += 0.19 * size / (72 * cell)
    angle, side = (-45, "right") if turned else (45, "left")
    axes.set_xticks(places, words, rotation=angle, rotation_mode="anchor", ha=side, va="baseline")


def _square(look: _Look, x: float, y: float, side: float, *, is_sure: bool) -> Rectangle:
    """The mark of a gold link."""
    line = "solid" if is_sure else (0, (2.5, 1.6))
    square = Rectangle((x, y), side, side, fill=False, edgecolor=look.outline, linewidth=1.6, linestyle=line)
    if look.halo:
        square.set_path_effects([withStroke(linewidth=3.2, foreground=look.halo)])
    return square
