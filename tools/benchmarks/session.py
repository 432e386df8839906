"""The state that all phases of one run share, and the sections of the report that they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from .measuring import MeasurementError, Spread, tell, work
from .peers import Peer
from .text import Text, prepare

T = TypeVar("T")
P = ParamSpec("P")
PRECISIONS = ("fp32", "bf16", "int8")
"""Precisions of matrix products."""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    windows: int
    """Repetitions of each measurement, of which the median counts. In training these are runs, each with several windows."""
    updates: int
    """Updates of each timed training run; the first ten only warm up."""
    model_updates: int
    """Updates of the models used for decoding."""
    lines: int
    """Number of test lines to decode."""


FULL = Effort(windows=5, updates=20, model_updates=300, lines=1000)
QUICK = Effort(windows=1, updates=15, model_updates=15, lines=32)


@dataclass(frozen=True)
class Section:
    """A table of the report, and the figures in it."""

    name: str
    title: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: Any


@dataclass
class Session:
    """One run on one machine."""

    folder: Path
    effort: Effort
    threads: int
    device: str
    batch_tokens: int
    peers: list[Peer]
    failures: list[str] = field(default_factory=list)

    @cached_property
    def text(self) -> Text:
        return prepare(self.folder)

    @cached_property
    def machine(self) -> dict[str, Any]:
        """The machine, and the spread of its operations per second in each of `PRECISIONS` that it supports."""
        tell("ceiling: peak throughput of matrix products")
        answer, _ = work(
            "ceiling",
            threads=self.threads,
            what="The ceiling",
            device=self.device,
            size=2048,
            windows=max(self.effort.windows, 3),
        )
        return {
            **answer,
            **{precision: Spread.of(answer[precision]) for precision in PRECISIONS if precision in answer},
        }

    def attempt(self, label: str, measure: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result of a measurement; None, with an entry in `failures`, if it raises MeasurementError."""
        tell(label)
        try:
            return measure(*args, **kwargs)
        except MeasurementError as error:
            self.failures.append(str(error))
            tell(f"  failed. {error}")
            return None

    def interleaved(self, measurements: Sequence[tuple[str, Callable[[], T]]]) -> list[list[T]]:
        """The results of several rounds of all measurements, each with its label; an empty list for one that fails.

        Every round takes each measurement once, so that changes in the speed of a shared machine affect all of them alike.
        """
        results: list[list[T]] = [[] for _ in measurements]
        failed: set[int] = set()
        for number in range(1, self.effort.windows + 1):
            for index, (label, measure) in enumerate(measurements):
                if index in failed:
                    continue
                result = self.attempt(f"{label}, {number}", measure)
                if result is None:
                    failed.add(index)
                    results[index].clear()
                else:
                    results[index].append(result)
        return results
