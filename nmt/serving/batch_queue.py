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
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from nmt.serving.refusals import RefusedError
from nmt.serving.work import LineResult, LineTask, Setting

Decode = Callable[[Setting, Sequence[LineTask]], Sequence[LineResult]]
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


@dataclass(eq=False)
class _QueuedRequest:
    """What was submitted together."""

    setting: Setting
    count: int
    """Number of its tasks."""
    future: Future[list[LineResult]] = field(default_factory=Future)
    results: dict[int, LineResult] = field(default_factory=dict)
    """By number of the task."""


class _Turn(NamedTuple):
    """A task in its turn: task `number` of a request."""

    request: _QueuedRequest
    number: int
    task: LineTask


@dataclass(eq=False)
class _Lane:
    """Quick tasks, or slow ones. They wait for one thread of each decoder."""

    queues: dict[_QueuedRequest, deque[_Turn]] = field(default_factory=dict)
    """What waits of each request, in the order in which requests have their turns; none is empty."""
    running: int = 0
    """Number of tasks that are being decoded."""
    idle: int = 0
    """Number of threads without a batch."""

    @property
    def waiting(self) -> int:
        """Number of tasks that wait."""
        return sum(map(len, self.queues.values()))


class Batcher:
    """Collects tasks and decodes them in batches, in two threads per decoder: one for quick tasks and one for slow ones.

    A task is slow if it takes more than half of a batch of several tasks.
    """

    def __init__(
        self,
        decoders: Sequence[Decode],
        *,
        size: Callable[[Setting, LineTask], int],
        on_batch: Callable[[Setting, int, float], None],
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
        self._max_queue, self._max_batch, self._max_size = max_queue, max_batch, max_size
        self._size, self._on_batch = size, on_batch
        self._quick, self._slow = _Lane(), _Lane()
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

    def submit(self, setting: Setting, tasks: Sequence[LineTask]) -> Future[list[LineResult]]:
        """Queue tasks; the future has their results in order. Cancel it to withdraw those that still wait.

        Raises:
            RefusedError: there is no room for all of them, or the batcher is closed.
        """
        request = _QueuedRequest(setting, len(tasks))
        if not tasks:
            request.future.set_result([])
            return request.future
        with self._changed:
            if self._closed:
                raise RefusedError(503, "The server is stopping.", retry_after=5)
            if self.waiting + len(tasks) > self._max_queue:
                raise RefusedError(503, "The server is busy.", retry_after=self._seconds_until_room())
            for number, task in enumerate(tasks):
                lane = self._slow if 2 * self._size(setting, task) > self._max_size else self._quick
                lane.queues.setdefault(request, deque()).append(_Turn(request, number, task))
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
            requests = [*self._quick.queues, *self._slow.queues]
        for request in requests:
            request.future.cancel()
        return not any(thread.is_alive() for thread in self._threads)

    # --- in the threads ---------------------------------------------------------------------------------------------

    def _serve(self, decode: Decode, lane: _Lane) -> None:
        last, seconds = 0, 0.0
        while batch := self._next_batch(lane, last, seconds):
            started = time.monotonic()
            self._decode(decode, batch)
            last, seconds = len(batch), time.monotonic() - started
            self._measure(last, seconds)
            self._on_batch(batch[0].request.setting, last, seconds)

    def _next_batch(self, lane: _Lane, last: int, seconds: float) -> list[_Turn]:
        """Wait for tasks and take a batch of them, of one setting; an empty one once the batcher is closed and has no more.

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
            self._changed.wait_for(lambda: lane.queues or self._closed)
            batch = self._take(lane) if lane.queues else []
            lane.idle -= 1
            return batch

    def _gather(self, lane: _Lane, count: int, seconds: float) -> None:
        """Wait until so many more tasks are there, unless they take too long or no more come."""
        enough, deadline = lane.waiting + count, time.monotonic() + seconds
        while not self._closed and lane.waiting < enough:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not self._changed.wait(min(remaining, _PAUSE)):
                return

    def _take(self, lane: _Lane) -> list[_Turn]:
        """Tasks of the first request's setting, one of each request in turn, with a share left for idle threads."""
        setting = next(iter(lane.queues)).setting
        requests = deque(request for request in lane.queues if request.setting == setting)
        most = min(self._fair_share(lane), self._max_batch)
        batch: list[_Turn] = []
        total = 0
        while requests and len(batch) < most:
            request = requests.popleft()
            queue = lane.queues[request]
            total += self._size(setting, queue[0].task)
            if batch and total > self._max_size:
                break
            batch.append(queue.popleft())
            if queue:
                requests.append(request)
        for request in _requests(batch):
            if queue := lane.queues.pop(request):
                lane.queues[request] = queue  # behind those that had no turn
        lane.running += len(batch)
        return batch

    def _fair_share(self, lane: _Lane) -> int:
        """How many tasks this thread takes, so that all decoders have as many."""
        if lane.idle > 1:
            return math.ceil(lane.waiting / lane.idle)
        return max(math.ceil((lane.waiting + lane.running) / self._decoders), _SMALL_BATCH)

    def _decode(self, decode: Decode, batch: Sequence[_Turn]) -> None:
        """Decode a batch. If that fails, decode the tasks of each request alone, so that none fails for another's."""
        requests = _requests(batch)
        try:
            results = decode(requests[0].setting, [turn.task for turn in batch])
        except Exception as error:  # noqa: BLE001 -- raised again by the future
            if len(requests) == 1:
                self._withdraw(requests[0])
                with suppress(InvalidStateError):  # it was cancelled
                    requests[0].future.set_exception(error)
                return
            for request in requests:
                self._decode(decode, [turn for turn in batch if turn.request is request])
            return
        for turn, result in zip(batch, results, strict=True):
            turn.request.results[turn.number] = result
        for request in requests:
            if len(request.results) == request.count:
                with suppress(InvalidStateError):
                    request.future.set_result([request.results[number] for number in range(request.count)])

    def _withdraw(self, request: _QueuedRequest) -> None:
        """Take the tasks of a request that still wait out of the queue."""
        with self._changed:
            for lane in (self._quick, self._slow):
                lane.queues.pop(request, None)
            self._changed.notify_all()

    def _measure(self, tasks: int, seconds: float) -> None:
        rate = tasks / max(seconds, 1e-6)
        with self._changed:
            self._rate = _RATE_MEMORY * self._rate + (1 - _RATE_MEMORY) * rate if self._rate else rate

    def _seconds_until_room(self) -> int:
        rate = self._rate * self._decoders
        return min(max(math.ceil(self.waiting / rate), 1), _LONGEST_WAIT) if rate else 1


def _requests(batch: Sequence[_Turn]) -> list[_QueuedRequest]:
    """The requests that have tasks in a batch, in the order of their first ones."""
    return list(dict.fromkeys(turn.request for turn in batch))
