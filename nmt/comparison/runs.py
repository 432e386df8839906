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

from nmt.comparison.plan import TRAINED, Candidate
from nmt.recipe import dump_recipe
from nmt.runtime.files import write_content
from nmt.training.stopping import ending_signals, handling
from nmt.training.trainer import Interrupted

POLL = 0.5
"""Seconds between checks of the processes."""


@dataclass(frozen=True)
class Machine:
    """What trains: `jobs` trainings at a time, with so many CPU threads each; `processor` is the name of the CPU or GPU."""

    jobs: int
    threads: int
    device: str
    processor: str


def train_all(candidates: Sequence[Candidate], machine: Machine, say: Callable[[str], None]) -> dict[str, str]:
    """Train or resume, in order, every candidate whose training has not ended.

    Args:
        candidates: the recipes, which are written to the folder first: later edits of their files have no effect.
        machine: what trains.
        say: shows a line.

    Returns:
        Error messages of failed trainings, by name.

    Raises:
        Interrupted: on a signal, once all processes have saved their state and ended.
        DataError: the folder cannot be written.
    """
    for candidate in candidates:
        write_content(candidate.recipe_file, dump_recipe(candidate.recipe))
    waiting = deque(candidate for candidate in candidates if not (candidate.run / TRAINED).is_file())
    running: dict[subprocess.Popen[bytes], Candidate] = {}
    problems: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < machine.jobs:
                candidate = waiting.popleft()
                running[_start(candidate, machine)] = candidate
                say(f"{candidate.name}: training; see {candidate.log}")
            time.sleep(POLL)
            for process in [process for process in running if process.poll() is not None]:
                candidate = running.pop(process)
                outcome = "trained"
                if process.returncode == 0:
                    (candidate.run / TRAINED).touch()
                else:
                    log = candidate.log.read_text(encoding="utf-8", errors="replace").strip()
                    problem = log.rpartition("\n")[2].removeprefix("nmt: ") or f"status {process.returncode}."
                    problems[candidate.name] = problem
                    outcome = f"failed: {problem} See {candidate.log}."
                say(
                    f"{candidate.name}: {outcome}  ({len(candidates) - len(waiting) - len(running)} of {len(candidates)})"
                )
    finally:  # each saves its state and ends
        for process in running:
            process.send_signal(signal.SIGINT)
        for process in running:
            process.wait()
    return problems


def _start(candidate: Candidate, machine: Machine) -> subprocess.Popen[bytes]:
    """Start a training process, in a session of its own so that a terminal's Ctrl-C does not reach it twice."""
    command = [sys.executable, "-m", "nmt", "train", str(candidate.recipe_file), "--out", str(candidate.run)]
    command += ["--threads", str(machine.threads), "--device", machine.device]
    if candidate.run.is_dir():
        command.append("--resume")
    candidate.log.parent.mkdir(parents=True, exist_ok=True)
    with candidate.log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603 -- our own program
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": str(machine.threads)},
            start_new_session=True,
        )


@contextmanager
def stoppable() -> Iterator[None]:
    """A context in which Ctrl-C, SIGTERM and closing the terminal raise `Interrupted`."""

    def stop(number: int) -> None:
        raise Interrupted("What was trained and measured is saved; the same command goes on.", number)

    with handling(ending_signals(), stop):
        yield
