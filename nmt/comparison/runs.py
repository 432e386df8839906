"""Trains what is not yet trained, several recipes at a time, each in a process of its own that can be resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from nmt import __version__
from nmt.comparison.plan import Candidate, write_text
from nmt.errors import DataError, NmtError
from nmt.training.folder import check_untrained
from nmt.training.log import METRICS
from nmt.training.stopping import ending_signals, handling

POLL = 0.5
"""Seconds between two looks at the processes."""
_PATIENCE = 120
"""Seconds that a process may take to save its state when asked to stop."""

Record = Mapping[str, Any]


class Watcher(Protocol):
    """Is told how the trainings go."""

    def started(self, candidate: Candidate) -> None: ...
    def moved(self, candidate: Candidate, records: Sequence[Record]) -> None: ...
    def ended(self, candidate: Candidate, problem: str | None) -> None: ...


class Stopped(NmtError):  # noqa: N818 -- not an error
    """The comparison was stopped by a signal; what is done is kept."""

    def __init__(self, number: int) -> None:
        super().__init__("Stopped. What was trained and measured is saved; the same command goes on.")
        self.exit_status = 128 + number


@dataclass(frozen=True)
class Share:
    """What one training may use of the machine.

    Attributes:
        jobs: trainings at a time.
        threads: CPU threads of each.
        device: `auto`, `cpu` or `cuda`.
        processor: name of the processor or accelerator, for the record.
    """

    jobs: int
    threads: int
    device: str
    processor: str


def check_runs(candidates: Sequence[Candidate]) -> None:
    """Raises DataError if a run folder holds what no training wrote, and no training to go on with."""
    for candidate in candidates:
        if candidate.run.is_dir() and not candidate.marker.is_file():
            check_untrained(candidate.run)


def train_all(
    candidates: Sequence[Candidate], share: Share, watcher: Watcher, *, inherited: Sequence[int] = ()
) -> dict[str, str]:
    """Train or go on training every candidate whose training has not ended.

    Args:
        candidates: what to train, in this order; their recipe files are written.
        share: what each training may use.
        watcher: is told what happens.
        inherited: open descriptors that the processes keep open as long as they live.

    Returns:
        The sentence of each training that failed, by name.

    Raises:
        Stopped: by a signal, once all processes have saved and ended.
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
                watcher.moved(training.candidate, training.news())
                if ended:
                    running.remove(training)
                    _conclude(training, share, watcher, problems)
    finally:
        _stop(running)
    return problems


@dataclass
class _Training:
    """A training process and how far its records have been told."""

    candidate: Candidate
    process: subprocess.Popen[bytes]
    told: int
    """Records that have been told already."""
    seen: tuple[int, int] = field(default=(0, 0))
    """Time and size of the file of records when it was last read."""

    def news(self) -> list[Record]:
        """The records since the last look."""
        with suppress(OSError):
            state = (self.candidate.run / METRICS).stat()
            if (state.st_mtime_ns, state.st_size) != self.seen:
                self.seen = state.st_mtime_ns, state.st_size
                found = records(self.candidate)
                new = found[self.told :]  # none for a while if a resumed run took some back
                self.told = len(found)
                return new
        return []


def records(candidate: Candidate) -> list[Record]:
    """All complete records of a run so far."""
    try:
        lines = (candidate.run / METRICS).read_bytes().split(b"\n")[:-1]  # what follows the last line end is incomplete
    except OSError:
        return []
    found = []
    for line in lines:
        with suppress(ValueError):
            found.append(json.loads(line))
    return [record for record in found if isinstance(record, dict)]


def _start(candidate: Candidate, share: Share, inherited: Sequence[int]) -> _Training:
    """Start the process, in a group of its own: a Ctrl-C reaches it through us, once."""
    command = [sys.executable, "-m", "nmt.cli", "train", str(candidate.recipe_file), "--out", str(candidate.run)]
    command += [
        "--threads",
        str(share.threads),
        "--device",
        share.device,
        *(["--resume"] if candidate.run.is_dir() else []),
    ]
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
    return _Training(candidate, process, told=len(records(candidate)))


def _conclude(training: _Training, share: Share, watcher: Watcher, problems: dict[str, str]) -> None:
    candidate = training.candidate
    if training.process.returncode == 0:
        done = {"nmt": __version__, "processor": share.processor, "jobs": share.jobs, "threads": share.threads}
        write_text(candidate.marker, json.dumps(done) + "\n")
        watcher.ended(candidate, None)
        return
    problems[candidate.name] = _last_words(training)
    watcher.ended(candidate, problems[candidate.name])


def _last_words(training: _Training) -> str:
    """Why a training failed: the sentence it ended with."""
    with suppress(OSError):
        lines = training.candidate.log.read_text(encoding="utf-8", errors="replace").split("\n")
        if spoken := [line.strip() for line in lines if line.strip()]:
            return spoken[-1].removeprefix("nmt: ")
    status = training.process.returncode
    return f"Its process was ended by signal {-status}." if status < 0 else f"It ended with exit status {status}."


def _stop(running: Sequence[_Training]) -> None:
    """Ask every process to save and end; a second signal, or one that does not answer, ends it at once."""
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
    """Within it, Ctrl-C, SIGTERM and a closed terminal raise `Stopped`."""

    def stop(number: int) -> None:
        raise Stopped(number)

    with handling(ending_signals(), stop):
        yield
