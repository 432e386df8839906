"""Arrays over all word pairs of a parallel text.

A `cell` is one target word and one source word of the same sentence pair. Sentence pairs of the same lengths form a group,
whose cells are one array [B T S]. An `entry` is a pair of word types that occur together in some sentence pair: translation
probabilities are stored once per entry. Long texts are worked through in blocks of cells, to save memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Entries = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
BLOCK = 2_000_000
"""About how many cells are worked on at a time."""
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
    sources: Entries
    targets: Entries
    begin: int
    flipped: bool = False

    @property
    def end(self) -> int:
        """Index after their last cell."""
        return self.begin + int(self.sources.size * self.targets.shape[1])

    def of(self, cells: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """This group's part of an array over all cells, as a view [B T S]."""
        (pairs, source), target = self.sources.shape, self.targets.shape[1]
        own = cells[self.begin : self.end]
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
    source: Entries
    target: Entries

    @classmethod
    def of(cls, text: Iterable[tuple[Iterable[int], Iterable[int]]]) -> Cells:
        """The cells of pairs of lines given as ids."""
        lines: dict[tuple[int, int], tuple[array[int], ...]] = {}
        for row, pair in enumerate(text):
            source, target = (array("i", line) for line in pair)
            members = lines.setdefault((len(source), len(target)), (array("q"), array("i"), array("i")))
            for member, values in zip(members, ([row], source, target), strict=True):
                member.extend(values)
        groups, begin = list[Group](), 0
        for (source_length, target_length), members in sorted(lines.items()):
            if source_length and target_length:
                rows, sources, targets = map(np.asarray, members)
                groups.append(
                    Group(rows, sources.reshape(-1, source_length), targets.reshape(-1, target_length), begin)
                )
                begin = groups[-1].end
        width = 1 + max((int(group.targets.max()) for group in groups), default=0)
        keys, entry = numbered(map(_keys, _blocks(groups), repeat(width)))
        return cls(tuple(groups), entry, (keys // width).astype(np.int32), (keys % width).astype(np.int32))

    def blocks(self) -> Iterator[Cells]:
        """Some of the cells at a time, with all entries."""
        for groups in _blocks(self.groups):
            begin, end = groups[0].begin, groups[-1].end
            own = tuple(replace(group, begin=group.begin - begin) for group in groups)
            yield Cells(own, self.entry[begin:end], self.source, self.target)

    def flipped(self) -> Cells:
        """The same cells with source and target exchanged."""
        groups = (
            replace(group, sources=group.targets, targets=group.sources, flipped=not group.flipped)
            for group in self.groups
        )
        return Cells(tuple(groups), self.entry, self.target, self.source)

    def frequencies(self) -> tuple[list[int], list[int]]:
        """How often each source and each target word occurs."""
        sides = ([group.sources for group in self.groups], [group.targets for group in self.groups])
        source, target = (
            np.bincount(np.concatenate([np.empty(0, int), *map(np.ravel, side)])).tolist() for side in sides
        )
        return source, target

    def sums(self, weights: npt.NDArray[np.floating]) -> Floats:
        """Sum the cells' weights per entry, [entries]."""
        return np.bincount(self.entry, weights, len(self.source)).astype(np.float64)


def _keys(groups: Sequence[Group], width: int) -> Ids:
    """The two words of each cell as one number."""
    return np.concatenate(
        [(group.sources[:, None, :].astype(np.int64) * width + group.targets[:, :, None]).ravel() for group in groups]
    )


def numbered(blocks: Iterable[Ids]) -> tuple[Ids, Entries]:
    """The distinct keys of all blocks, sorted, and the place of each key among them: `np.unique` in less memory."""
    keys, parts = np.empty(0, np.int64), []
    for block in blocks:
        own, inverse = np.unique(block, return_inverse=True)
        parts.append((own, inverse.astype(np.int32)))
        # With counts, NumPy sorts; without, it hashes, which takes ten times as long for so many.
        keys = np.unique(np.concatenate([keys, own]), return_counts=True)[0]
    places = (np.searchsorted(keys, own).astype(np.int32)[inverse] for own, inverse in parts)
    return keys, np.concatenate([np.empty(0, np.int32), *places])


def _blocks(groups: Iterable[Group]) -> Iterator[list[Group]]:
    """Successive groups that have about as many cells as a block together."""
    return (list(block) for _, block in groupby(groups, lambda group: group.begin // BLOCK))
