"""Batch the lines of concurrent requests: a bounded queue, and two threads per decoder that take what has accumulated.

An idle thread takes a line at once, so a lone line never waits for company. While all are busy, lines accumulate, and the next
batch has a line of each request in turn: a long text does not hold up a short one. A very long line is a batch of its own. Such
lines have one of the two threads of each decoder, so that those who ask for little are answered meanwhile. After a batch of
several lines, a thread waits a moment for clients that send their next line as soon as they have an answer: a batch of 32 takes
far less time than two of 16.
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
class _QueuedRequest(Generic[ResultT]):
    """What was submitted together."""

    count: int
    """Number of its tasks."""
    future: Future[list[ResultT]] = field(default_factory=Future)
    results: dict[int, ResultT] = field(default_factory=dict)
    """By number of the task."""


@dataclass(frozen=True)
class _Turn(Generic[TaskT, ResultT]):
    """A task in its turn: task `number` of a request."""

    request: _QueuedRequest[ResultT]
    number: int
    task: TaskT


@dataclass(eq=False)
class _Job(Generic[SettingT, TaskT, ResultT]):
    """The tasks of a request that wait in one lane."""

    request: _QueuedRequest[ResultT]
    setting: SettingT
    turns: deque[_Turn[TaskT, ResultT]]


@dataclass(eq=False)
class _Lane(Generic[SettingT, TaskT, ResultT]):
    """Quick tasks, or slow ones. They wait for one thread of each decoder."""

    jobs: deque[_Job[SettingT, TaskT, ResultT]] = field(default_factory=deque)
    waiting: int = 0
    """Number of tasks that wait."""
    running: int = 0
    """Number of tasks that are being decoded."""
    idle: int = 0
    """Number of threads without a batch."""


class Batcher(Generic[SettingT, TaskT, ResultT]):
    """Collects tasks and decodes them in batches, in two threads per decoder: one for quick tasks and one for slow ones.

    A task is slow if it takes more than half of a batch of several tasks.
    """

    def __init__(
        self,
        decoders: Sequence[Decode[SettingT, TaskT, ResultT]],
        *,
        size: Callable[[SettingT, TaskT], int],
        on_batch: Callable[[SettingT, int, float], None],
        max_queue: int = 1000,
        max_batch: int = 64,
        max_size: int = 16_000,
    ) -> None:
        """Start the threads.

        Args:
            decoders: decode batches; each is called from two threads.
            size: size of a task.
            on_batch: called after each batch with its setting, number of tasks and seconds.
            max_queue: most tasks that wait.
            max_batch: most tasks per batch.
            max_size: most size of a batch of several tasks.
        """
        self.max_queue = max_queue
        self._max_batch, self._max_size = max_batch, max_size
        self._size, self._on_batch = size, on_batch
        self._quick, self._slow = (_Lane[SettingT, TaskT, ResultT]() for _ in range(2))
        self._decoders = len(decoders)
        self._rate = 0.0
        self._closed = False
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._serve, args=(decode, lane), name=f"{name}-{number}", daemon=True)
            for number, decode in enumerate(decoders, start=1)
            for name, lane in (("quick", self._quick), ("slow", self._slow))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Number of tasks that wait for a decoder."""
        return self._quick.waiting + self._slow.waiting

    def submit(self, setting: SettingT, tasks: Sequence[TaskT]) -> Future[list[ResultT]]:
        """Queue tasks; the future has their results in order. Cancel it to withdraw those that still wait.

        Raises:
            QueueFullError: there is no room for all of them.
            ClosedError: the batcher is closed.
        """
        request = _QueuedRequest[ResultT](len(tasks))
        if not tasks:
            request.future.set_result([])
            return request.future
        quick, slow = deque[_Turn[TaskT, ResultT]](), deque[_Turn[TaskT, ResultT]]()
        for number, task in enumerate(tasks):
            is_slow = 2 * self._size(setting, task) > self._max_size
            (slow if is_slow else quick).append(_Turn(request, number, task))
        with self._changed:
            if self._closed:
                raise ClosedError
            if self.waiting + len(tasks) > self.max_queue:
                raise QueueFullError(self._seconds_until_room())
            for lane, turns in ((self._quick, quick), (self._slow, slow)):
                if turns:
                    lane.jobs.append(_Job(request, setting, turns))
                    lane.waiting += len(turns)
            self._changed.notify_all()
        request.future.add_done_callback(lambda future: self._withdraw(request) if future.cancelled() else None)
        return request.future

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
            requests = [job.request for lane in (self._quick, self._slow) for job in lane.jobs]
        for request in requests:
            request.future.cancel()
        return not any(thread.is_alive() for thread in self._threads)

    # --- in the threads ---------------------------------------------------------------------------------------------

    def _serve(self, decode: Decode[SettingT, TaskT, ResultT], lane: _Lane[SettingT, TaskT, ResultT]) -> None:
        last, seconds = 0, 0.0
        while batch := self._next_batch(lane, last, seconds):
            setting, turns = batch
            started = time.monotonic()
            self._decode(decode, setting, turns)
            last, seconds = len(turns), time.monotonic() - started
            self._measure(last, seconds)
            self._on_batch(setting, last, seconds)

    def _next_batch(
        self, lane: _Lane[SettingT, TaskT, ResultT], last: int, seconds: float
    ) -> tuple[SettingT, list[_Turn[TaskT, ResultT]]] | None:
        """Wait for tasks and take a batch of them, with their setting; None once the batcher is closed and has no more.

        Args:
            lane: where they wait.
            last: number of tasks of the last batch.
            seconds: how long it took.
        """
        with self._changed:
            lane.running -= last
            lane.idle += 1
            if last > 1:
                self._gather(lane, last, min(_SHARE_GATHERING * seconds, _LONGEST_GATHERING))
            self._changed.wait_for(lambda: lane.jobs or self._closed)
            batch = self._take(lane) if lane.jobs else None
            lane.idle -= 1
            return batch

    def _gather(self, lane: _Lane[SettingT, TaskT, ResultT], count: int, seconds: float) -> None:
        """Wait until so many more tasks are there, unless they take too long or no more come."""
        enough, deadline = lane.waiting + count, time.monotonic() + seconds
        while not self._closed and lane.waiting < enough:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not self._changed.wait(min(remaining, _PAUSE)):
                return

    def _take(self, lane: _Lane[SettingT, TaskT, ResultT]) -> tuple[SettingT, list[_Turn[TaskT, ResultT]]]:
        """Tasks of the first job's setting, one of each job in turn, with a share left for idle threads."""
        setting = lane.jobs[0].setting
        jobs = deque(job for job in lane.jobs if job.setting == setting)
        most = min(self._fair_share(lane), self._max_batch)
        batch: list[_Turn[TaskT, ResultT]] = []
        total = 0
        while jobs and len(batch) < most:
            job = jobs.popleft()
            total += self._size(setting, job.turns[0].task)
            if batch and total > self._max_size:
                break
            batch.append(job.turns.popleft())
            if job.turns:
                jobs.append(job)
        lane.waiting -= len(batch)
        lane.running += len(batch)
        # Those that had a turn go behind those that had none.
        served = {id(turn.request) for turn in batch}
        rest = [job for job in lane.jobs if job.turns]
        lane.jobs = deque(sorted(rest, key=lambda job: id(job.request) in served))
        return setting, batch

    def _fair_share(self, lane: _Lane[SettingT, TaskT, ResultT]) -> int:
        """How many tasks this thread takes, so that all decoders have as many."""
        if lane.idle > 1:
            return math.ceil(lane.waiting / lane.idle)
        return max(math.ceil((lane.waiting + lane.running) / self._decoders), _SMALL_BATCH)

    def _decode(
        self, decode: Decode[SettingT, TaskT, ResultT], setting: SettingT, batch: Sequence[_Turn[TaskT, ResultT]]
    ) -> None:
        """Decode a batch. If that fails, decode the tasks of each request alone, so that none fails for another's."""
        requests = {id(turn.request): turn.request for turn in batch}
        try:
            results = decode(setting, [turn.task for turn in batch])
        except Exception as error:  # noqa: BLE001 -- raised again by the future
            if len(requests) == 1:
                self._fail(batch[0].request, error)
                return
            for key in requests:
                self._decode(decode, setting, [turn for turn in batch if id(turn.request) == key])
            return
        for turn, result in zip(batch, results, strict=True):
            turn.request.results[turn.number] = result
        for request in requests.values():
            if len(request.results) == request.count:
                with suppress(InvalidStateError):  # it was cancelled
                    request.future.set_result([request.results[number] for number in range(request.count)])

    def _fail(self, request: _QueuedRequest[ResultT], error: Exception) -> None:
        self._withdraw(request)
        with suppress(InvalidStateError):
            request.future.set_exception(error)

    def _withdraw(self, request: _QueuedRequest[ResultT]) -> None:
        """Take the tasks of a request that still wait out of the queue."""
        with self._changed:
            for lane in (self._quick, self._slow):
                for job in [job for job in lane.jobs if job.request is request]:
                    lane.jobs.remove(job)
                    lane.waiting -= len(job.turns)
            self._changed.notify_all()

    def _measure(self, tasks: int, seconds: float) -> None:
        rate = tasks / max(seconds, 1e-6)
        with self._changed:
            self._rate = _RATE_MEMORY * self._rate + (1 - _RATE_MEMORY) * rate if self._rate else rate

    def _seconds_until_room(self) -> int:
        rate = self._rate * self._decoders
        return min(max(math.ceil(self.waiting / rate), 1), _LONGEST_WAIT) if rate else 1
