"""A corpus in which the segmentation of every line is sampled: subword regularization (Kudo 2018)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, product

import numpy.typing as npt

from nmt.data.encoded import LOST, EncodedCorpus, EncodedPairs, id_type
from nmt.data.flat import Lists, collect_lists
from nmt.runtime.workers import Workers
from nmt.text.subwords import Subwords

SHARD = 2**18
"""Pairs per shard. Each shard of a side has a seed of its own, so the ids do not depend on the number of processes."""
_FEW = 4096
"""Pairs that this process segments alone, because starting others takes longer."""
_LINES = 10_000
Shard = tuple[Lists, Lists]
"""The source and the target ids of some pairs."""
Watch = Callable[[Iterable[Shard]], Iterator[Shard]]
"""Passes shards on and shows how far sampling has come."""


class SampledCorpus(EncodedPairs):
    """A corpus in which the segmentation of every line is sampled, in parallel processes.

    All lines are segmented before the epoch, so that batches are planned with the actual lengths. The ids are in a temporary file.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        source: Subwords,
        target: Subwords,
        *,
        alpha: float,
        seed: int,
        processes: int = 1,
        watch: Watch = iter,
    ) -> None:
        shards = _Shards(corpus, (source, target), alpha, seed)
        with closing(shards.lists(processes)) as lists:
            super().__init__(*collect_lists(watch(lists), 2, shards.dtype))


@dataclass(frozen=True)
class _Shards:
    """Segments the shards of a corpus."""

    corpus: EncodedCorpus
    sides: tuple[Subwords, Subwords]
    alpha: float
    seed: int

    @property
    def dtype(self) -> npt.DTypeLike:
        return id_type(*self.sides)

    def lists(self, processes: int) -> Generator[Shard]:
        """The ids of all pairs, shard by shard."""
        tasks = list(product(range(0, len(self.corpus), SHARD), range(2)))
        at_once = 2 * -(-processes // 2)  # whole shards
        groups = (tasks[first : first + at_once] for first in range(0, len(tasks), at_once))
        few = len(self.corpus) <= _FEW
        with Workers(self._side, 1 if few else processes, lost=LOST, min_tasks=1, computes=False) as workers:
            for sides in workers.map(groups):
                yield from zip(sides[::2], sides[1::2], strict=True)

    def _side(self, task: tuple[int, int]) -> Lists:
        """Segment one side of the shard that begins at a pair."""
        start, side = task
        lines = self.corpus.lines(side, start, min(start + SHARD, len(self.corpus)))
        ids = self.sides[side].sample(lines, self.alpha, seed=self.seed + side + (start // SHARD << 64))
        blocks = iter(lambda: list(islice(ids, _LINES)), [])
        [segmented] = collect_lists(([Lists.of(block, self.dtype)] for block in blocks), 1, self.dtype)
        return segmented


def pairs_of(shard: Shard) -> int:
    """Number of pairs of a shard."""
    return len(shard[0])
