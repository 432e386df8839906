"""Alignment heatmaps like figure 3 of Bahdanau et al. (2015): source words on top, target words on the left."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, Self, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from nmt.alignment.links import GoldLinks
from nmt.alignment.weights import Alignment, Matrix
from nmt.arguments import as_path, described
from nmt.errors import DataError, UsageError
from nmt.plotting.fonts import add_font, choose_families, label, text_width
from nmt.plotting.layout import LABEL_PAD, TITLE_SIZE, Layout, Panel, measure_panels
from nmt.plotting.style import INK, MAGENTA, ORANGE, file_format, house_style, save, save_pages
from nmt.wording import counted

Gold = GoldLinks | AbstractSet[tuple[int, int]]
Style = Literal["color", "grey"]
Mark = Literal["sure", "possible", "center"]
T = TypeVar("T")

LEGEND_SIZE, LEGEND_UNIT = 9.0, 0.2  # points, and inches to a mark
ANNOTATED_UP_TO = 12  # words; in larger matrices, figures in the cells are noise

_BLUES = LinearSegmentedColormap.from_list(
    "nmt-blues", ["#edf2f8", "#c5d9ec", "#8fbbdc", "#5296c8", "#246aa8", "#0f427d", "#08264f"]
)
_GREYS = LinearSegmentedColormap.from_list("nmt-greys", ["black", "white"])


@dataclass(frozen=True, eq=False)
class Heatmap:
    """One matrix, and what is drawn over it.

    Attributes:
        alignment: the weights [T S] with their words.
        title: stands above it.
        gold: links of annotators; outlined squares, dashed where only possible.
        centers: where the local window of each row stood, p_t (Luong et al. 2015, eq. 9), [T K] for K heads; column j
            reaches from j to j + 1, and NaN is not drawn.

    Raises:
        DataError: an alignment without words, or gold links outside it.
        ValueError: centres of another number of rows.
    """

    alignment: Alignment
    title: str = ""
    gold: Gold | None = None
    centers: Matrix | None = None

    def __post_init__(self) -> None:
        if not self.alignment.weights.size:
            raise DataError("There is nothing to draw: an alignment needs at least one source and one target word.")
        if self.centers is not None and len(self.centers) != len(self.alignment.target):
            raise ValueError(
                f"The centres have {counted(len(self.centers), 'row')} for {counted(len(self.alignment.target), 'target word')}."
            )
        _check_within(self.links, self.alignment)

    @property
    def links(self) -> GoldLinks:
        """The gold links; a plain set is of sure ones."""
        if isinstance(self.gold, GoldLinks):
            return self.gold
        return GoldLinks(frozenset(self.gold or ()), frozenset())


def plot_alignment(
    alignment: Alignment | Sequence[Alignment],
    path: str | Path,
    *,
    title: str | Sequence[str] | None = None,
    gold: Gold | Sequence[Gold | None] | None = None,
    style: Style = "color",
    font: str | Path | None = None,
    dpi: float = 150,
) -> None:
    """Draw alignment matrices, alpha_ij of target word i and source word j (Bahdanau et al. 2015, eq. 6), into a file.

    Cells are square and colours run from 0 to 1 whatever the weights, so that figures can be compared. The figure
    grows with the words. Small matrices have their weights written into the cells.

    Args:
        alignment: one matrix [T S] with its words, or several for panels side by side.
        path: .png, .pdf or .svg; the suffix chooses the format.
        title: one above each panel; a single one stands above the first.
        gold: links of annotators, as for `title`; outlined squares, dashed where only possible.
        style: `color`, or `grey` as in the paper (black is 0, white is 1).
        font: a font file for the words; the installed ones fill in what it lacks.
        dpi: dots an inch of a PNG.

    Raises:
        UsageError: an unknown suffix or style, or a resolution out of range.
        DataError: an alignment without words, gold links outside it, no font, or a file that cannot be written.
        ValueError: more titles or gold standards than panels.
    """
    alignments = list(alignment) if isinstance(alignment, Sequence) else [alignment]
    for item in alignments:
        if not isinstance(item, Alignment):
            raise UsageError(f"What is drawn must be an Alignment, but is {described(item)}.")
    titles = [title] if isinstance(title, str) else list(title or ())
    golds = [gold] if isinstance(gold, GoldLinks | AbstractSet) else list(gold or ())
    count = len(alignments)
    each = zip(alignments, _padded(titles, "", count), _padded(golds, None, count), strict=True)
    place, letters = as_path(path, "The picture"), None if font is None else as_path(font, "The font")
    plot_heatmaps([[Heatmap(*given) for given in each]], place, style=style, font=letters, dpi=dpi)


def plot_heatmaps(
    pages: Sequence[Sequence[Heatmap]],
    path: Path,
    *,
    weights: str = "attention weight",
    style: Style = "color",
    font: Path | None = None,
    dpi: float = 150,
) -> None:
    """Draw matrices as panels of a page, or of several in a PDF; like `plot_alignment`. `weights` names what the colours are.

    Raises:
        UsageError: several pages for a picture that has one; or as there.
        DataError: nothing to draw; or as there.
    """
    kind, look = file_format(path), _Look.of(style)
    if not pages or not all(pages):
        raise DataError("There is nothing to draw: a picture needs at least one alignment.")
    if len(pages) > 1 and kind != "pdf":
        raise UsageError(f"A .{kind} has one page, but there are {len(pages)}: write a .pdf.")
    words = [label(word) for item in chain(*pages) for word in item.alignment.source + item.alignment.target]
    texts = [*words, *(item.title for item in chain(*pages))]
    # An SVG leaves the glyphs to its viewer, who may well have the fonts that this machine lacks.
    families = choose_families(texts, first=[add_font(font)] if font else [], warn=kind != "svg")
    with house_style(families):
        figures = (_draw(page, look, families, weights) for page in pages)
        if len(pages) > 1:
            save_pages(figures, path, dpi=dpi)
        else:
            save(next(figures), path, dpi=dpi)


def _padded(given: Sequence[T], filler: T, count: int) -> list[T]:
    """One for each panel, the missing last ones filled in."""
    if len(given) > count:
        raise ValueError(
            f"There are {counted(len(given), 'title')} or gold standards for {counted(count, 'alignment')}."
        )
    return [*given, *[filler] * (count - len(given))]


def _check_within(links: GoldLinks, alignment: Alignment) -> None:
    """Raises DataError at a gold link outside the matrix."""
    targets, sources = alignment.weights.shape
    for source, target in sorted(links.possible):
        if not (0 <= source < sources and 0 <= target < targets):
            pair = f"{sources} source and {counted(targets, 'target word')}"
            raise DataError(f"The gold link {source}-{target} lies outside its sentence pair of {pair}.")


@dataclass(frozen=True)
class _Look:
    """Colours of a style.

    Attributes:
        colormap: from weight 0 to 1.
        grid: lines between cells.
        outline: squares of gold links.
        halo: border that keeps the outline visible on any cell, if it needs one.
        zero, one: text on cells of small and of large weight.
        center: the window's centres.
        center_halo: their border.
    """

    colormap: Colormap
    grid: str
    outline: str
    halo: str | None
    zero: str
    one: str
    center: str
    center_halo: str

    @classmethod
    def of(cls, style: Style) -> Self:
        match style:
            case "color":
                return cls(
                    _BLUES, grid="white", outline=ORANGE, halo=None, zero=INK, one="white",
                    center=MAGENTA, center_halo="white",
                )  # fmt: skip
            case "grey":
                return cls(
                    _GREYS, grid="#404040", outline="white", halo="black", zero="white", one=INK,
                    center="white", center_halo="black",
                )  # fmt: skip
            case _:
                raise UsageError(f"There is no style '{style}' of heatmap; choose color or grey.")

    def square(self, x: float, y: float, side: float, *, sure: bool) -> Rectangle:
        """The mark of a gold link."""
        line = "solid" if sure else (0, (2.5, 1.6))
        square = Rectangle((x, y), side, side, fill=False, edgecolor=self.outline, linewidth=1.6, linestyle=line)
        if self.halo:
            square.set_path_effects([withStroke(linewidth=3.2, foreground=self.halo)])
        return square

    def draw_diamonds(self, axes: Axes, places: Sequence[tuple[float, float]], cell: float) -> None:
        """The marks of a window's centres, for cells of the given side in inches."""
        size = min(max(72 * cell * 0.26, 3.0), 7.5)
        x, y = zip(*places, strict=True) if places else ((), ())
        axes.plot(
            x, y, linestyle="none", marker="D", markersize=size * 0.8, color=self.center,
            markeredgecolor=self.center_halo, markeredgewidth=size / 7, clip_on=False,
        )  # fmt: skip


# --- drawing ----------------------------------------------------------------------------------------------------


def _draw(page: Sequence[Heatmap], look: _Look, families: Sequence[str], weights: str) -> Figure:
    panels = measure_panels([(item.alignment, item.title) for item in page], families)
    legend = _Legend.of(page, families)
    layout = Layout.arrange(panels, legend=legend.width)
    figure = Figure(figsize=(layout.width, layout.height), facecolor="white")
    annotated = all(max(item.alignment.weights.shape) <= ANNOTATED_UP_TO for item in page)
    for item, panel, (x, y), corner in zip(page, panels, layout.corners, layout.titles, strict=True):
        axes = _axes(figure, x, y, panel.width, panel.height)
        _draw_matrix(axes, item.alignment, panel, look)
        if annotated:
            _annotate(axes, item.alignment, look)
        _draw_links(axes, item.links, look)
        _draw_centers(axes, item.centers, panel, look, down=0.84 if annotated else 0.5)
        _write(figure, *corner, panel.title, TITLE_SIZE)
    _draw_bar(_axes(figure, *layout.bar), look, weights)
    if legend.entries:
        legend.draw(_axes(figure, *layout.legend, legend.width, LEGEND_UNIT), look)
    return figure


def _axes(figure: Figure, x: float, y: float, width: float, height: float) -> Axes:
    """Axes at a place given in inches from the top left corner."""
    page_width, page_height = figure.get_size_inches()
    bottom = page_height - y - height
    return figure.add_axes((x / page_width, bottom / page_height, width / page_width, height / page_height))


def _write(figure: Figure, x: float, y: float, text: str, size: float) -> None:
    """Text whose top left corner is at a place given in inches."""
    width, height = figure.get_size_inches()
    figure.text(x / width, 1 - y / height, text, fontsize=size, va="top", ha="left")


def _draw_matrix(axes: Axes, alignment: Alignment, panel: Panel, look: _Look) -> None:
    targets, sources = alignment.weights.shape
    thin = min(1.0, 72 * panel.cell / 20)
    axes.pcolormesh(alignment.weights, cmap=look.colormap, vmin=0, vmax=1, edgecolors=look.grid, linewidth=thin)
    axes.set(xlim=(sources, 0) if panel.turned else (0, sources), ylim=(targets, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=72 * LABEL_PAD, labelsize=panel.font_size)
    axes.xaxis.tick_top()
    axes.set_yticks(np.arange(targets) + 0.5, panel.target)
    if panel.slant:
        # Baselines in one line; moved the way they are read by half the height of a small letter, so that a word points at its
        # column.
        shift = 0.19 * panel.font_size / (72 * panel.cell)
        axes.set_xticks(np.arange(sources) + 0.5 + shift, panel.source, rotation=panel.slant, rotation_mode="anchor")
        for text in axes.get_xticklabels():
            text.set(ha="right" if panel.turned else "left", va="baseline")
    else:
        axes.set_xticks(np.arange(sources) + 0.5, panel.source)


def _annotate(axes: Axes, alignment: Alignment, look: _Look) -> None:
    """Write the weights into the cells, but for those that round to nothing."""
    for (target, source), weight in np.ndenumerate(alignment.weights):
        if weight >= 0.005:
            color = look.one if weight > 0.5 else look.zero
            axes.text(source + 0.5, target + 0.5, f"{weight:.2f}", color=color, fontsize=8, ha="center", va="center")


def _draw_links(axes: Axes, gold: GoldLinks, look: _Look) -> None:
    for source, target in sorted(gold.possible):
        axes.add_patch(look.square(source + 0.06, target + 0.06, 0.88, sure=(source, target) in gold.sure))


def _draw_centers(axes: Axes, centers: Matrix | None, panel: Panel, look: _Look, *, down: float) -> None:
    """So far down each row, below what is written into its cells."""
    places = [] if centers is None else [(x, row + down) for (row, _), x in np.ndenumerate(centers) if np.isfinite(x)]
    look.draw_diamonds(axes, places, panel.cell)


def _draw_bar(axes: Axes, look: _Look, label: str) -> None:
    """A slim labelled colour bar."""
    mapping = ScalarMappable(Normalize(0, 1), look.colormap)
    bar = axes.figure.colorbar(mapping, cax=axes, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(length=2, labelsize=8)
    bar.outline.set_linewidth(0.5)


@dataclass(frozen=True)
class _Legend:
    """What the marks on a page mean, in one line.

    Attributes:
        entries: mark, meaning and where it begins, in units.
        width: in inches; 0 for no legend.
    """

    entries: tuple[tuple[Mark, str, float], ...]
    width: float

    @classmethod
    def of(cls, page: Sequence[Heatmap], families: Sequence[str]) -> Self:
        """Only of marks that are there."""
        marks: tuple[tuple[Mark, str, bool], ...] = (
            ("sure", "sure link", any(item.links.sure for item in page)),
            ("possible", "possible link", any(item.links.possible - item.links.sure for item in page)),
            ("center", "window’s centre pₜ", any(item.centers is not None for item in page)),
        )
        entries: list[tuple[Mark, str, float]] = []
        start = 0.1
        for mark, meaning, is_there in marks:
            if is_there:
                entries.append((mark, meaning, start))
                start += 2.4 + text_width(meaning, LEGEND_SIZE, families) / 72 / LEGEND_UNIT
        return cls(tuple(entries), (start - 1) * LEGEND_UNIT if entries else 0.0)

    def draw(self, axes: Axes, look: _Look) -> None:
        """Into axes as wide as the legend and a unit high."""
        axes.set(xlim=(0, self.width / LEGEND_UNIT), ylim=(1, 0))
        axes.set_axis_off()
        for mark, meaning, start in self.entries:
            axes.add_patch(Rectangle((start, 0), 1, 1, facecolor=look.colormap(0.0), clip_on=False))
            if mark == "center":
                look.draw_diamonds(axes, [(start + 0.5, 0.5)], 1.5 * LEGEND_UNIT)
            else:
                axes.add_patch(look.square(start + 0.1, 0.1, 0.8, sure=mark == "sure"))
            axes.text(start + 1.4, 0.5, meaning, fontsize=LEGEND_SIZE, va="center")
