"""A progress bar on stderr, for work that takes its time while a person watches."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from nmt.wording import counted

ItemT = TypeVar("ItemT")

DELAY = 2.0
"""Seconds that work may take before a bar appears."""


def is_watched(*, quiet: bool) -> bool:
    """Whether a person sees what is written on stderr, and wants to."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def timed(items: Iterable[ItemT], what: str, *, quiet: bool) -> Iterator[ItemT]:
    """The items, one a sentence, as they come; after the last one stderr says how many they were, and how many a second."""
    start, count = time.perf_counter(), 0
    for item in items:
        count += 1
        yield item
    seconds = max(time.perf_counter() - start, 1e-9)
    if not quiet and sys.stderr is not None:
        print(
            f"nmt: {counted(count, 'line')} {what} in {seconds:,.1f} s: {count / seconds:,.1f} sentences/s",
            file=sys.stderr,
        )


def shown(items: Iterable[ItemT], what: str, *, total: int | None, quiet: bool) -> Iterator[ItemT]:
    """The items as they come; after two seconds a bar on a watched stderr counts them, and is gone when they end."""
    if not is_watched(quiet=quiet):
        yield from items
        return
    from rich.console import Console
    from rich.progress import TimeElapsedColumn

    from nmt.display import fitting_progress

    counts, time = ("{task.completed:,}/{task.total:,}", None) if total else ("{task.completed:,}", TimeElapsedColumn())
    bar = fitting_progress(Console(stderr=True), counts=counts, time=time, transient=True)
    task = bar.add_task(what, total=total, figures=[what])
    timer = threading.Timer(DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        for item in items:
            yield item
            bar.advance(task)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
