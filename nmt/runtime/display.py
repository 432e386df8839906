"""A progress bar that fits the terminal: always the bar and the time left, then as many figures as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

_GAP = "  "
_SHORT_BAR, _LONG_BAR, _WIDE = 12, 24, 100  # characters; terminals from _WIDE on get the long bar


@dataclass(frozen=True)
class _Fitting:
    """One line with as many of the first figures as fit. If not even the first one fits, it is cut."""

    figures: Sequence[str]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = len(_GAP.join(self.figures))
        return Measurement(min(width, len(self.figures[0])), width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = len(self.figures)
        while count > 1 and len(_GAP.join(self.figures[:count])) > options.max_width:
            count -= 1
        yield Text(_GAP.join(self.figures[:count]), no_wrap=True, overflow="ellipsis")


class FiguresColumn(ProgressColumn):
    """Shows the task's field `figures`, the most important first. Only this column shrinks in a narrow terminal."""

    def render(self, task: Task) -> _Fitting:
        return _Fitting([figure for figure in task.fields["figures"] if figure] or [""])


def fitting_progress(console: Console, *, counts: str, time: ProgressColumn | None = None, transient: bool) -> Progress:
    """A progress bar with counts, a time column and the task's `figures`.

    Args:
        console: where to show it.
        counts: the counts, in rich's markup.
        time: the time column; the time left by default.
        transient: whether the bar disappears at the end.
    """
    whole = Column(no_wrap=True)
    times = (TimeRemainingColumn(table_column=whole), TextColumn("left ")) if time is None else (time,)
    return Progress(
        BarColumn(_LONG_BAR if console.width >= _WIDE else _SHORT_BAR, table_column=whole),
        TextColumn(counts),
        *times,
        FiguresColumn(),
        console=console,
        transient=transient,
        refresh_per_second=4,
    )
