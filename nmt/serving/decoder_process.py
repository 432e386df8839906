"""A process that decodes: models and their computation apart from the process that answers HTTP.

Search is Python that keeps the interpreter busy, so decoding beside the server's event loop would make both slow. A process
decodes two batches at a time, in two threads that share its models and take turns at the interpreter: a short batch does not
wait for a long one. A process that is lost, or takes too long, is replaced, and only its batches fail.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from nmt.errors import DataError, NmtError
from nmt.serving.refusals import RefusedError
from nmt.serving.work import EngineDescription, EngineOptions, LineResult, LineTask, Setting

if TYPE_CHECKING:
    from nmt.serving.engine import Engine

_SECONDS_TO_END = 5.0
_BATCHES = 2
"""Batches that a process decodes at a time."""


class LostDecoderError(RefusedError):
    """The process that decoded a batch ended or took too long; another one replaces it."""

    def __init__(self) -> None:
        super().__init__(503, "The server lost what it was computing.", retry_after=5)


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


@dataclass(frozen=True)
class _Started:
    """A process, and a pipe to each of its threads."""

    process: BaseProcess
    ends: tuple[Connection, ...]
    free: SimpleQueue[Connection]
    """The pipes to threads that decode nothing; none until the models are loaded."""


class DecoderProcess:
    """A process that decodes two batches at a time."""

    def __init__(self, options: ProcessOptions) -> None:
        self._options = options
        self._starting = threading.Lock()
        self._closed = False
        self._started = self._start()

    def _start(self) -> _Started:
        """Start the process, which then loads its models; `wait` waits for it."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = zip(*(context.Pipe() for _ in range(_BATCHES)), strict=True)
        process = context.Process(target=_serve, args=(theirs, self._options), daemon=True)
        with _ignoring_interrupts():
            process.start()
        for end in theirs:
            end.close()
        return _Started(process, ours, SimpleQueue())

    def wait(self) -> EngineDescription:
        """Wait until the models are loaded. Raises what loading raised, or LostDecoderError."""
        started = self._started
        try:
            description: EngineDescription = _receive(started.ends[0], None)
        finally:  # also if they are not: the next batch then fails, and has the process replaced
            for end in started.ends:
                started.free.put(end)
        return description

    def run(self, setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
        """Decode a batch; may be called from two threads. Raises what decoding raised, or LostDecoderError."""
        started = self._started
        end = started.free.get()
        try:
            with suppress(OSError):  # then there is no answer
                end.send((setting, tasks))
            results: list[LineResult] = _receive(end, self._options.timeout)
        except LostDecoderError:
            self._replace(started)
            raise
        finally:
            started.free.put(end)
        return results

    def close(self) -> None:
        """End the process, by force if it is busy."""
        with self._starting:
            self._closed = True
            process = self._started.process
            for end in self._started.ends:
                end.close()  # upon which an idle process ends
            process.join(_SECONDS_TO_END)
            if process.is_alive():
                process.kill()
                process.join()

    def _replace(self, lost: _Started) -> None:
        """Start another process, unless that was done when another batch of the lost one failed."""
        with self._starting:
            if self._closed or self._started is not lost:
                return
            lost.process.kill()
            lost.process.join()
            self._started = self._start()
        with suppress(NmtError, LostDecoderError):  # then the next batch fails too, and another process is tried
            self.wait()


def _receive(end: Connection, timeout: float | None) -> Any:
    """What a process answers. Raises what it raised, or LostDecoderError."""
    answer: Any = LostDecoderError()
    with suppress(EOFError, OSError):
        if end.poll(timeout):
            answer = end.recv()
    if isinstance(answer, Exception):
        raise answer
    return answer


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """A context in which a new process inherits that it ignores Ctrl-C, which the terminal sends to all: the server ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


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


def _serve(ends: Sequence[Connection], options: ProcessOptions) -> None:
    """Load the models, then decode batches, in a thread for each pipe, until the other ends are closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    logging.basicConfig(level=logging.ERROR)  # warnings tell of lines by numbers, which mean nothing here
    if options.prepare is not None:
        options.prepare()
    first, *others = ends
    with suppress(OSError):  # the other end is closed
        try:
            from nmt.serving.engine import Engine  # not before `prepare`

            engine = Engine(options.engine)
        except NmtError as error:
            first.send(error)
            return
        first.send(engine.description)
        for end in others:  # no daemons: one in the middle of PyTorch's code would abort the process as it ends
            threading.Thread(target=_decode_batches, args=(engine, end)).start()
        _decode_batches(engine, first)


def _decode_batches(engine: Engine, end: Connection) -> None:
    with suppress(EOFError, OSError):  # the other end is closed
        while True:
            setting, tasks = end.recv()
            answer: list[LineResult] | Exception
            try:
                answer = engine.run(setting, tasks)
            except Exception as error:  # noqa: BLE001 -- raised again by `run`
                answer = error
            end.send(answer)
