"""A process that decodes: models and their computation apart from the process that answers HTTP.

Search is Python that keeps the interpreter busy, so decoding beside the server's event loop would make both slow. A process that
is lost, or takes too long, is replaced, and only its batch fails.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from nmt.errors import DataError, NmtError
from nmt.serving.work import EngineDescription, EngineOptions, LineResult, LineTask, Setting

if TYPE_CHECKING:
    from nmt.serving.engine import Engine

_SECONDS_TO_END = 5.0


class LostDecoderError(Exception):
    """The process that decoded a batch ended or took too long; another one replaces it."""


@dataclass(frozen=True)
class ProcessOptions:
    """How a process is started.

    Attributes:
        engine: its models.
        timeout: most seconds per batch.
        prepare: called in the process before anything is loaded; a function of a module.
    """

    engine: EngineOptions
    timeout: float = 120.0
    prepare: Callable[[], None] | None = None


class DecoderProcess:
    """A process that decodes one batch at a time."""

    def __init__(self, options: ProcessOptions) -> None:
        self._options = options
        self._starting = threading.Lock()
        self._closed = False
        self._start()

    def _start(self) -> None:
        """Start the process, which then loads its models; `wait` waits for it."""
        context = multiprocessing.get_context("spawn")
        self._end, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._options), daemon=True)
        with _ignoring_interrupts():
            self._process.start()
        theirs.close()

    def wait(self) -> EngineDescription:
        """Wait until the models are loaded. Raises what loading raised, or LostDecoderError."""
        answer = self._receive(None)
        if isinstance(answer, Exception):
            raise answer
        description: EngineDescription = answer
        return description

    def run(self, setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
        """Decode a batch. Raises what decoding raised, or LostDecoderError."""
        try:
            self._end.send((setting, tasks))
            answer = self._receive(self._options.timeout)
        except (LostDecoderError, OSError):
            self._replace()
            raise LostDecoderError("The process that decodes was lost.") from None
        if isinstance(answer, Exception):
            raise answer
        results: list[LineResult] = answer
        return results

    def close(self) -> None:
        """End the process, by force if it is busy."""
        with self._starting:
            self._closed = True
            self._stop()

    def _receive(self, timeout: float | None) -> Any:
        try:
            if self._end.poll(timeout):
                return self._end.recv()
        except (EOFError, OSError):
            pass
        raise LostDecoderError("The process that decodes was lost.")

    def _replace(self) -> None:
        with self._starting:
            if self._closed:
                return
            self._process.kill()
            self._stop()
            self._start()
        with suppress(NmtError, LostDecoderError):  # then the next batch fails too, and another process is tried
            self.wait()

    def _stop(self) -> None:
        self._end.close()  # upon which an idle process ends
        self._process.join(_SECONDS_TO_END)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class _ignoring_interrupts:  # noqa: N801 -- used as a function
    """A context in which a new process inherits that it ignores Ctrl-C, which the terminal sends to all: the server ends it."""

    def __enter__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            self._handler = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._handler)


def start_decoders(options: ProcessOptions, count: int) -> tuple[list[DecoderProcess], EngineDescription]:
    """Start processes, just one unless they compute on the CPU, and wait until they are ready. Raises DataError or UsageError."""
    decoders: list[DecoderProcess] = []
    try:
        decoders += [DecoderProcess(options) for _ in range(count)]
        description = decoders[0].wait()
        while description.device != "cpu" and len(decoders) > 1:
            decoders.pop().close()
        for decoder in decoders[1:]:
            decoder.wait()
    except BaseException as error:
        for decoder in decoders:
            decoder.close()
        if isinstance(error, LostDecoderError):
            raise DataError("A process that decodes ended while it loaded the models: try fewer --threads.") from None
        raise
    return decoders, description


# --- in the process -------------------------------------------------------------------------------------------------


def _serve(end: Connection, options: ProcessOptions) -> None:
    """Load the models, then decode batches until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    logging.basicConfig(level=logging.ERROR)  # warnings tell of lines by numbers, which mean nothing here
    if options.prepare is not None:
        options.prepare()
    with suppress(EOFError, OSError):  # the other end is closed
        try:
            engine = _load(options)
        except NmtError as error:
            end.send(error)
            return
        end.send(engine.description)
        while True:
            setting, tasks = end.recv()
            end.send(_answer(engine, setting, tasks))


def _load(options: ProcessOptions) -> Engine:
    from nmt.serving.engine import Engine

    return Engine(options.engine)


def _answer(engine: Engine, setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult] | Exception:
    try:
        return engine.run(setting, tasks)
    except Exception as error:  # noqa: BLE001 -- raised again by `run`
        return error
