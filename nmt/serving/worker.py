"""One thread that decodes the requests that have accumulated, in batches."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from starlette.exceptions import HTTPException

from nmt.serving.engine import ServedHypothesis, Setting, Task

Run = Callable[[Setting, Sequence[Task]], list[list[ServedHypothesis]]]
"""Decodes the tasks of one setting: `Engine.run`."""

_BATCH_CHARACTERS = 8000
"""Most characters of a batch of several requests."""
_PAUSE = 0.005
"""Seconds after a batch of several requests, in which clients that ask again at once come together for the next batch."""


@dataclass(eq=False)
class _QueuedRequest:
    setting: Setting
    tasks: Sequence[Task]
    future: Future[list[list[ServedHypothesis]]] = field(default_factory=Future)

    @property
    def characters(self) -> int:
        return sum(len(task) if isinstance(task, str) else sum(map(len, task)) for task in self.tasks)


class Worker:
    """Decodes the oldest request that waits, together with those of the same setting.

    A batch keeps all others waiting, so whoever submits a request bounds its size. As a context, it ends with what it has accepted.
    """

    def __init__(self, run: Run, *, max_queue: int = 100) -> None:
        """Start the thread. At most `max_queue` requests wait."""
        self._run, self._max_queue = run, max_queue
        self._queue: deque[_QueuedRequest] = deque()
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="decoding")
        self._thread.start()

    def submit(self, setting: Setting, tasks: Sequence[Task]) -> Future[list[list[ServedHypothesis]]]:
        """Queue a request; the future has its results in order. Cancel it to withdraw the request while it waits.

        Raises:
            HTTPException: too many requests wait.
        """
        request = _QueuedRequest(setting, tasks)
        with self._changed:
            self._queue = deque(waiting for waiting in self._queue if not waiting.future.cancelled())
            if len(self._queue) >= self._max_queue:
                raise HTTPException(503, "The server is busy: try again in some seconds.", {"retry-after": "5"})
            self._queue.append(request)
            self._changed.notify()
        return request.future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    # --- in the thread ----------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while batch := self._take():
            self._decode([request for request in batch if request.future.set_running_or_notify_cancel()])
            if len(batch) > 1:
                time.sleep(_PAUSE)

    def _take(self) -> list[_QueuedRequest]:
        """Wait for requests, and take a batch; none once the worker is closed and nothing waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closed)
            batch: list[_QueuedRequest] = []
            rest: deque[_QueuedRequest] = deque()
            characters = 0
            for request in self._queue:
                characters += request.characters
                if not batch or (request.setting == batch[0].setting and characters <= _BATCH_CHARACTERS):
                    batch.append(request)
                else:
                    rest.append(request)
            self._queue = rest
            return batch

    def _decode(self, requests: Sequence[_QueuedRequest]) -> None:
        """Decode requests of one setting. If that fails, decode each one alone, so that none fails for another's."""
        if not requests:
            return
        try:
            results = iter(self._run(requests[0].setting, [task for request in requests for task in request.tasks]))
        except Exception as error:  # noqa: BLE001 -- raised again by the future
            if len(requests) == 1:
                requests[0].future.set_exception(error)
            else:
                for request in requests:
                    self._decode([request])
            return
        for request in requests:
            request.future.set_result([next(results) for _ in request.tasks])
