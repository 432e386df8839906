"""Arrays over all word pairs of a parallel text.

A `cell` is one target word and one source word of the same sentence pair. Sentence pairs of the same lengths form a group,
whose cells are one array [B T S]. An `entry` is a pair of word types that occur together in some sentence pair: translation
probabilities are stored once per entry.
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
    """The B sentence pairs of S source and T target words.

    Attributes:
        rows: their line numbers, from 0, [B].
        sources: ids of the source words, [B S].
        targets: ids of the target words, [B T].
        begin: index of their first cell among all cells.
        flipped: whether the cells are stored as [B S T].
    """

    rows: Ids
    sources: Ids
    targets: Ids
    begin: int
    flipped: bool = False

    def of(self, cells: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """This group's part of an array over all cells, as a view [B T S]."""
        (pairs, source), target = self.sources.shape, self.targets.shape[1]
        own = cells[self.begin : self.begin + pairs * source * target]
        if self.flipped:
            return own.reshape(pairs, source, target).transpose(0, 2, 1)
        return own.reshape(pairs, target, source)


@dataclass(frozen=True)
class Cells:
    """All cells of a text.

    Attributes:
        groups: the sentence pairs with words on both sides, grouped by length.
        entry: index of each cell's entry, [cells].
        source: source word id of each entry.
        target: target word id of each entry.
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
        parts = [(group.sources[:, None, :] * width + group.targets[:, :, None]).reshape(-1) for group in groups]
        keys, entry = np.unique(np.concatenate(parts or [np.empty(0, np.int64)]), return_inverse=True)
        return cls(groups, entry.reshape(-1).astype(np.int32), keys // width, keys % width)

    def flipped(self) -> Cells:
        """The same cells with source and target exchanged."""
        groups = (
            replace(group, sources=group.targets, targets=group.sources, flipped=not group.flipped)
            for group in self.groups
        )
        return Cells(tuple(groups), self.entry, self.target, self.source)

    def sums(self, weights: npt.NDArray[np.floating]) -> Floats:
        """Sum the cells' weights per entry, [entries]."""
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
