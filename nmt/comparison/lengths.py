"""Group sentences by source length, in buckets that are large enough for BLEU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmt.text.scripts import splitter

SMALLEST = 30
"""Least sentences per bucket; BLEU of fewer is too noisy."""
_MOST = 9
_WIDTHS = (1, 2, 3, 4, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Bucket:
    """The indices of the sentences whose source has `low` to `high` words."""

    low: int
    high: int
    rows: tuple[int, ...]


def length_buckets(lines: Sequence[str]) -> list[Bucket]:
    """Group sentences into buckets of equal width in words (characters in text without spaces).

    The width is the smallest of 1, 2, 3, 4, 5, 10, ... for which the middle 95 % of the sentences need at most nine buckets.
    Neighboring buckets with too few sentences are merged.
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
