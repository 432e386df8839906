"""Run a function on many tasks in parallel, in forked processes of one thread each.

A step of search consists of hundreds of operations too small to parallelize: one process with two threads leaves a third of
two cores idle, two processes do not. Forked processes share the memory of the weights, and of text.

Several threads may use workers at the same time. A forked process inherits the locks that other threads hold at that moment, and nobody
would release them there, so no thread computes while another one forks.

Each process has a pipe of its own. `concurrent.futures.ProcessPoolExecutor` has one for the results of all: once a process is
killed while it writes a result, its reader waits for the rest for ever, and so does whoever shuts it down.
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
ResultT = TypeVar("ResultT")

_MAX_OPEN_GROUPS = 2
"""Most groups whose tasks are being run at a time."""


def _use_one_thread() -> None:
    """Compute with one thread in a forked process.

    OpenMP's threads do not survive a fork, but its thread pool still waits for them: with two threads the child would hang.
    """
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_use_one_thread)


def can_fork(*, computes: bool = True) -> bool:
    """Whether this process can fork workers: on Linux, not from a daemon and, if they compute with torch, not after using CUDA."""
    uses_cuda: bool = computes and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return sys.platform == "linux" and not uses_cuda and not multiprocessing.current_process().daemon


class _ForkGate:
    """Lets any number of threads compute, or one of them fork."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        """Whoever holds it neither forks nor begins to compute."""
        self._computing = 0

    @contextmanager
    def computing(self) -> Iterator[None]:
        with self.condition:
            self._computing += 1
        try:
            yield
        finally:
            with self.condition:
                self._computing -= 1
                self.condition.notify_all()

    @contextmanager
    def forking(self) -> Iterator[None]:
        with self.condition:
            self.condition.wait_for(lambda: self._computing == 0)
            yield


_gate = _ForkGate()
_open_ends: set[Connection] = set()
"""Our ends of all pipes. A new process closes its copies: a pipe is closed only when all copies of its end are."""


class Workers(Generic[TaskT, ResultT]):
    """Runs a function on tasks in up to `max_processes` processes.

    It runs in this process as long as there are few tasks, and where `can_fork` is false. Use it as a context manager, which
    ends the processes.

    Args:
        run: the function.
        max_processes: most processes.
        lost: what to tell a user when a process was killed.
        min_tasks: fewest tasks per process that make it worth starting.
        computes: whether the function computes with torch.
    """

    def __init__(
        self,
        run: Callable[[TaskT], ResultT],
        max_processes: int,
        *,
        lost: str,
        min_tasks: int = 2,
        computes: bool = True,
    ) -> None:
        self._run, self._lost, self._min_tasks = run, lost, min_tasks
        self._max_processes = max_processes if can_fork(computes=computes) else 1
        self._ends: list[Connection] = []
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> Workers[TaskT, ResultT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pipes, upon which idle processes end. After an exception kill them."""
        with _gate.condition:
            for end, process in zip(self._ends, self._processes, strict=True):
                if kind is not None:
                    process.kill()
                end.close()
                _open_ends.discard(end)
        for process in self._processes:
            process.join()
        self._ends, self._processes = [], []

    def map(self, groups: Iterable[Sequence[TaskT]]) -> Iterator[list[ResultT]]:
        """Yield the results of each group of tasks, in order.

        A new group is read when there are idle processes and no tasks left. An empty group says that reading the next one may
        take long: what is open is completed first.

        Raises:
            DataError: a process was killed.
            Exception: what the function raises.
        """
        remaining = iter(groups)
        for group in remaining:
            if not self._ends:
                self._start(min(self._max_processes, len(group) // self._min_tasks))
            if self._ends:
                yield from self._parallel(chain([group], remaining))
            else:
                yield [self._run_here(task) for task in group]

    def _run_here(self, task: TaskT) -> ResultT:
        with _gate.computing():
            return self._run(task)

    def _start(self, count: int) -> None:
        if count < 2:
            return
        forks = multiprocessing.get_context("fork")
        with _gate.forking():
            for _ in range(count):
                ours, theirs = forks.Pipe()
                self._ends.append(ours)
                _open_ends.add(ours)
                process = forks.Process(target=_serve, args=(self._run, theirs, tuple(_open_ends)), daemon=True)
                process.start()
                self._processes.append(process)
                theirs.close()

    def _parallel(self, groups: Iterator[Sequence[TaskT]]) -> Iterator[list[ResultT]]:
        """Give each process one task at a time, and the next one when it is done."""
        idle, busy = list(self._ends), dict[Connection, tuple[_TaskGroup[TaskT, ResultT], int]]()
        open_groups: deque[_TaskGroup[TaskT, ResultT]] = deque()
        while True:
            while idle and (group := _next_group(open_groups, groups)) is not None:
                end, number = idle.pop(), group.sent
                with self._reporting_lost_process():
                    end.send(group.tasks[number])
                group.sent += 1
                busy[end] = group, number
            if open_groups and open_groups[0].is_done:
                yield open_groups.popleft().in_order()
                continue
            if not busy:
                return
            for end in [ready for ready in wait(list(busy)) if isinstance(ready, Connection)]:
                group, number = busy.pop(end)
                group.results[number] = self._receive_result(end)
                idle.append(end)

    def _receive_result(self, end: Connection) -> Any:
        """The result of a task. Raises what the function raised."""
        with self._reporting_lost_process():
            result, error = end.recv()
        if error is not None:
            raise error
        return result

    @contextmanager
    def _reporting_lost_process(self) -> Iterator[None]:
        """Raise DataError where the process at the other end is gone."""
        try:
            yield
        except (EOFError, OSError):
            raise DataError(self._lost) from None


@dataclass
class _TaskGroup(Generic[TaskT, ResultT]):
    """Tasks whose results are yielded together."""

    tasks: Sequence[TaskT]
    sent: int = 0
    """How many tasks have been sent to a process."""
    results: dict[int, ResultT] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        return len(self.results) == len(self.tasks)

    def in_order(self) -> list[ResultT]:
        """The results in the order of the tasks."""
        return [self.results[number] for number in range(len(self.tasks))]


def _next_group(
    open_groups: deque[_TaskGroup[TaskT, ResultT]], groups: Iterator[Sequence[TaskT]]
) -> _TaskGroup[TaskT, ResultT] | None:
    """The group of the next task to send; reads another group if the open ones have none left."""
    for group in open_groups:
        if group.sent < len(group.tasks):
            return group
    while len(open_groups) < _MAX_OPEN_GROUPS and (tasks := next(groups, None)) is not None:
        open_groups.append(_TaskGroup(tasks))
        if tasks:
            return open_groups[-1]
    return None


def _serve(run: Callable[[Any], Any], end: Connection, others: Sequence[Connection]) -> None:
    """Run tasks until the other end is closed. `others` are inherited pipe ends, which this process must close."""
    for number in (signal.SIGINT, signal.SIGHUP):  # the parent process gets them too, and ends this one
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # a garbage collection of inherited objects would copy their memory pages
    for other in others:
        other.close()
    with suppress(EOFError, OSError):  # the other end is closed
        while True:
            end.send(_run_task(run, end.recv()))


def _run_task(run: Callable[[Any], Any], task: Any) -> tuple[Any, Exception | None]:
    """The result of the function, or the exception it raised."""
    try:
        return run(task), None
    except Exception as error:  # noqa: BLE001 -- raised again by _receive_result
        return None, error
