"""What all phases of one run share, and what they make: sections of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from .measuring import Failed, Spread, tell, work
from .peers import Peer
from .text import Text, prepare

T = TypeVar("T")
P = ParamSpec("P")
PRECISIONS = ("fp32", "bf16", "int8")
"""Of matrix products."""


@dataclass(frozen=True)
class Effort:
    """How long everything is measured."""

    windows: int
    """Timings of each thing, of which the median counts; of training they are runs, each with several."""
    updates: int
    """Updates of each run of training that is timed; the first ten only warm up."""
    model_updates: int
    """Updates of the models that are decoded with."""
    lines: int
    """Lines of the test text that are decoded."""
    file_lines: tuple[int, ...]
    """Lengths of the files over which memory must stay constant."""


FULL = Effort(windows=5, updates=20, model_updates=300, lines=1000, file_lines=(2000, 20_000, 200_000))
QUICK = Effort(windows=1, updates=15, model_updates=15, lines=32, file_lines=(50, 500))


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
        """What the machine is, and the spread of its operations a second in each of `PRECISIONS` that it has."""
        tell("ceiling: square matrix products")
        found, _ = work(
            "ceiling",
            threads=self.threads,
            what="The ceiling",
            device=self.device,
            size=2048,
            windows=max(self.effort.windows, 3),
        )
        return {**found, **{precision: Spread.of(found[precision]) for precision in PRECISIONS if precision in found}}

    def attempt(self, doing: str, measure: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What a measurement gives, or None and a noted sentence if it fails."""
        tell(doing)
        try:
            return measure(*args, **kwargs)
        except Failed as failure:
            self.failures.append(str(failure))
            tell(f"  failed. {failure}")
            return None

    def in_turn(self, measurements: Sequence[tuple[str, Callable[[], T]]]) -> list[list[T]]:
        """What each measurement gives, time and again; nothing of one that fails.

        All are taken for the first time, then all for the second: a machine that is shared is not always as fast.
        """
        taken: list[list[T] | None] = [[] for _ in measurements]
        for number in range(1, self.effort.windows + 1):
            for place, (doing, measure) in enumerate(measurements):
                before = taken[place]
                if before is not None:
                    found = self.attempt(f"{doing}, {number}", measure)
                    taken[place] = None if found is None else [*before, found]
        return [found or [] for found in taken]
