"""Sentences by the length of their source: buckets that are wide enough to say something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmt.scripts import splitter

SMALLEST = 30
"""Sentences in a bucket, at least: BLEU of fewer says little."""
_MOST = 9
_WIDTHS = (1, 2, 3, 4, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Bucket:
    """The sentences whose source has from `low` to `high` words.

    Attributes:
        low: words of the shortest.
        high: words of the longest.
        rows: which sentences they are.
    """

    low: int
    high: int
    rows: tuple[int, ...]


def span(low: int, high: int) -> str:
    """How a range of lengths is written."""
    return f"{low}" if low == high else f"{low}–{high}"


def length_buckets(lines: Sequence[str]) -> list[Bucket]:
    """Buckets of equal width in words (characters where there are no spaces), neighbours with too few sentences merged.

    The width is the least of 1, 2, 3, 4, 5, 10, ... with which the middle 95 % of the sentences need at most nine buckets.
    """
    split = splitter(lines)
    lengths = np.array([len(split(line)) for line in lines])
    low, high = np.quantile(lengths, [0.025, 0.975])
    width = next((width for width in _WIDTHS if high - low < width * _MOST), int(high - low))
    groups: list[list[int]] = []
    number = np.maximum(lengths - 1, 0) // width
    for value in np.unique(number):
        rows = np.flatnonzero(number == value).tolist()
        if groups and len(groups[-1]) < SMALLEST:
            groups[-1] += rows
        else:
            groups.append(rows)
    if len(groups) > 1 and len(groups[-1]) < SMALLEST:
        groups[-2:] = [groups[-2] + groups[-1]]
    return [Bucket(int(lengths[rows].min()), int(lengths[rows].max()), tuple(sorted(rows))) for rows in groups]
