"""Batch the lines of concurrent requests: a bounded queue, and one thread per decoder that takes what has accumulated.

An idle decoder takes a line at once, so a lone line never waits for company. While all decoders are busy, lines accumulate, and
the next batch has a line of each request in turn: a long text does not hold up a short one. A very long line is a batch of its
own, and one decoder takes none of them, so that those who ask for little are answered meanwhile. After a batch of several lines, a
decoder waits a moment for clients that send their next line as soon as they have an answer: a batch of 32 takes far less time
than two of 16.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

SettingT = TypeVar("SettingT", bound=Hashable)
TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

Decode = Callable[[SettingT, Sequence[TaskT]], Sequence[ResultT]]
"""Decodes tasks of one setting as a batch; returns their results in order."""

_LONGEST_WAIT = 60
"""Most seconds that a refused client is told to wait."""
_SMALL_BATCH = 8
"""Tasks that are decoded in little more time than one, so that they are not divided for decoders that are busy."""
_PAUSE = 0.005
"""Seconds without a new request after which no more are waited for."""
_LONGEST_GATHERING, _SHARE_GATHERING = 0.05, 0.25
"""Most seconds to wait for more requests, and as a share of the last batch's time."""
_RATE_MEMORY = 0.9
"""Weight of the past in the measured number of tasks per second."""


class QueueFullError(Exception):
    """There is no room for a request now. `retry_after` says in how many seconds there may be."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The queue is full for about {retry_after} s.")
        self.retry_after = retry_after


class ClosedError(Exception):
    """The batcher takes no more requests."""


@dataclass(eq=False)
class _Job(Generic[SettingT, TaskT, ResultT]):
    """The tasks of one request."""

    setting: SettingT
    tasks: Sequence[TaskT]
    future: Future[list[ResultT]] = field(default_factory=Future)
    results: dict[int, ResultT] = field(default_factory=dict)
    taken: int = 0
    """How many tasks have been given to a decoder."""

    @property
    def waiting(self) -> int:
        return len(self.tasks) - self.taken

    @property
    def next_task(self) -> TaskT:
        return self.tasks[self.taken]


@dataclass(frozen=True)
class _Turn(Generic[SettingT, TaskT, ResultT]):
    """A task of a batch: task `number` of the job."""

    job: _Job[SettingT, TaskT, ResultT]
    number: int

    @property
    def task(self) -> TaskT:
        return self.job.tasks[self.number]


class Batcher(Generic[SettingT, TaskT, ResultT]):
    """Collects tasks and decodes them in batches, in one thread per decoder."""

    def __init__(
        self,
        decoders: Sequence[Decode[SettingT, TaskT, ResultT]],
        *,
        size: Callable[[SettingT, TaskT], int],
        on_batch: Callable[[SettingT, int, float], None],
        max_queue: int = 1000,
        max_batch: int = 64,
        max_size: int = 16_000,
        slow_size: int = 8_000,
    ) -> None:
        """Start the threads.

        Args:
            decoders: decode batches; each is called from one thread only.
            size: size of a task.
            on_batch: called after each batch with its setting, number of tasks and seconds.
            max_queue: most tasks that wait.
            max_batch: most tasks per batch.
            max_size: most size of a batch of several tasks.
            slow_size: size above which a task is slow: decoded alone, and never by all of several decoders.
        """
        self.max_queue = max_queue
        self._max_batch, self._max_size, self._slow_size = max_batch, max_size, slow_size
        self._size, self._on_batch = size, on_batch
        self._slow_batches = 0
        self._most_slow_batches = max(len(decoders) - 1, 1)
        self._jobs = deque[_Job[SettingT, TaskT, ResultT]]()
        self._waiting = 0
        self._running = 0
        self._idle = 0
        self._decoders = len(decoders)
        self._rate = 0.0
        self._closed = False
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._serve, args=(decode,), name=f"decoder-{number}", daemon=True)
            for number, decode in enumerate(decoders, start=1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Number of tasks that wait for a decoder."""
        return self._waiting

    def submit(self, setting: SettingT, tasks: Sequence[TaskT]) -> Future[list[ResultT]]:
        """Queue tasks; the future has their results in order. Cancel it to withdraw those that still wait.

        Raises:
            QueueFullError: there is no room for all of them.
            ClosedError: the batcher is closed.
        """
        job = _Job[SettingT, TaskT, ResultT](setting, tasks)
        if not tasks:
            job.future.set_result([])
            return job.future
        with self._changed:
            if self._closed:
                raise ClosedError
            if self._waiting + len(tasks) > self.max_queue:
                raise QueueFullError(self._seconds_until_room())
            self._jobs.append(job)
            self._waiting += len(tasks)
            self._changed.notify_all()
        job.future.add_done_callback(lambda future: self._withdraw(job) if future.cancelled() else None)
        return job.future

    def close(self, timeout: float | None = None) -> bool:
        """Take no more tasks, and wait until those that were accepted are done.

        Returns:
            Whether all are done; after the timeout, those that still wait are cancelled.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0))
        with self._changed:
            jobs = list(self._jobs)
        for job in jobs:
            job.future.cancel()
        return not any(thread.is_alive() for thread in self._threads)

    # --- in the threads ---------------------------------------------------------------------------------------------

    def _serve(self, decode: Decode[SettingT, TaskT, ResultT]) -> None:
        batch: list[_Turn[SettingT, TaskT, ResultT]] = []
        seconds = 0.0
        while batch := self._next_batch(batch, seconds):
            started = time.monotonic()
            self._decode(decode, batch)
            seconds = time.monotonic() - started
            self._measure(len(batch), seconds)
            self._on_batch(batch[0].job.setting, len(batch), seconds)

    def _next_batch(
        self, last: Sequence[_Turn[SettingT, TaskT, ResultT]], seconds: float
    ) -> list[_Turn[SettingT, TaskT, ResultT]]:
        """Wait for tasks and take a batch of them; empty once the batcher is closed and has no more.

        Args:
            last: the last batch.
            seconds: how long it took.
        """
        with self._changed:
            self._running -= len(last)
            self._idle += 1
            if last and self._is_slow(last[0].job.setting, last[0].task):
                self._slow_batches -= 1
                self._changed.notify_all()
            if len(last) > 1:
                self._gather(len(last), min(_SHARE_GATHERING * seconds, _LONGEST_GATHERING))
            while not (jobs := self._ready()) and (self._jobs or not self._closed):
                self._changed.wait()
            batch = self._take(jobs) if jobs else []
            self._idle -= 1
            self._running += len(batch)
            return batch

    def _ready(self) -> list[_Job[SettingT, TaskT, ResultT]]:
        """The jobs whose next task may be decoded now: not slow ones, where only one decoder is left for others."""
        may_be_slow = self._slow_batches < self._most_slow_batches
        return [job for job in self._jobs if may_be_slow or not self._is_slow(job.setting, job.next_task)]

    def _is_slow(self, setting: SettingT, task: TaskT) -> bool:
        return self._size(setting, task) > self._slow_size

    def _gather(self, count: int, seconds: float) -> None:
        """Wait until so many more tasks are there, unless they take too long or no more come."""
        enough, deadline = self._waiting + count, time.monotonic() + seconds
        while not self._closed and self._waiting < enough:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not self._changed.wait(min(remaining, _PAUSE)):
                return

    def _take(self, ready: Sequence[_Job[SettingT, TaskT, ResultT]]) -> list[_Turn[SettingT, TaskT, ResultT]]:
        """A batch for the first job: its next task if that is slow, else tasks of its setting."""
        first = ready[0]
        if self._is_slow(first.setting, first.next_task):
            self._slow_batches += 1
            batch = [self._turn(first)]
        else:
            batch = self._quick_tasks(ready)
        self._waiting -= len(batch)
        # Those that had a turn go behind those that had none.
        served = {id(turn.job) for turn in batch}
        rest = [job for job in self._jobs if job.waiting]
        self._jobs = deque(sorted(rest, key=lambda job: id(job) in served))
        return batch

    def _quick_tasks(self, ready: Sequence[_Job[SettingT, TaskT, ResultT]]) -> list[_Turn[SettingT, TaskT, ResultT]]:
        """Tasks of the first job's setting, one of each job in turn, with a share left for idle decoders."""
        setting = ready[0].setting
        jobs = deque(job for job in ready if job.setting == setting)
        most = min(self._fair_share(), self._max_batch)
        batch: list[_Turn[SettingT, TaskT, ResultT]] = []
        total = 0
        while jobs and len(batch) < most:
            job = jobs.popleft()
            if self._is_slow(setting, job.next_task):
                continue
            size = self._size(setting, job.next_task)
            if batch and total + size > self._max_size:
                break
            total += size
            batch.append(self._turn(job))
            if job.waiting:
                jobs.append(job)
        return batch

    def _turn(self, job: _Job[SettingT, TaskT, ResultT]) -> _Turn[SettingT, TaskT, ResultT]:
        job.taken += 1
        return _Turn(job, job.taken - 1)

    def _fair_share(self) -> int:
        """How many tasks this decoder takes, so that all decoders have as many."""
        if self._idle > 1:
            return math.ceil(self._waiting / self._idle)
        return max(math.ceil((self._waiting + self._running) / self._decoders), _SMALL_BATCH)

    def _decode(
        self, decode: Decode[SettingT, TaskT, ResultT], batch: Sequence[_Turn[SettingT, TaskT, ResultT]]
    ) -> None:
        """Decode a batch. If that fails, decode the tasks of each request alone, so that none fails for another's."""
        try:
            results = decode(batch[0].job.setting, [turn.task for turn in batch])
        except Exception as error:  # noqa: BLE001 -- raised again by the future
            jobs = {id(turn.job): turn.job for turn in batch}
            if len(jobs) == 1:
                self._fail(batch[0].job, error)
                return
            for key in jobs:
                self._decode(decode, [turn for turn in batch if id(turn.job) == key])
            return
        for turn, result in zip(batch, results, strict=True):
            turn.job.results[turn.number] = result
        for job in {id(turn.job): turn.job for turn in batch}.values():
            if len(job.results) == len(job.tasks):
                with suppress(InvalidStateError):  # it was cancelled
                    job.future.set_result([job.results[number] for number in range(len(job.tasks))])

    def _fail(self, job: _Job[SettingT, TaskT, ResultT], error: Exception) -> None:
        self._withdraw(job)
        with suppress(InvalidStateError):
            job.future.set_exception(error)

    def _withdraw(self, job: _Job[SettingT, TaskT, ResultT]) -> None:
        """Take the tasks of a job that still wait out of the queue."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                self._waiting -= job.waiting
                self._changed.notify_all()

    def _measure(self, tasks: int, seconds: float) -> None:
        rate = tasks / max(seconds, 1e-6)
        with self._changed:
            self._rate = _RATE_MEMORY * self._rate + (1 - _RATE_MEMORY) * rate if self._rate else rate

    def _seconds_until_room(self) -> int:
        rate = self._rate * self._decoders
        return min(max(math.ceil(self._waiting / rate), 1), _LONGEST_WAIT) if rate else 1
