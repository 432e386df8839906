"""Plot BLEU against source length, one line per model (Bahdanau et al. 2015, figure 2; Luong et al. 2015, figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.errors import DataError
from nmt.plotting.fonts import choose_families, label
from nmt.plotting.style import draw_grid, file_format, house_style, save

# Of Okabe and Ito's color-blind safe palette.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000")
_MARKERS = ("o", "s", "^", "D", "v")
_GRAY = "#cfcfcf"


@dataclass(frozen=True)
class ScoreLine:
    """The line of one model.

    Attributes:
        name: label of the line.
        values: BLEU in each bucket.
        group: of many lines, the best of a group stands for it.
    """

    name: str
    values: Sequence[float]
    group: str = ""


def plot_by_length(lines: Sequence[ScoreLine], buckets: Sequence[str], counts: Sequence[int], output: Path) -> None:
    """Draw BLEU against source length, with the models' names in the order in which their lines end.

    Five lines at most can be told apart. Of more, five of the groups' best have colors and names, from the best to the worst;
    the others are gray.

    Args:
        lines: the models, each with a value for every bucket.
        buckets: names of the buckets, from short to long (`4–6`).
        counts: number of sentences in each bucket.
        output: .png, .pdf or .svg; the suffix chooses the format.

    Raises:
        DataError: there is nothing to draw, or the picture cannot be written.
        UsageError: the suffix is unknown.
    """
    file_format(output)
    if not lines or not buckets:
        raise DataError("There are no lines or no buckets: there is nothing to draw.")
    with house_style(choose_families([label(line.name) for line in lines])):
        save([_draw(lines, buckets, counts)], output, dpi=150)


def _named(lines: Sequence[ScoreLine]) -> list[ScoreLine]:
    """The lines that get colors and names."""
    if len(lines) <= len(_COLORS):
        return list(lines)
    ranked = sorted(lines, key=lambda line: -fmean(line.values))
    if len({line.group for line in ranked}) > 1:
        best: dict[str, ScoreLine] = {}
        for line in ranked:
            best.setdefault(line.group, line)
        ranked = list(best.values())
    chosen = {round(rank) for rank in np.linspace(0, len(ranked) - 1, len(_COLORS))}
    return [ranked[rank] for rank in sorted(chosen)]


def _draw(lines: Sequence[ScoreLine], buckets: Sequence[str], counts: Sequence[int]) -> Figure:
    """Draw the plot with the names on its right, in the order in which the lines end."""
    figure = Figure(figsize=(min(max(6, 1.5 + 0.85 * len(buckets)), 9.5), 4.4), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    named = sorted(_named(lines), key=lambda line: -line.values[-1])
    curves = [
        axes.plot(line.values, color=color, marker=marker, markersize=4.5, linewidth=1.5, clip_on=False, zorder=3)[0]
        for line, color, marker in zip(named, _COLORS, _MARKERS, strict=False)
    ]
    names = [label(line.name) for line in named]
    if unnamed := [line for line in lines if line not in named]:
        grays = [axes.plot(line.values, color=_GRAY, linewidth=1, zorder=2)[0] for line in unnamed]
        curves, names = [*curves, grays[0]], [*names, f"{len(unnamed)} more"]
    axes.set_ylim(0, 1.05 * max(max(line.values) for line in lines) or 1.0)
    ticks = [f"{bucket}\n({count:,})" for bucket, count in zip(buckets, counts, strict=True)]
    axes.set_xticks(range(len(buckets)), ticks, fontsize=9)
    axes.set_xlim(-0.25, len(buckets) - 1 + 0.1)
    axes.set_xlabel("words in the source sentence  (how many sentences)")
    axes.set_ylabel("BLEU")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    draw_grid(axes, "y")
    axes.legend(
        curves, names, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8.5, handlelength=3
    )
    return figure
