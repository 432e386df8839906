"""How much each client asks for."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable

from nmt.runtime.wording import counted
from nmt.serving.refusals import RefusedError

_WINDOW = 60.0


class RequestRates:
    """Counts the requests of each client, anew every minute."""

    def __init__(self, most: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Count up to `most` requests per minute and client; None for no limit."""
        self._most, self._clock = most, clock
        self._counts = Counter[str]()
        self._end = 0.0

    def count(self, client: str) -> None:
        """Count a request. Raises RefusedError if the client has sent too many."""
        if self._most is None:
            return
        now = self._clock()
        if now >= self._end:
            self._counts.clear()
            self._end = now + _WINDOW
        if self._counts[client] >= self._most:
            sentence = f"Slow down: this server takes {counted(self._most, 'request')} per minute of a client."
            raise RefusedError(429, sentence, retry_after=max(math.ceil(self._end - now), 1))
        self._counts[client] += 1
