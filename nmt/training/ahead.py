"""Compute what a loop needs next in a thread, while the loop works on what came before."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

DEPTH = 3
"""Most results that wait for the loop."""
_busy = threading.Lock()
"""Held while the thread computes. A fork waits for it, so that no lock inside a library stays closed in the new process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_busy.acquire, after_in_parent=_busy.release, after_in_child=_busy.release)


def ahead(compute: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> Generator[ResultT]:
    """Yield the result of each item, in order. An exception is raised where its result is due.

    The thread ends with the iterator: close it where the loop may end early.
    """

    def run(item: ItemT) -> ResultT:
        with _busy:
            return compute(item)

    pending: deque[Future[ResultT]] = deque()
    with ThreadPoolExecutor(1, "nmt-ahead") as pool:
        try:
            for item in items:
                pending.append(pool.submit(run, item))
                if len(pending) > DEPTH:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
