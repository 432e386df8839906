"""Stop a training on Ctrl-C, SIGTERM or a closed terminal: the first signal saves and stops, a second one stops at once."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Self

from nmt.runtime.files import discard

_HANGUP: int | None = getattr(signal, "SIGHUP", None)
"""The terminal was closed. Windows has no such signal."""


def ending_signals() -> list[int]:
    """The signals that stop a training: SIGINT, SIGTERM, and SIGHUP unless it is ignored (`nohup`)."""
    if _HANGUP is None or signal.getsignal(_HANGUP) == signal.SIG_IGN:
        return [signal.SIGINT, signal.SIGTERM]
    return [signal.SIGINT, signal.SIGTERM, _HANGUP]


@contextmanager
def handling(numbers: Iterable[int], handle: Callable[[int], None]) -> Iterator[None]:
    """A context in which `handle` receives these signals. Only the main thread gets signals; in others it does nothing."""

    def handler(number: int, _: FrameType | None) -> None:
        if number == _HANGUP:
            signal.signal(number, signal.SIG_IGN)  # the shell and the system may both send it
            for descriptor in (1, 2):
                try:
                    os.get_terminal_size(descriptor)
                except OSError as error:
                    if error.errno == errno.EIO:  # the closed terminal, to which writing would fail
                        discard(descriptor)
        handle(number)

    with ExitStack() as previous:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                previous.callback(signal.signal, number, signal.signal(number, handler))
        yield


class Stop(BaseException):
    """Leave the training loop because of a signal. Like KeyboardInterrupt, it is not an Exception."""


class Stopping:
    """A context in which the first signal is noted, and raises Stop inside `at_once`. A second signal raises KeyboardInterrupt.

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
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        if self._raises_at_once:
            raise Stop
