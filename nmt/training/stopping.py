"""Stop a training on Ctrl-C, SIGTERM or a closed terminal: the first signal saves and stops, a second Ctrl-C stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Self


def ending_signals() -> list[int]:
    """The signals that stop a training: SIGINT, SIGTERM, and SIGHUP unless it is ignored (`nohup`). Windows has no SIGHUP."""
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return [int(number) for number in signals]


@contextmanager
def handling(numbers: Iterable[int], handle: Callable[[int], None]) -> Iterator[None]:
    """A context in which `handle` receives these signals. Only the main thread gets signals; in others it does nothing."""
    with ExitStack() as previous:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                before = signal.signal(number, lambda received, _: handle(received))
                previous.callback(signal.signal, number, before)
        yield


class Stop(BaseException):
    """Leave the training loop because of a signal. Like KeyboardInterrupt, it is not an Exception."""


class Stopping:
    """A context in which the first signal is noted, and raises Stop inside `at_once`. Ctrl-C after it raises KeyboardInterrupt.

    Outside the main thread, which alone gets signals, it does nothing.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        """The first signal received."""
        self._raises_at_once = False
        self._handling = ExitStack()

    def __enter__(self) -> Self:
        self._handling.enter_context(handling(ending_signals(), self._receive))
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.close()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A context in which a signal raises Stop immediately: for long work without side effects."""
        self._raises_at_once = True
        try:
            if self.signal is not None:
                raise Stop
            yield
        finally:
            self._raises_at_once = False

    def _receive(self, number: int) -> None:
        if self.signal is not None:  # closing a terminal may send two signals
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self.signal = number
        if self._raises_at_once:
            raise Stop
