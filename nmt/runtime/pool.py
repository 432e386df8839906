"""The pool: run a function on many tasks, in forked processes of one thread each.

A step of search is too small to share: two processes use two cores, two threads leave a third of them idle. Forked processes
share the memory of weights and text, and start at once. Each has a pipe of its own: the pools of Python and of loky have one for all
results, whose reader waits for ever once a process is killed in the middle of a result.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import count, islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar, cast

import torch

from nmt.errors import DataError

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

_LOST = "A process was killed, perhaps because memory ran out: end other programs, or try fewer --threads or --batch-tokens."
os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))  # OpenMP waits for threads, which no fork survives


class Pool(AbstractContextManager["Pool[TaskT, ResultT]"], Generic[TaskT, ResultT]):
    """Runs a function on tasks in up to `processes` processes. Use it as a context manager, which ends them.

    It runs in this process while there is one task at a time, and where it cannot fork: beyond Linux, in a daemon, after using CUDA if
    the function computes with torch, and in threads, since a fork inherits the locks that other threads hold.
    """

    def __init__(self, run: Callable[[TaskT], ResultT], processes: int, *, computes: bool = True) -> None:
        is_main = threading.current_thread() is threading.main_thread() and not multiprocessing.current_process().daemon
        uses_cuda = computes and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        self._run, self._most = run, processes if sys.platform == "linux" and is_main and not uses_cuda else 1
        self._processes: dict[Connection, BaseProcess] = {}
        self._busy: dict[Connection, int] = {}
        self._numbers = count()
        self._waiting: deque[tuple[int, TaskT]] = deque()
        self._results: dict[int, ResultT] = {}

    def __exit__(self, *_: object) -> None:
        for end, process in self._processes.items():
            process.kill()
            process.join()
            end.close()

    def map(self, tasks: Iterable[TaskT]) -> Iterator[ResultT]:
        """Yield the results of all tasks in order. At most four tasks per process are read ahead. Raises as `collect` does."""
        remaining, previous = iter(tasks), list[int]()
        while group := list(islice(remaining, 2 * self._most)):
            previous, complete = self.submit(group), previous
            yield from self.collect(complete)
        yield from self.collect(previous)

    def submit(self, tasks: Sequence[TaskT]) -> list[int]:
        """Begin tasks and return their numbers. The first group of several tasks starts processes."""
        numbers = list(islice(self._numbers, len(tasks)))
        self._waiting.extend(zip(numbers, tasks, strict=True))
        if min(self._most, len(tasks)) > 1 and not self._processes:
            forks = multiprocessing.get_context("fork")
            for _ in range(min(self._most, len(tasks))):
                ours, theirs = forks.Pipe()
                process = forks.Process(target=_serve, args=(self._run, theirs, [*self._processes, ours]), daemon=True)
                process.start()
                theirs.close()
                self._processes[ours] = process
        self._send()
        return numbers

    def collect(self, numbers: Sequence[int]) -> list[ResultT]:
        """The results of tasks. Raises DataError if a process was killed, and what the function raises."""
        while any(number not in self._results for number in numbers):
            if self._processes:
                self._receive()
                self._send()
            else:
                number, task = self._waiting.popleft()
                self._results[number] = self._run(task)
        return [self._results.pop(number) for number in numbers]

    def _send(self) -> None:
        """Give each idle process a task."""
        for end in self._processes:
            if self._waiting and end not in self._busy:
                self._busy[end], task = self._waiting.popleft()
                with suppress(OSError):  # it was killed, as `_receive` will see
                    end.send(task)

    def _receive(self) -> None:
        """Wait for a result."""
        for end in cast(list[Connection], wait(self._busy)):
            try:
                result, error = end.recv()
            except (EOFError, OSError):
                raise DataError(_LOST) from None
            if error is not None:
                raise error
            self._results[self._busy.pop(end)] = result


def _serve(run: Callable[[Any], Any], end: Connection, inherited: Sequence[Connection]) -> None:
    """Run tasks until the parent is gone. A pipe is closed when all inherited copies of its end are."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    gc.freeze()  # a garbage collection of inherited objects would copy their memory pages
    for copied in inherited:
        copied.close()
    with suppress(EOFError, OSError):
        while True:
            task, result, failure = end.recv(), None, None
            try:
                result = run(task)
            except Exception as error:  # noqa: BLE001 -- raised again by the parent
                failure = error
            end.send((result, failure))
