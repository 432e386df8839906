"""Plot BLEU against source length, one line per model (Bahdanau et al. 2015, figure 2; Luong et al. 2015, figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.plotting.fonts import choose_families, label, text_width
from nmt.plotting.style import FAINT, draw_grid, file_format, house_style, save

# Okabe and Ito's color-blind safe palette, without yellow, which is too pale on white.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7a5195")
_DASHES: tuple[tuple[float, tuple[float, ...]] | str, ...] = ("solid", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_FONT = 8.5  # points
_LINE = 1.35  # height of a line of text, in font sizes
_LEFT, _BELOW = 0.75, 0.8  # inches around the plot
_SAMPLE = (0.25, 0.6)  # begin and end of the line sample before a name, in inches


@dataclass(frozen=True)
class Line:
    """The line of one model.

    Attributes:
        name: label at the end of the line.
        values: BLEU in each bucket.
        group: lines of the same group share a color; if there is only one group, each line has its own.
        variant: lines of the same variant share dashes and marker.
    """

    name: str
    values: Sequence[float]
    group: str = ""
    variant: str = ""


def plot_by_length(
    lines: Sequence[Line], buckets: Sequence[str], counts: Sequence[int], output: Path, *, dpi: float = 150
) -> None:
    """Draw BLEU against source length, with the models' names at the ends of their lines.

    Args:
        lines: the models, each with a value for every bucket.
        buckets: names of the buckets, from short to long (`4–6`).
        counts: number of sentences in each bucket.
        output: .png, .pdf or .svg; the suffix chooses the format.
        dpi: dots per inch of a PNG.

    Raises:
        DataError: there is nothing to draw, or the picture cannot be written.
        UsageError: the suffix is unknown, or the resolution out of range.
    """
    file_format(output)
    if not lines or not buckets:
        raise DataError("There are no lines or no buckets: there is nothing to draw.")
    names = [label(line.name) for line in lines]
    families = choose_families(names)
    with house_style(families):
        save(_draw(lines, names, buckets, counts, families), output, dpi=dpi)


def _draw(
    lines: Sequence[Line], names: Sequence[str], buckets: Sequence[str], counts: Sequence[int], families: Sequence[str]
) -> Figure:
    """Draw the plot, and the names in a margin on its right."""
    names_width = _SAMPLE[1] + 0.2 + max(text_width(name, _FONT, families) for name in names) / 72
    plot_width = min(max(4.5, 0.85 * len(buckets)), 8.0)
    plot_height = max(3.4, 0.25 * len(lines))  # more lines need more room
    width, height = _LEFT + plot_width + names_width, _BELOW + plot_height + 0.25
    figure = Figure(figsize=(width, height), facecolor="white")
    bottom, share = _BELOW / height, plot_height / height
    plot = figure.add_axes((_LEFT / width, bottom, plot_width / width, share))
    margin = figure.add_axes(((_LEFT + plot_width) / width, bottom, names_width / width, share), sharey=plot)
    looks = _looks(lines)
    for line, look in zip(lines, looks, strict=True):
        plot.plot(range(len(buckets)), line.values, **look, clip_on=False, zorder=3)
    plot.set_ylim(0, 1.05 * max(max(line.values) for line in lines) or 1.0)
    _finish(plot, buckets, counts)
    margin.set_axis_off()
    margin.set_xlim(0, names_width)  # inches
    _write_names(margin, [line.values[-1] for line in lines], names, looks, step=_FONT * _LINE / 72 / plot_height)
    return figure


def _looks(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Color, dashes and marker of each line."""
    groups = list(dict.fromkeys(line.group for line in lines))
    variants = list(dict.fromkeys(line.variant for line in lines))
    looks = []
    for number, line in enumerate(lines):
        group = groups.index(line.group) if len(groups) > 1 else number
        variant = variants.index(line.variant) + group // len(_COLORS)  # a repeated color gets other dashes
        look = {"color": _COLORS[group % len(_COLORS)], "linestyle": _DASHES[variant % len(_DASHES)]}
        looks.append({**look, "marker": _MARKERS[variant % len(_MARKERS)], "markersize": 4.5, "linewidth": 1.5})
    return looks


def _finish(axes: Axes, buckets: Sequence[str], counts: Sequence[int]) -> None:
    axes.set_xticks(range(len(buckets)), buckets, fontsize=9)
    for place, count in enumerate(counts):
        below = {"xycoords": ("data", "axes fraction"), "xytext": (0, -19), "textcoords": "offset points"}
        axes.annotate(f"{count:,}", (place, 0), **below, ha="center", va="top", fontsize=7.5, color=FAINT)  # type: ignore[arg-type]
    axes.set_xlim(-0.25, len(buckets) - 1 + 0.1)
    axes.set_xlabel("words in the source sentence  (gray: how many sentences)", labelpad=17)
    axes.set_ylabel("BLEU")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    draw_grid(axes, "y")


def _write_names(
    axes: Axes, ends: Sequence[float], names: Sequence[str], looks: Sequence[dict[str, Any]], *, step: float
) -> None:
    """Write each name with a sample of its line, connected to the end of the line."""
    low, high = axes.get_ylim()
    places = low + (high - low) * _spread((np.array(ends) - low) / (high - low), step)
    for end, place, name, look in zip(ends, places, names, looks, strict=True):
        axes.plot([0, _SAMPLE[0]], [end, place], color=look["color"], linewidth=0.5, alpha=0.7, clip_on=False)
        axes.plot(_SAMPLE, [place, place], **look, markevery=[1], clip_on=False)
        axes.text(_SAMPLE[1] + 0.09, place, name, va="center_baseline", fontsize=_FONT)
    axes.set_ylim(low, high)


def _spread(ends: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Positions close to the ends, in the same order and at least a step apart, within 0 to 1 if there is room.

    Ends that are too close together form a block around their mean; blocks that then overlap are merged.
    """
    order = np.argsort(ends, kind="stable")
    blocks: list[list[float]] = []
    for end in ends[order].tolist():
        blocks.append([end])
        while len(blocks) > 1 and _first(blocks[-1], step) < _first(blocks[-2], step) + len(blocks[-2]) * step:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    places = np.empty(len(ends))
    places[order] = [_first(block, step) + number * step for block in blocks for number in range(len(block))]
    return places


def _first(block: Sequence[float], step: float) -> float:
    """The position of the lowest name of a block."""
    length = (len(block) - 1) * step
    return min(max(float(np.mean(block)) - length / 2, 0.0), max(1 - length, 0.0))
