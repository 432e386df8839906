"""Plot BLEU against source length, one line per model (Bahdanau et al. 2015, figure 2; Luong et al. 2015, figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.errors import DataError
from nmt.plotting.fonts import choose_families, label
from nmt.plotting.style import draw_grid, file_format, house_style, save

# Okabe and Ito's color-blind safe palette, without yellow, which is too pale on white.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7a5195")
_DASHES: tuple[tuple[float, tuple[float, ...]] | str, ...] = ("solid", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class ScoreLine:
    """The line of one model.

    Attributes:
        name: label of the line.
        values: BLEU in each bucket.
        group: lines of the same group share a color; if there is only one group, each line has its own.
        variant: lines of the same variant share dashes and marker.
    """

    name: str
    values: Sequence[float]
    group: str = ""
    variant: str = ""


def plot_by_length(
    lines: Sequence[ScoreLine], buckets: Sequence[str], counts: Sequence[int], output: Path, *, dpi: float = 150
) -> None:
    """Draw BLEU against source length, with the models' names in the order in which their lines end.

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
    with house_style(choose_families(names)):
        save([_draw(lines, names, buckets, counts)], output, dpi=dpi)


def _draw(lines: Sequence[ScoreLine], names: Sequence[str], buckets: Sequence[str], counts: Sequence[int]) -> Figure:
    """Draw the plot with the names on its right, in the order in which the lines end."""
    # Of more lines than fit beside it, the names need more room.
    size = min(max(6, 1.5 + 0.85 * len(buckets)), 9.5), max(4.4, 1.2 + 0.22 * len(lines))
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    groups = list(dict.fromkeys(line.group for line in lines))
    variants = list(dict.fromkeys(line.variant for line in lines))
    curves = []
    for number, line in enumerate(lines):
        group = groups.index(line.group) if len(groups) > 1 else number
        variant = variants.index(line.variant) + group // len(_COLORS)  # a repeated color gets other dashes
        curves += axes.plot(
            line.values, color=_COLORS[group % len(_COLORS)], linestyle=_DASHES[variant % len(_DASHES)],
            marker=_MARKERS[variant % len(_MARKERS)], markersize=4.5, linewidth=1.5, clip_on=False, zorder=3,
        )  # fmt: skip
    axes.set_ylim(0, 1.05 * max(max(line.values) for line in lines) or 1.0)
    ticks = [f"{bucket}\n({count:,})" for bucket, count in zip(buckets, counts, strict=True)]
    axes.set_xticks(range(len(buckets)), ticks, fontsize=9)
    axes.set_xlim(-0.25, len(buckets) - 1 + 0.1)
    axes.set_xlabel("words in the source sentence  (how many sentences)")
    axes.set_ylabel("BLEU")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    draw_grid(axes, "y")
    order = sorted(range(len(lines)), key=lambda number: -lines[number].values[-1])
    axes.legend(
        [curves[number] for number in order], [names[number] for number in order], loc="center left",
        bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8.5, handlelength=3,
    )  # fmt: skip
    return figure
