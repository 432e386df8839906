"""Progress bars and timings on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from nmt.runtime.wording import counted

if TYPE_CHECKING:
    from rich.progress import Progress

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
    is_live, start, shown, done = is_watched(quiet=quiet), perf_counter(), 0.0, 0
    bar: Progress | None = None
    try:
        for item in items:
            yield item
            done += size(item)
            seconds = perf_counter() - start
            if quiet or seconds < DELAY:
                continue
            if is_live:
                bar = bar or _start_bar(what, total)
                rate = f"  {done / seconds:,.0f} {unit}/s" if unit else ""
                bar.update(bar.task_ids[0], completed=done, description=what + rate)
            elif unit and total and (done == total or seconds - shown > PAUSE):
                shown, speed = seconds, done / seconds
                left = "" if done == total else f", {(total - done) / speed:,.0f} s left"
                sys.stderr.write(f"nmt: {what}: {done:,} of {total:,} {unit}, {speed:,.0f} {unit}/s{left}\n")
    finally:
        if bar is not None:
            bar.stop()


def _start_bar(what: str, total: int | None) -> Progress:
    """A bar of one task, with the time left, or without a total the time up to now."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    times = (TimeRemainingColumn(), TextColumn("left ")) if total else (TimeElapsedColumn(),)
    counts = TextColumn("{task.completed:,}/{task.total:,}" if total else "{task.completed:,}")
    figures = TextColumn("{task.description}", markup=False)
    bar = Progress(BarColumn(16), counts, *times, figures, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
