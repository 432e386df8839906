"""Counters, gauges and histograms in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SENTENCES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
Labels = tuple[str, ...]


class Counter:
    """A sum that only grows, one for each combination of label values."""

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Labels = ()) -> None:
        self.name, self.text, self._labels = name, text, labels
        self._values: defaultdict[Labels, float] = defaultdict(float)
        self._lock = threading.Lock()
        if not labels:
            self._values[()] = 0.0

    def add(self, *values: str, amount: float = 1.0) -> None:
        """Add to the sum with these label values."""
        with self._lock:
            self._values[values] += amount

    def samples(self) -> Iterator[str]:
        """The lines of its values."""
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values:
            yield f"{self.name}{_braces(self._labels, labels)} {value:g}"


class Gauge:
    """A value that is read when it is asked for."""

    kind = "gauge"

    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self.name, self.text, self._read = name, text, read

    def samples(self) -> Iterator[str]:
        """The line of its value."""
        yield f"{self.name} {self._read():g}"


class Histogram:
    """How often values were at most each bound, and their sum, for each combination of label values."""

    kind = "histogram"

    def __init__(self, name: str, text: str, bounds: Sequence[float], labels: Labels = ()) -> None:
        self.name, self.text, self._bounds, self._labels = name, text, tuple(bounds), labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: defaultdict[Labels, float] = defaultdict(float)
        self._lock = threading.Lock()

    def observe(self, value: float, *labels: str) -> None:
        """Count a value."""
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
            counts[bisect_left(self._bounds, value)] += 1
            self._sums[labels] += value

    def samples(self) -> Iterator[str]:
        """The lines of its buckets, sums and counts."""
        with self._lock:
            series = [(labels, list(counts), self._sums[labels]) for labels, counts in sorted(self._counts.items())]
        for labels, counts, total in series:
            below = 0
            for bound, count in zip((*map("{:g}".format, self._bounds), "+Inf"), counts, strict=True):
                below += count
                yield f"{self.name}_bucket{_braces((*self._labels, 'le'), (*labels, bound))} {below}"
            yield f"{self.name}_sum{_braces(self._labels, labels)} {total:g}"
            yield f"{self.name}_count{_braces(self._labels, labels)} {below}"


def exposition(metrics: Sequence[Counter | Gauge | Histogram]) -> str:
    """All metrics as text."""
    lines = (
        line
        for metric in metrics
        for line in (f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {metric.kind}", *metric.samples())
    )
    return "\n".join(lines) + "\n"


def _braces(names: Labels, values: Labels) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{','.join(pairs)}}}" if names else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
