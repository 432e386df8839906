"""Batches decoded side by side, by processes of one thread each.

A step of search makes many small products and hundreds of operations that are too small to share: one process with two threads
leaves a third of two cores idle, two processes do not. The processes are forks, so that all read the same weights.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
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
_OPENED = 2
"""Groups that are in work at a time."""


def _go_on_alone() -> None:
    """Compute with one thread in a process that was forked.

    OpenMP's threads do not outlive a fork, but its pool there still waits for them: two threads would hang in the child of a
    process that has computed with two.
    """
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_go_on_alone)


def can_fork() -> bool:
    """Whether this process may fork workers: a daemon may not, and CUDA does not work in the fork of a process that has used it."""
    uses_cuda: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return sys.platform == "linux" and not uses_cuda and not multiprocessing.current_process().daemon


class Workers(Generic[TaskT, FoundT]):
    """A function, run by up to `most` processes once there is enough to do; by this one until then, and where there are no forks.

    A daemon, such as a process of `multiprocessing.Pool`, may start none either.

    Used as a context manager, it ends its processes.
    """

    def __init__(self, run: Callable[[TaskT], FoundT], most: int) -> None:
        self._run = run
        self._most = most if can_fork() else 1
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
        for process in self._processes:
            process.join()
        self._ends, self._processes = [], []

    def map(self, groups: Iterable[Sequence[TaskT]]) -> Iterator[list[FoundT]]:
        """What the function makes of the tasks of each group, in their order.

        Processes that find nothing left to do in one group begin the next one, which is only then asked for.

        Raises:
            DataError: a process was killed.
            Exception: what the function raises.
        """
        coming = iter(groups)
        for group in coming:
            if not self._ends:
                self._start(min(self._most, len(group) // _EACH))
            if self._ends:
                yield from self._shared(chain([group], coming))
            else:
                yield [self._run(task) for task in group]

    def _start(self, count: int) -> None:
        if count < 2:
            return
        forks = multiprocessing.get_context("fork")
        for _ in range(count):
            ours, theirs = forks.Pipe()
            self._ends.append(ours)
            process = forks.Process(target=_serve, args=(self._run, theirs, tuple(self._ends)), daemon=True)
            process.start()
            self._processes.append(process)
            theirs.close()

    def _shared(self, groups: Iterator[Sequence[TaskT]]) -> Iterator[list[FoundT]]:
        """Each process has one task at a time, and gets the next when it is done."""
        idle, busy = list(self._ends), dict[Connection, tuple[_Group[TaskT, FoundT], int]]()
        opened: deque[_Group[TaskT, FoundT]] = deque()
        while True:
            while idle and (group := _with_a_task(opened, groups)) is not None:
                end, number = idle.pop(), group.given
                with _alive():
                    end.send(group.tasks[number])
                group.given += 1
                busy[end] = group, number
            if opened and opened[0].is_done:
                yield opened.popleft().answers()
                continue
            if not busy:
                return
            for end in [each for each in wait(list(busy)) if isinstance(each, Connection)]:
                group, number = busy.pop(end)
                group.found[number] = _take(end)
                idle.append(end)


@dataclass
class _Group(Generic[TaskT, FoundT]):
    """Tasks whose answers are given out together."""

    tasks: Sequence[TaskT]
    given: int = 0
    found: dict[int, FoundT] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        return len(self.found) == len(self.tasks)

    def answers(self) -> list[FoundT]:
        return [self.found[number] for number in range(len(self.tasks))]


def _with_a_task(
    opened: deque[_Group[TaskT, FoundT]], groups: Iterator[Sequence[TaskT]]
) -> _Group[TaskT, FoundT] | None:
    """The group that the next task is in; one more is opened if there are none left in the first."""
    for group in opened:
        if group.given < len(group.tasks):
            return group
    while len(opened) < _OPENED and (tasks := next(groups, None)) is not None:
        opened.append(_Group(tasks))
        if tasks:
            return opened[-1]
    return None


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
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
    ):  # they reach the process that gives the tasks too, which ends this one
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what was there before need not be looked through again, which would copy it page by page
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
