"""Runs of programs with their time and memory, and the spread of repeated measurements.

The process that starts the others imports nothing heavy: on Linux the peak memory of a child is never below that of the
process that started it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: what it holds is measured, whatever nmt is installed."""


class Failed(Exception):  # noqa: N818 -- what a measurement did, not an error of this program
    """A measurement that could not be made; the others go on. Its text is a sentence for the person who asked."""


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of several windows."""

    median: float
    low: float
    high: float
    windows: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Raises Failed if there are no values."""
        known = list(values)
        if not known:
            raise Failed("There was not a single window to measure: let it run for longer.")
        return cls(statistics.median(known), min(known), max(known), len(known))


@dataclass(frozen=True)
class Ended:
    """A program that ran to its end: what it wrote, the seconds it took, and its peak memory in MiB."""

    output: str
    errors: str
    seconds: float
    peak: float


def run(
    command: Sequence[object],
    *,
    threads: int,
    what: str,
    stdin: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program with so many threads. Raises Failed, with the end of what it said, if it cannot run or fails."""
    environment = {
        **os.environ,
        **{name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")},
        **(variables or {}),
    }
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, open(stdin or os.devnull, "rb") as fed:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(words, stdin=fed, stdout=output, stderr=errors, env=environment)
        except OSError as error:
            raise Failed(f"{what}: cannot run {words[0]} ({error.strerror}).") from None
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    if process.returncode:
        said = " / ".join((texts[1].strip() or texts[0].strip()).splitlines()[-3:])
        raise Failed(f"{what}: {Path(words[0]).name} ended with status {process.returncode}, saying: {said}")
    return Ended(texts[0], texts[1], seconds, used.ru_maxrss / 1024)


def ours(module: str, *arguments: object, threads: int, what: str, stdin: Path | None = None) -> Ended:
    """Run a module of this checkout, such as `nmt.cli`. Raises Failed."""
    command, variables = [sys.executable, "-m", module, *arguments], {"PYTHONPATH": str(ROOT)}
    return run(command, threads=threads, what=what, stdin=stdin, variables=variables)


def work(task: str, *, threads: int, what: str, **settings: Any) -> tuple[dict[str, Any], Ended]:
    """What a task of the worker process found, and how it ran."""
    ended = ours("tools.benchmarks.worker", task, json.dumps(settings), threads=threads, what=what)
    return json.loads(ended.output.splitlines()[-1]), ended


def tell(text: str) -> None:
    """Tell a person where the benchmark is."""
    print(text, file=sys.stderr, flush=True)
