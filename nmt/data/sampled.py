"""A corpus in which the segmentation of every line is sampled: subword regularization (Kudo 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from nmt.data.arrays import Lists, collect_lists
from nmt.data.encoded import EncodedCorpus, EncodedPairs, id_type
from nmt.runtime.pool import Pool
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
        starts = range(0, len(corpus), SHARD)
        tasks = ((start, side) for start in starts for side in (0, 1))
        dtype = id_type(source, target)

        def segment(task: tuple[int, int]) -> Lists:
            """Segment one side of the shard that begins at a row."""
            start, side = task
            lines = corpus.lines(side, start, min(start + SHARD, len(corpus)))
            ids = (source, target)[side].sample(lines, alpha, seed=seed + side + (start // SHARD << 64))
            blocks = iter(lambda: list(islice(ids, _LINES)), [])
            return collect_lists(([Lists.of(block, dtype)] for block in blocks), 1, dtype)[0]

        with Pool(segment, 1 if len(corpus) <= _FEW else processes, computes=False) as pool:
            lists = pool.map(tasks)
            super().__init__(*collect_lists(watch(zip(lists, lists, strict=True)), 2, dtype))


def pairs_of(shard: Shard) -> int:
    """Number of pairs of a shard."""
    return len(shard[0])
