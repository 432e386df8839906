"""IBM model 1: which target piece translates which source piece, learnt from pairs of sentences alone.

    t(y | x) ~ c(y, x) = sum over pairs, j, i with y_j = y, x_i = x of  t(y_j | x_i) / sum_i' t(y_j | x_i')

where x_0 of every source is the empty word (Brown et al. 1993, 4.1). Every cell, a target piece with a source piece of the same
pair, is one entry of flat arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """Pairs of a source and a target piece, sorted, and how often one was the other's translation in the last round."""

    source: Ids
    target: Ids
    count: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Cells:
    """The cells of a text, those of a target piece side by side.

    `entry` says which of the distinct `keys`, x * sources + y, a cell is; `first` where each target piece's cells begin.
    """

    keys: Ids
    entry: Ids
    first: Ids


def learn_counts(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, empty: int, rounds: int = 5
) -> Counts:
    """Expected counts after some rounds of expectation maximisation from equal probabilities.

    Args:
        sources: ids of each source sentence.
        targets: ids of its translation.
        empty: the id that stands for the empty word; it is no piece of a source.
        rounds: how often the counts are made anew.
    """
    width = 1 + max((max(ids, default=0) for ids in targets), default=0)
    cells = _cells(sources, targets, empty, width)
    given = cells.keys // width
    probability = count = np.ones(len(cells.keys))
    for _ in range(rounds):
        share = probability[cells.entry]
        total = np.add.reduceat(share, cells.first) if len(cells.first) else share
        share /= np.repeat(total, np.diff(cells.first, append=len(share)))
        count = np.bincount(cells.entry, share, len(cells.keys)).astype(np.float64)
        probability = count / np.bincount(given, count)[given]
    return Counts(given, cells.keys % width, count)


def _cells(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], empty: int, width: int) -> _Cells:
    flat_source = np.array([index for ids in sources for index in (empty, *ids)], dtype=np.int64)
    flat_target = np.array([index for ids in targets for index in ids], dtype=np.int64)
    lengths = np.array([len(ids) + 1 for ids in sources], dtype=np.int64)
    target_lengths = np.array([len(ids) for ids in targets], dtype=np.int64)
    each = np.repeat(lengths, target_lengths)  # cells of each target piece
    first = np.cumsum(each) - each
    begin = np.repeat(np.cumsum(lengths) - lengths, target_lengths)
    place = np.arange(each.sum()) + np.repeat(begin - first, each)
    keys, entry = np.unique(flat_source[place] * width + np.repeat(flat_target, each), return_inverse=True)
    return _Cells(keys, entry.reshape(-1), first)
