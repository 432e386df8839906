"""Plot the learning curves of a run from its `metrics.jsonl`."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from nmt.errors import DataError
from nmt.evaluation.metrics import VALIDATION_SCORES
from nmt.plotting.fonts import BASE
from nmt.plotting.style import BLUE, FAINT, INK, ORANGE, draw_grid, file_format, house_style, save
from nmt.runtime.json_files import read_records

_KINDS = ("train", "valid")


@dataclass(frozen=True)
class Curves:
    """The learning curves of a run.

    Attributes:
        train, valid: perplexity by update.
        scores: validation scores by update, for each metric that was measured; keys are the metric's name and tokenizer.
        best: the update of the best validation; None before the first.
    """

    train: Mapping[int, float] = field(default_factory=dict)
    valid: Mapping[int, float] = field(default_factory=dict)
    scores: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    best: int | None = None


def read_curves(path: Path) -> Curves:
    """Read the metrics of a run.

    * An incomplete last line, left by a crash, is ignored.
    * If a resumed run repeats updates, the latest values count.
    * Values that are not finite are left out.
    * The average of the best checkpoints, logged at the end, is left out unless it is the best.

    Raises:
        DataError: the file cannot be read, or a line is not an entry of a log. The message gives its number.
    """
    entries = [entry for entry in _entries(path) if entry.get("best") or "note" not in entry]
    train, valid = ({entry["update"]: entry for entry in entries if entry["kind"] == kind} for kind in _KINDS)
    scores = {_label(key, valid): _values(valid, key) for key in VALIDATION_SCORES}
    return Curves(
        train=_values(train, "perplexity"),
        valid=_values(valid, "perplexity"),
        scores={label: values for label, values in scores.items() if values},
        best=max((update for update, entry in valid.items() if entry.get("best")), default=None),
    )


def plot_learning_curve(metrics_path: Path, output: Path) -> None:
    """Draw perplexity (training and validation, log scale), BLEU and chrF by update, with the best validation marked.

    There are panels only for what was measured.

    Args:
        metrics_path: `metrics.jsonl` of a run.
        output: .png, .pdf or .svg; the suffix chooses the format.

    Raises:
        DataError: the metrics cannot be read or are empty, or the picture cannot be written.
        UsageError: the suffix is unknown.
    """
    file_format(output)
    curves = read_curves(metrics_path)
    if not (curves.train or curves.valid or curves.scores):
        raise DataError(f"{metrics_path} holds no training or validation figures yet: there is nothing to draw.")
    with house_style([BASE]):
        save([_draw(curves)], output, dpi=150)


# --- reading ----------------------------------------------------------------------------------------------------


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """The training and validation lines of the file."""
    for number, entry in read_records(path):
        if entry.get("kind") not in _KINDS:
            continue
        figures = [entry.get(key, 0.0) for key in ("perplexity", *VALIDATION_SCORES)]
        if type(entry.get("update")) is not int or not all(
            isinstance(figure, int | float | None) for figure in figures
        ):
            raise DataError(f"{path}, line {number}: an entry must have 'update', and its figures must be numbers.")
        yield entry


def _label(key: str, entries: Mapping[int, Mapping[str, Any]]) -> str:
    """The name of a score, with BLEU's tokenizer if the log has it."""
    signatures = [entry["signatures"] for entry in entries.values() if isinstance(entry.get("signatures"), dict)]
    match = re.search(r"tok:([^|]+)", str(signatures[-1].get(key))) if signatures else None
    return f"{VALIDATION_SCORES[key]} ({match[1]})" if match else VALIDATION_SCORES[key]


def _values(entries: Mapping[int, Mapping[str, Any]], key: str) -> dict[int, float]:
    """The finite values of a key, in order of updates."""
    values = {update: entries[update].get(key) for update in sorted(entries)}
    return {update: float(value) for update, value in values.items() if value is not None and math.isfinite(value)}


# --- drawing ----------------------------------------------------------------------------------------------------


def _draw(curves: Curves) -> Figure:
    panels = 1 + len(curves.scores)
    figure = Figure(figsize=(7.5, 0.8 + 2.6 * panels), layout="constrained", facecolor="white")
    perplexity, *others = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    _line(perplexity, curves.train, color=FAINT, marker="", label="training")
    _line(perplexity, curves.valid, color=BLUE, marker="o", label="validation")
    perplexity.set_yscale("log")
    # Ticks at 1, 2, 5 times powers of ten, written as plain numbers.
    perplexity.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    perplexity.yaxis.set_major_formatter("{x:,.10g}")
    perplexity.yaxis.set_minor_formatter(NullFormatter())
    perplexity.set_ylabel("perplexity")
    draw_grid(perplexity)
    if not curves.scores:
        _mark_best(perplexity, curves.best, curves.valid)
    perplexity.legend(frameon=False, fontsize=9)
    for axes, (label, values) in zip(others, curves.scores.items(), strict=True):
        _line(axes, values, color=BLUE, marker="o", label="validation")
        axes.margins(y=0.2)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
        draw_grid(axes)
        _mark_best(axes, curves.best, values)
    lowest = [perplexity, *others][-1]
    lowest.set_xlabel("update")
    lowest.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    lowest.xaxis.set_major_formatter("{x:,.0f}")
    return figure


def _mark_best(axes: Axes, update: int | None, values: Mapping[int, float]) -> None:
    """Mark the best validation with a star and its value."""
    if update is None or update not in values:
        return
    axes.plot([update], [values[update]], marker="*", markersize=14, color=ORANGE, linestyle="", zorder=3)
    late = update > (min(values) + max(values)) / 2
    (dx, side), text = (-10, "right") if late else (10, "left"), f"best {values[update]:.2f} at update {update:,}"
    axes.annotate(
        text, (update, values[update]), xytext=(dx, 8), textcoords="offset points", ha=side, fontsize=9, color=INK
    )


def _line(axes: Axes, values: Mapping[int, float], *, color: str, marker: str, label: str) -> None:
    if not values:
        return
    (line,) = axes.plot(list(values), list(values.values()), color=color, markersize=4, linewidth=1.4, label=label)
    line.set_marker("o" if len(values) == 1 else marker)  # a single point needs a marker
