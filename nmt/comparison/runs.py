"""Train the recipes of a comparison, several at a time, each in a process that can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nmt.comparison.plan import Candidate, mark_trained
from nmt.errors import DataError, NmtError
from nmt.runtime.json_files import read_records
from nmt.training.folder import check_untrained
from nmt.training.log import METRICS
from nmt.training.stopping import ending_signals, handling

POLL = 0.5
"""Seconds between checks of the processes."""
_PATIENCE = 120
"""Seconds a process may take to save its state when it is stopped."""

Record = Mapping[str, Any]


class Watcher(Protocol):
    """Receives the progress of the trainings."""

    def started(self, candidate: Candidate) -> None: ...
    def moved(self, candidate: Candidate, records: Sequence[Record]) -> None: ...
    def ended(self, candidate: Candidate, problem: str | None) -> None: ...


class Stopped(NmtError):  # noqa: N818 -- not an error
    """A comparison or reproduction was stopped by a signal; finished work is saved."""

    def __init__(self, number: int) -> None:
        super().__init__("Stopped. What was trained and measured is saved; the same command goes on.")
        self.exit_status = 128 + number


@dataclass(frozen=True)
class Share:
    """The resources of one of `jobs` trainings at a time; `processor` is the name of its CPU or GPU, for the record."""

    jobs: int
    threads: int
    device: str
    processor: str


def check_runs(candidates: Sequence[Candidate]) -> None:
    """Raise DataError if a run folder has other files and no training to resume."""
    for candidate in candidates:
        if candidate.run.is_dir() and not candidate.marker.is_file():
            check_untrained(candidate.run)


def train_all(
    candidates: Sequence[Candidate], share: Share, watcher: Watcher, *, inherited: Sequence[int] = ()
) -> dict[str, str]:
    """Train or resume, in order, every candidate whose training has not ended; their recipe files must exist.

    The processes inherit the file descriptors `inherited`.

    Returns:
        Error messages of failed trainings, by name.

    Raises:
        Stopped: on a signal, once all processes have saved their state and ended.
        DataError: the folder cannot be written.
    """
    waiting = deque(candidate for candidate in candidates if not candidate.marker.is_file())
    running: list[_Training] = []
    problems: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < share.jobs:
                running.append(_start(waiting.popleft(), share, inherited))
                watcher.started(running[-1].candidate)
            time.sleep(POLL)
            for training in list(running):
                ended = training.process.poll() is not None
                watcher.moved(training.candidate, training.new_records())
                if ended:
                    running.remove(training)
                    candidate, problem = training.candidate, None
                    if training.process.returncode == 0:
                        machine = {"processor": share.processor, "jobs": share.jobs, "threads": share.threads}
                        mark_trained(candidate.run, machine)
                    else:
                        problem = problems[candidate.name] = _error_message(training)
                    watcher.ended(candidate, problem)
    finally:
        _stop(running)
    return problems


@dataclass
class _Training:
    """A training process, and how many of its records have been read."""

    candidate: Candidate
    process: subprocess.Popen[bytes]
    count: int
    version: tuple[int, int] = (0, 0)
    """Modification time and size of the file of records when it was last read."""

    def new_records(self) -> list[Record]:
        """The records since the last call."""
        with suppress(OSError):
            status = (self.candidate.run / METRICS).stat()
            if (status.st_mtime_ns, status.st_size) != self.version:
                self.version = status.st_mtime_ns, status.st_size
                every = records(self.candidate.run)
                new = every[self.count :]  # none for a while if a resumed run has removed some
                self.count = len(every)
                return new
        return []


def records(run: Path) -> list[Record]:
    """All complete records of a run so far; none if its log cannot be read."""
    try:
        return [record for _, record in read_records(run / METRICS)]
    except DataError:
        return []


def _start(candidate: Candidate, share: Share, inherited: Sequence[int]) -> _Training:
    """Start a training process, in a session of its own so that it gets Ctrl-C only from `_stop`."""
    command = [sys.executable, "-m", "nmt", "train", str(candidate.recipe_file), "--out", str(candidate.run)]
    command += ["--threads", str(share.threads), "--device", share.device, *["--resume"] * candidate.run.is_dir()]
    try:
        candidate.log.parent.mkdir(parents=True, exist_ok=True)
        with candidate.log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 -- our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": str(share.threads)},
                start_new_session=True,
                pass_fds=inherited,
            )
    except OSError as error:
        raise DataError(f"Cannot start the training of {candidate.name}: {error.strerror or error}.") from None
    return _Training(candidate, process, count=len(records(candidate.run)))


def _error_message(training: _Training) -> str:
    """Why a training failed: the last line of its log, else its exit status."""
    with suppress(OSError):
        lines = training.candidate.log.read_text(encoding="utf-8", errors="replace").split("\n")
        if messages := [line.strip() for line in lines if line.strip()]:
            return messages[-1].removeprefix("nmt: ")
    status = training.process.returncode
    return f"Its process was ended by signal {-status}." if status < 0 else f"It ended with exit status {status}."


def _stop(running: Sequence[_Training]) -> None:
    """Interrupt every process, so that it saves its state and ends; after a second signal or a timeout kill it."""
    for training in running:
        training.process.send_signal(signal.SIGINT)
    try:
        for training in running:
            training.process.wait(timeout=_PATIENCE)
    except (Stopped, subprocess.TimeoutExpired):
        pass
    finally:
        for training in running:
            if training.process.poll() is None:
                training.process.kill()
                training.process.wait()


@contextmanager
def stoppable() -> Iterator[None]:
    """A context in which Ctrl-C, SIGTERM and closing the terminal raise `Stopped`."""

    def stop(number: int) -> None:
        raise Stopped(number)

    with handling(ending_signals(), stop):
        yield
