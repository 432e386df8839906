"""How Ctrl-C and SIGTERM end a training: asked once it saves, asked again it ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
        self._before = ExitStack()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before.callback(signal.signal, number, signal.signal(number, self._ask))
        return self

    def __exit__(self, *_: object) -> None:
        self._before.close()

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

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        if self._is_free_to:
            raise Stop
