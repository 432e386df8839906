"""Parallel text as cells: every target word of a pair beside every source word of the same pair.

Pairs of the same lengths form a group, whose cells are one array [B T S]. What is estimated for a source and a target word
together, the chance that one translates the other, is held once for each two words that meet in some pair: an `entry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Entries = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True)
class Group:
    """The B pairs of S source and T target words.

    Attributes:
        rows: where in the text they are, [B].
        sources: ids of their source words, [B S].
        targets: ids of their target words, [B T].
        begin: where their cells begin among all.
        flipped: whether their cells lie there as [B S T].
    """

    rows: Ids
    sources: Ids
    targets: Ids
    begin: int
    flipped: bool = False

    def of(self, cells: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """The view [B T S] of this group's cells of an array of all cells."""
        (pairs, source), target = self.sources.shape, self.targets.shape[1]
        found = cells[self.begin : self.begin + pairs * source * target]
        if self.flipped:
            return found.reshape(pairs, source, target).transpose(0, 2, 1)
        return found.reshape(pairs, target, source)


@dataclass(frozen=True)
class Cells:
    """All cells of a text.

    Attributes:
        groups: the pairs with words on both sides, those of the same lengths together.
        entry: which entry each cell is of, [cells].
        source: the source word of each entry.
        target: the target word of each entry.
    """

    groups: tuple[Group, ...]
    entry: Entries
    source: Ids
    target: Ids

    @classmethod
    def of(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Cells:
        """The cells of sentences given as ids."""
        width = 1 + max((max(ids, default=0) for ids in targets), default=0)
        groups = tuple(_groups(sources, targets))
        met = [(group.sources[:, None, :] * width + group.targets[:, :, None]).reshape(-1) for group in groups]
        keys, entry = np.unique(np.concatenate(met or [np.empty(0, np.int64)]), return_inverse=True)
        return cls(groups, entry.reshape(-1).astype(np.int32), keys // width, keys % width)

    def flipped(self) -> Cells:
        """The same cells for reading the source off the target."""
        groups = (
            replace(group, sources=group.targets, targets=group.sources, flipped=not group.flipped)
            for group in self.groups
        )
        return Cells(tuple(groups), self.entry, self.target, self.source)

    def sums(self, weights: npt.NDArray[np.floating]) -> Floats:
        """The sum of the weights of each entry's cells, [entries]."""
        return np.bincount(self.entry, weights, len(self.source)).astype(np.float64)


def _groups(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Iterator[Group]:
    source_lengths, target_lengths = (np.fromiter(map(len, side), np.int64, len(side)) for side in (sources, targets))
    order = np.lexsort((target_lengths, source_lengths))
    order = order[(source_lengths[order] > 0) & (target_lengths[order] > 0)]
    changes = np.flatnonzero(np.diff(source_lengths[order]) | np.diff(target_lengths[order])) + 1
    begin = 0
    for rows in np.split(order, changes) if len(order) else ():
        group = Group(rows, _words(sources, rows), _words(targets, rows), begin)
        yield group
        begin += group.sources.size * group.targets.shape[1]


def _words(side: Sequence[Sequence[int]], rows: Ids) -> Ids:
    """The ids of rows of the same length, [B length]."""
    return np.array([side[row] for row in rows], dtype=np.int64)
