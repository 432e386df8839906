"""Train the recipes of a comparison, several at a time, each in a process that can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.comparison.plan import Candidate, mark_trained
from nmt.errors import DataError, NmtError
from nmt.recipe import dump_recipe
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_records
from nmt.runtime.wording import perplexity
from nmt.training.log import METRICS, validation_scores
from nmt.training.stopping import ending_signals, handling

POLL = 0.5
"""Seconds between checks of the processes."""
_PATIENCE = 120
"""Seconds a process may take to save its state when it is stopped."""


class Stopped(NmtError):  # noqa: N818 -- not an error
    """A comparison was stopped by a signal; finished work is saved."""

    def __init__(self, number: int) -> None:
        super().__init__("Stopped. What was trained and measured is saved; the same command goes on.")
        self.exit_status = 128 + number


@dataclass(frozen=True)
class Machine:
    """What trains: `jobs` trainings at a time, with so many CPU threads each; `processor` is the name of the CPU or GPU."""

    jobs: int
    threads: int
    device: str
    processor: str


@dataclass
class _Training:
    """A training process, and how many of its records were read."""

    candidate: Candidate
    process: subprocess.Popen[bytes]
    read: int


def train_all(candidates: Sequence[Candidate], machine: Machine, say: Callable[[str], None]) -> dict[str, str]:
    """Train or resume, in order, every candidate whose training has not ended.

    Args:
        candidates: the recipes, which are written to the folder first: later edits of their files have no effect.
        machine: what trains.
        say: shows a line.

    Returns:
        Error messages of failed trainings, by name.

    Raises:
        Stopped: on a signal, once all processes have saved their state and ended.
        DataError: the folder cannot be written.
    """
    for candidate in candidates:
        write_content(candidate.recipe_file, dump_recipe(candidate.recipe))
    waiting = deque(candidate for candidate in candidates if not candidate.marker.is_file())
    running: list[_Training] = []
    problems: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < machine.jobs:
                running.append(_start(waiting.popleft(), machine))
                say(f"{running[-1].candidate.name}: training")
            time.sleep(POLL)
            for training in list(running):
                candidate, status = training.candidate, training.process.poll()
                _show_validations(training, say)
                if status is None:
                    continue
                running.remove(training)
                if status == 0:
                    where = {"processor": machine.processor, "jobs": machine.jobs, "threads": machine.threads}
                    mark_trained(candidate.run, where)
                    outcome = "trained"
                else:
                    log = candidate.log.read_text(encoding="utf-8", errors="replace")
                    lines = [line.strip() for line in log.split("\n") if line.strip()]
                    problem = lines[-1].removeprefix("nmt: ") if lines else f"It ended with exit status {status}."
                    problems[candidate.name] = problem
                    outcome = f"failed: {problem} See {candidate.log}."
                ended = len(candidates) - len(waiting) - len(running)
                say(f"{candidate.name}: {outcome}  ({ended} of {len(candidates)})")
    finally:
        _stop(running)
    return problems


def records(run: Path) -> list[dict[str, Any]]:
    """All complete records of a run so far; none if its log cannot be read."""
    try:
        return [record for _, record in read_records(run / METRICS)]
    except DataError:
        return []


def _start(candidate: Candidate, machine: Machine) -> _Training:
    """Start a training process, in a session of its own so that it gets Ctrl-C only from `_stop`."""
    command = [sys.executable, "-m", "nmt", "train", str(candidate.recipe_file), "--out", str(candidate.run)]
    command += ["--threads", str(machine.threads), "--device", machine.device]
    if candidate.run.is_dir():
        command.append("--resume")
    try:
        candidate.log.parent.mkdir(parents=True, exist_ok=True)
        with candidate.log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 -- our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": str(machine.threads)},
                start_new_session=True,
            )
    except OSError as error:
        raise DataError(f"Cannot start the training of {candidate.name}: {error.strerror or error}.") from None
    return _Training(candidate, process, read=len(records(candidate.run)))


def _show_validations(training: _Training, say: Callable[[str], None]) -> None:
    """Show a line for each new validation."""
    log = records(training.candidate.run)
    for record in log[training.read :]:
        if record.get("kind") == "valid":
            scores = validation_scores(record) or f"ppl {perplexity(record['perplexity'])}"
            say(f"{training.candidate.name}: epoch {record['epoch']}  {scores}  update {record['update']:,}")
    training.read = max(training.read, len(log))


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
            training.process.kill()
            training.process.wait()


@contextmanager
def stoppable() -> Iterator[None]:
    """A context in which Ctrl-C, SIGTERM and closing the terminal raise `Stopped`."""

    def stop(number: int) -> None:
        raise Stopped(number)

    with handling(ending_signals(), stop):
        yield
