"""Run programs and measure their time and memory; summarize repeated measurements.

This process imports nothing heavy, because on Linux the peak memory of a child is never below that of its parent.
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
"""The checkout. Its nmt is measured, not an installed one."""


class MeasurementError(Exception):
    """A measurement failed; the others go on. The text is a sentence for the user."""


@dataclass(frozen=True)
class Spread:
    """Median, minimum and maximum of several windows."""

    median: float
    low: float
    high: float
    windows: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Raises MeasurementError if there are no values."""
        windows = list(values)
        if not windows:
            raise MeasurementError("There was not a single window to measure: raise --updates.")
        return cls(statistics.median(windows), min(windows), max(windows), len(windows))


@dataclass(frozen=True)
class ProcessResult:
    """Standard output and error of a finished program, its wall-clock seconds, and its peak memory in MiB."""

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
) -> ProcessResult:
    """Run a program with the given number of threads; `what` names it in errors. Raises MeasurementError with the end of its output."""
    environment = {
        **os.environ,
        **{name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")},
        **(variables or {}),
    }
    words = [str(word) for word in command]
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        open(stdin or os.devnull, "rb") as source,
    ):
        start = time.perf_counter()
        try:
            process = subprocess.Popen(words, stdin=source, stdout=output, stderr=errors, env=environment)
        except OSError as error:
            raise MeasurementError(f"{what}: cannot run {words[0]} ({error.strerror}).") from None
        try:
            _, status, usage = os.wait4(process.pid, 0)
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
        last_lines = " / ".join((texts[1].strip() or texts[0].strip()).splitlines()[-3:])
        raise MeasurementError(
            f"{what}: {Path(words[0]).name} ended with status {process.returncode}, saying: {last_lines}"
        )
    return ProcessResult(texts[0], texts[1], seconds, usage.ru_maxrss / 1024)


def ours(module: str, *arguments: object, threads: int, what: str, stdin: Path | None = None) -> ProcessResult:
    """Run a module of this checkout, such as `nmt.cli`. Raises MeasurementError."""
    command, variables = [sys.executable, "-m", module, *arguments], {"PYTHONPATH": str(ROOT)}
    return run(command, threads=threads, what=what, stdin=stdin, variables=variables)


def work(task: str, *, threads: int, what: str, **settings: Any) -> tuple[dict[str, Any], ProcessResult]:
    """Run a task in a worker process: its answer, and the finished process."""
    process = ours("tools.benchmarks.worker", task, json.dumps(settings), threads=threads, what=what)
    return json.loads(process.output.splitlines()[-1]), process


def tell(text: str) -> None:
    """Print progress on standard error."""
    print(text, file=sys.stderr, flush=True)
