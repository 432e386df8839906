"""Join random pairs of a corpus into longer ones: sentence concatenation (Nguyen et al. 2021; Kondo et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from nmt.data.batching import Rows
from nmt.data.encoded import EncodedPairs
from nmt.data.flat import Lists, collect_lists

_BLOCK = 10_000
"""Pairs that are copied at a time."""


def join_pairs(
    pairs: EncodedPairs, parts: Sequence[tuple[Rows, int]], *, share: float, most: int, seed: int, epoch: int
) -> tuple[EncodedPairs, Rows]:
    """The pairs of an epoch and, after all of the corpus, random ones of them joined: the two sources in one line, and the two targets.

    Args:
        pairs: the corpus.
        parts: the rows of each part of the epoch, and how many tokens of a tag its source lines begin with, which a joined line
            has once.
        share: number of joined pairs per pair of the epoch.
        most: most tokens of a side of a joined pair; longer ones are left out.
        seed: with the epoch, says which pairs are joined.
        epoch: number of the epoch.

    Returns:
        The pairs, and the rows of the epoch among them.
    """
    generator = np.random.default_rng((seed, epoch, 1))
    drawn = [(_draw(generator, rows, share), tag) for rows, tag in parts]
    short = [
        np.all(
            [lengths[first] + lengths[second] <= most for lengths in (pairs.source_lengths, pairs.target_lengths)],
            axis=0,
        )
        for (first, second), _ in drawn
    ]
    joined = [((first[kept], second[kept]), tag) for ((first, second), tag), kept in zip(drawn, short, strict=True)]
    dtype = pairs.source.values.dtype
    together = EncodedPairs(*collect_lists(_blocks(pairs, joined), 2, dtype))
    own = [rows for rows, _ in parts]
    return together, np.concatenate([*own, np.arange(len(pairs), len(together), dtype=np.int32)])


def _draw(generator: np.random.Generator, rows: Rows, share: float) -> tuple[Rows, Rows]:
    """The rows that come first and second in joined pairs: every row once before any comes twice."""
    count = round(share * len(rows))
    first, second = (np.resize(generator.permutation(rows), count) for _ in range(2))
    return first, second


def _blocks(pairs: EncodedPairs, joined: Sequence[tuple[tuple[Rows, Rows], int]]) -> Iterator[tuple[Lists, Lists]]:
    """All pairs, then the joined ones, as lists of source and target ids."""
    for start in range(0, len(pairs), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(pairs)))
        yield _lists(pairs.source[rows]), _lists(pairs.target[rows])
    for (first, second), tag in joined:
        for start in range(0, len(first), _BLOCK):
            block = slice(start, start + _BLOCK)
            sources = zip(pairs.source[first[block]], pairs.source[second[block]], strict=True)
            targets = zip(pairs.target[first[block]], pairs.target[second[block]], strict=True)
            yield (
                _lists([np.concatenate((one, other[tag:])) for one, other in sources]),
                _lists([np.concatenate((one, other)) for one, other in targets]),
            )


def _lists(arrays: Sequence[npt.NDArray[np.integer]]) -> Lists:
    starts = np.cumsum([0, *map(len, arrays)])
    return Lists(np.concatenate(arrays), starts)
