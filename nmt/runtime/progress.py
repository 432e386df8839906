"""Progress bars and timings on stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from nmt.runtime.wording import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

ItemT = TypeVar("ItemT")

DELAY = 2.0
"""Seconds of work before a bar appears."""
PAUSE = 30.0
"""Seconds between two plain lines."""


def is_watched(*, quiet: bool) -> bool:
    """Whether to show live progress: stderr is a terminal, and the command is not quiet."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def timed(items: Iterable[ItemT], what: str, *, quiet: bool) -> Iterator[ItemT]:
    """Pass items (one per sentence) on; after the last one print their number and the speed on stderr."""
    start, count = perf_counter(), 0
    for item in items:
        count += 1
        yield item
    seconds = max(perf_counter() - start, 1e-9)
    if not quiet and sys.stderr is not None:
        sys.stderr.write(
            f"nmt: {counted(count, 'line')} {what} in {seconds:,.1f} s: {count / seconds:,.1f} sentences/s\n"
        )


def progress_bar(console: Console, counts: str, *times: ProgressColumn, transient: bool) -> Progress:
    """A bar, counts in rich's markup, columns of time, and as much of a task's field `figures` as fits the terminal."""
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    figures = TextColumn("{task.fields[figures]}", markup=False, table_column=rest)
    bar = BarColumn(16)
    return Progress(bar, TextColumn(counts), *times, figures, console=console, transient=transient, expand=True)


def with_progress(
    items: Iterable[ItemT],
    what: str,
    total: int | None,
    *,
    quiet: bool,
    size: Callable[[ItemT], int] = lambda _: 1,
    unit: str | None = None,
) -> Iterator[ItemT]:
    """Pass items on, with a bar on a terminal, elsewhere with a plain line every half minute if a unit is given.

    Nothing is shown of what takes less than two seconds.

    Args:
        items: the items.
        what: what is being done.
        total: the sum of their sizes, if it is known.
        quiet: show nothing.
        size: how much an item counts.
        unit: what is counted, to show the rate too.
    """
    if not is_watched(quiet=quiet):
        yield from items if quiet or unit is None or total is None else _with_lines(items, what, total, size, unit)
        return
    from rich.console import Console
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    times = (TimeRemainingColumn(), TextColumn("left ")) if total else (TimeElapsedColumn(),)
    counts = "{task.completed:,}/{task.total:,}" if total else "{task.completed:,}"
    bar = progress_bar(Console(stderr=True), counts, *times, transient=True)
    task = bar.add_task(what, total=total, figures=what)
    timer = threading.Timer(DELAY, bar.start)
    timer.daemon = True
    timer.start()
    start, done = perf_counter(), 0
    try:
        for item in items:
            yield item
            done += size(item)
            rate = f"  {done / max(perf_counter() - start, 1e-9):,.0f} {unit}/s" if unit else ""
            bar.update(task, completed=done, figures=what + rate)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _with_lines(
    items: Iterable[ItemT], what: str, total: int, size: Callable[[ItemT], int], unit: str
) -> Iterator[ItemT]:
    start = shown = perf_counter()
    done = 0
    for item in items:
        yield item
        done += size(item)
        now = perf_counter()
        is_last = done == total and now - start > DELAY
        if sys.stderr is not None and (is_last or now - shown > PAUSE):
            shown, rate = now, done / (now - start)
            left = "" if is_last else f", {(total - done) / rate:,.0f} s left"
            sys.stderr.write(f"nmt: {what}: {done:,} of {total:,} {unit}, {rate:,.0f} {unit}/s{left}\n")
