"""Alignment heatmaps like figure 3 of Bahdanau et al. (2015): source words on top, target words on the left."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from nmt.errors import DataError, UsageError
from nmt.evaluation.alignment import Alignment, GoldLinks
from nmt.plotting.fonts import choose_families, label
from nmt.plotting.layout import LABEL_PAD, TITLE_SIZE, Layout, Panel, cell_side
from nmt.plotting.style import INK, ORANGE, file_format, house_style, save

Gold = GoldLinks | AbstractSet[tuple[int, int]]
Style = Literal["color", "grey"]
T = TypeVar("T")

ANNOTATED_UP_TO = 12  # words; in larger matrices, figures in the cells are noise

_BLUES = LinearSegmentedColormap.from_list(
    "nmt-blues", ["#edf2f8", "#c5d9ec", "#8fbbdc", "#5296c8", "#246aa8", "#0f427d", "#08264f"]
)
_GREYS = LinearSegmentedColormap.from_list("nmt-greys", ["black", "white"])


def plot_alignment(
    alignment: Alignment | Sequence[Alignment],
    path: Path,
    *,
    title: str | Sequence[str] | None = None,
    gold: Gold | Sequence[Gold | None] | None = None,
    style: Style = "color",
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
        dpi: dots an inch of a PNG.

    Raises:
        UsageError: an unknown suffix or style, or a resolution out of range.
        DataError: an alignment without words, gold links outside it, or a file that cannot be written.
        ValueError: more titles or gold standards than panels.
    """
    kind, look = file_format(path), _Look.of(style)
    alignments = [alignment] if isinstance(alignment, Alignment) else list(alignment)
    titles = [title] if isinstance(title, str) else list(title or ())
    golds = [gold] if isinstance(gold, GoldLinks | AbstractSet) else list(gold or ())
    if not alignments or not all(item.weights.size for item in alignments):
        raise DataError("There is nothing to draw: an alignment needs at least one source and one target word.")
    words = [label(word) for item in alignments for word in item.source + item.target]
    # An SVG leaves the glyphs to its viewer, who may well have the fonts that this machine lacks.
    families = choose_families([*titles, *words], warn=kind != "svg")
    count, cell = len(alignments), cell_side(alignments)
    links = [_checked(gold, item) for item, gold in zip(alignments, _padded(golds, None, count), strict=True)]
    with house_style(families):
        headed = zip(alignments, _padded(titles, "", count), strict=True)
        panels = [Panel.measure(item, heading, cell, families) for item, heading in headed]
        save(_draw(alignments, panels, links, look), path, dpi=dpi)


def _padded(given: Sequence[T], filler: T, count: int) -> list[T]:
    """One for each panel, the missing last ones filled in."""
    if len(given) > count:
        raise ValueError(f"There are {len(given)} titles or gold standards for {count} alignments.")
    return [*given, *[filler] * (count - len(given))]


def _checked(gold: Gold | None, alignment: Alignment) -> GoldLinks | None:
    """The gold links of a panel, all of which lie in its matrix."""
    if gold is None:
        return None
    links = gold if isinstance(gold, GoldLinks) else GoldLinks(frozenset(gold), frozenset())
    targets, sources = alignment.weights.shape
    for source, target in sorted(links.possible):
        if not (0 <= source < sources and 0 <= target < targets):
            pair = f"{sources} source and {targets} target words"
            raise DataError(f"The gold link {source}-{target} lies outside its sentence pair of {pair}.")
    return links


@dataclass(frozen=True)
class _Look:
    """Colours of a style.

    Attributes:
        colormap: from weight 0 to 1.
        grid: lines between cells.
        outline: squares of gold links.
        halo: border that keeps the outline visible on any cell, if it needs one.
        zero, one: text on cells of small and of large weight.
    """

    colormap: Colormap
    grid: str
    outline: str
    halo: str | None
    zero: str
    one: str

    @classmethod
    def of(cls, style: Style) -> Self:
        match style:
            case "color":
                return cls(_BLUES, grid="white", outline=ORANGE, halo=None, zero=INK, one="white")
            case "grey":
                return cls(_GREYS, grid="#404040", outline="white", halo="black", zero="white", one=INK)
            case _:
                raise UsageError(f"There is no style '{style}' of heatmap; choose color or grey.")

    def square(self, x: float, y: float, side: float, *, sure: bool) -> Rectangle:
        """The mark of a gold link."""
        line = "solid" if sure else (0, (2.5, 1.6))
        square = Rectangle((x, y), side, side, fill=False, edgecolor=self.outline, linewidth=1.6, linestyle=line)
        if self.halo:
            square.set_path_effects([withStroke(linewidth=3.2, foreground=self.halo)])
        return square


# --- drawing ----------------------------------------------------------------------------------------------------


def _draw(
    alignments: Sequence[Alignment], panels: Sequence[Panel], links: Sequence[GoldLinks | None], look: _Look
) -> Figure:
    layout = Layout.arrange(panels, legend=any(links))
    figure = Figure(figsize=(layout.width, layout.height), facecolor="white")
    for alignment, panel, gold, (x, y) in zip(alignments, panels, links, layout.corners, strict=True):
        axes = _axes(figure, x, y, panel.width, panel.height)
        _draw_matrix(axes, alignment, panel, look)
        for square in _squares(gold, look):
            axes.add_patch(square)
        _write(figure, x - panel.left + LABEL_PAD, y - panel.top, panel.title, TITLE_SIZE)
    _draw_bar(_axes(figure, *layout.bar), look)
    if any(links):
        _draw_legend(figure, *layout.legend, look)
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
    axes.set(xlim=(0, sources), ylim=(targets, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=72 * LABEL_PAD, labelsize=panel.font_size)
    axes.xaxis.tick_top()
    axes.set_yticks(np.arange(targets) + 0.5, panel.target)
    if panel.slant:
        # Baselines in one line; moved right by half the height of a small letter, so that a word points at its column.
        shift = 0.19 * panel.font_size / (72 * panel.cell)
        axes.set_xticks(np.arange(sources) + 0.5 + shift, panel.source, rotation=panel.slant, rotation_mode="anchor")
        for text in axes.get_xticklabels():
            text.set(ha="left", va="baseline")
    else:
        axes.set_xticks(np.arange(sources) + 0.5, panel.source)
    if max(targets, sources) <= ANNOTATED_UP_TO:
        _annotate(axes, alignment, look)


def _annotate(axes: Axes, alignment: Alignment, look: _Look) -> None:
    """Write the weights into the cells, but for those that round to nothing."""
    for (target, source), weight in np.ndenumerate(alignment.weights):
        if weight >= 0.005:
            color = look.one if weight > 0.5 else look.zero
            axes.text(source + 0.5, target + 0.5, f"{weight:.2f}", color=color, fontsize=8, ha="center", va="center")


def _squares(gold: GoldLinks | None, look: _Look) -> Iterator[Rectangle]:
    for source, target in sorted(gold.possible if gold else ()):
        yield look.square(source + 0.06, target + 0.06, 0.88, sure=gold is not None and (source, target) in gold.sure)


def _draw_bar(axes: Axes, look: _Look) -> None:
    """A slim labelled colour bar."""
    mapping = ScalarMappable(Normalize(0, 1), look.colormap)
    bar = axes.figure.colorbar(mapping, cax=axes, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.set_label("attention weight", fontsize=9)
    bar.ax.tick_params(length=2, labelsize=8)
    bar.outline.set_linewidth(0.5)


def _draw_legend(figure: Figure, x: float, y: float, look: _Look) -> None:
    """What solid and dashed squares mean."""
    axes = _axes(figure, x, y, 2.8, 0.2)
    axes.set(xlim=(0, 14), ylim=(1, 0))
    axes.set_axis_off()
    for start, sure, meaning in ((0.1, True, "sure link"), (6.0, False, "possible link")):
        axes.add_patch(look.square(start, 0.1, 0.8, sure=sure)).set_clip_on(False)
        axes.text(start + 1.3, 0.5, meaning, fontsize=9, va="center")
