"""How Ctrl-C, SIGTERM and a closed terminal end a training: asked once it saves, asked again it ends at once."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Self

_HANGUP: int | None = getattr(signal, "SIGHUP", None)
"""Says that the terminal was closed; Windows has no such signal."""


def ending_signals() -> list[int]:
    """SIGINT, SIGTERM, and SIGHUP where it is not ignored, as it is under `nohup`."""
    if _HANGUP is None or signal.getsignal(_HANGUP) == signal.SIG_IGN:
        return [signal.SIGINT, signal.SIGTERM]
    return [signal.SIGINT, signal.SIGTERM, _HANGUP]


@contextmanager
def handling(numbers: Iterable[int], handle: Callable[[int], None]) -> Iterator[None]:
    """Within it, these signals are handled so. Off the main thread, where signals do not arrive, it does nothing."""

    def handler(number: int, _: FrameType | None) -> None:
        if number == _HANGUP:
            signal.signal(number, signal.SIG_IGN)  # it may come from the shell and from the system
            _leave_closed_terminal()
        handle(number)

    with ExitStack() as before:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                before.callback(signal.signal, number, signal.signal(number, handler))
        yield


def _leave_closed_terminal() -> None:
    """Let what is still said to a terminal that was closed go nowhere: writing to it would fail."""
    for descriptor in (1, 2):
        try:
            os.get_terminal_size(descriptor)
        except OSError as error:
            if error.errno == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


class Stop(BaseException):
    """Training was asked to stop, at a point where it can be stopped. Like KeyboardInterrupt, it is no Exception."""


class Stopping:
    """Within it, the first signal raises Stop at the next `check` or inside `at_once`; a second one raises KeyboardInterrupt.

    Off the main thread, where signals do not arrive, it does nothing.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        """The first signal that asked to stop."""
        self._is_free_to = False
        self._handling = ExitStack()

    def __enter__(self) -> Self:
        self._handling.enter_context(handling(ending_signals(), self._ask))
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.close()

    def check(self) -> None:
        """Raise Stop if it was asked for."""
        if self.signal is not None:
            raise Stop

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Within it, a signal raises Stop wherever it arrives: for what takes long and leaves nothing behind."""
        self._is_free_to = True
        try:
            self.check()
            yield
        except Exception:
            self.check()  # what Stop went through may have taken it for an error of its own
            raise
        finally:
            self._is_free_to = False

    def _ask(self, number: int) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        if self._is_free_to:
            raise Stop
