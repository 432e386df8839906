"""Batches decoded side by side, by processes of one thread each.

A step of search makes many small products and hundreds of operations that are too small to share: one process with two threads
leaves a third of two cores idle, two processes do not. The processes are forks, so that all read the same weights.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Generic, TypeVar

import torch

from nmt.errors import DataError

TaskT = TypeVar("TaskT")
FoundT = TypeVar("FoundT")

_EACH = 2
"""Tasks that a process must have to do for it to be worth starting."""


class Workers(Generic[TaskT, FoundT]):
    """A function, run by up to `most` processes once there is enough to do; by this one until then, and where there are no forks.

    `prepare` makes what they share, and runs before there are any. Used as a context manager, it ends its processes.
    """

    def __init__(self, run: Callable[[TaskT], FoundT], most: int, prepare: Callable[[], None]) -> None:
        self._run, self._prepare = run, prepare
        self._most = most if sys.platform == "linux" else 1
        self._ends: list[Connection] = []
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> Workers[TaskT, FoundT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A process ends when nobody can send it anything any more; what it is at is of no use if something failed."""
        for end, process in zip(self._ends, self._processes, strict=True):
            if kind is not None:
                process.kill()
            end.close()
            process.join()
        self._ends, self._processes = [], []

    def map(self, tasks: Sequence[TaskT]) -> Iterator[FoundT]:
        """What the function makes of each task, in their order.

        Raises:
            DataError: a process was killed.
            Exception: what the function raises.
        """
        if not self._ends:
            self._start(min(self._most, len(tasks) // _EACH))
        return self._shared(tasks) if self._ends else map(self._run, tasks)

    def _start(self, count: int) -> None:
        if count < 2:
            return
        self._prepare()
        forks = multiprocessing.get_context("fork")
        for _ in range(count):
            ours, theirs = forks.Pipe()
            self._ends.append(ours)
            process = forks.Process(target=_serve, args=(self._run, theirs, tuple(self._ends)), daemon=True)
            process.start()
            self._processes.append(process)
            theirs.close()

    def _shared(self, tasks: Sequence[TaskT]) -> Iterator[FoundT]:
        """Each process has one task at a time, and gets the next when it is done."""
        waiting = iter(enumerate(tasks))
        busy: dict[Connection, int] = {}
        found: dict[int, FoundT] = {}
        for end in self._ends:
            _give(end, waiting, busy)
        for number in range(len(tasks)):
            while number not in found:
                for end in [each for each in wait(list(busy)) if isinstance(each, Connection)]:
                    found[busy.pop(end)] = _take(end)
                    _give(end, waiting, busy)
            yield found.pop(number)


def _give(end: Connection, waiting: Iterator[tuple[int, Any]], busy: dict[Connection, int]) -> None:
    """Send the next task, if there is one."""
    for number, task in waiting:
        with _alive():
            end.send(task)
        busy[end] = number
        return


def _take(end: Connection) -> Any:
    with _alive():
        found, error = end.recv()
    if error is not None:
        raise error
    return found


@contextmanager
def _alive() -> Iterator[None]:
    """Say what it means that nobody is at the other end."""
    try:
        yield
    except (EOFError, OSError):
        raise DataError(
            "A process that decodes was killed, perhaps because memory ran out: try fewer --batch-tokens, or --threads 1."
        ) from None


def _serve(run: Callable[[Any], Any], end: Connection, others: Sequence[Connection]) -> None:
    """Run tasks until the other end is closed; those that this process inherited are closed here, lest they stay open."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    for other in others:
        other.close()
    with suppress(EOFError, OSError):  # nobody is at the other end any more
        while True:
            end.send(_answer(run, end.recv()))


def _answer(run: Callable[[Any], Any], task: Any) -> tuple[Any, Exception | None]:
    """What the function finds or raises."""
    try:
        return run(task), None
    except Exception as error:  # noqa: BLE001 -- raised again where the answer is taken
        return None, error
