"""Learns a shortlist from parallel text: what each source piece was translated by, in the eyes of IBM model 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import torch

from nmt.alignment.statistical.cells import Cells
from nmt.alignment.statistical.ibm1 import learn_counts
from nmt.data.subwords import EOS, Subwords
from nmt.decoding.lines import clean
from nmt.decoding.shortlist import Shortlist
from nmt.errors import DataError, UsageError

LEAST = 0.01
"""Expected translations below which two pieces have nothing to do with each other."""
MOST_CELLS = 40_000_000
"""Bounds the memory (about 100 bytes each): of a text with more pairs of pieces, every second, third ... line is read."""


def learn_shortlist(
    pairs: Iterable[tuple[str, str]], source: Subwords, target: Subwords, *, candidates: int, frequent: int
) -> Shortlist:
    """For each source piece its most frequent translations, and itself where the target spells a piece like it.

    Args:
        pairs: source and target lines.
        source: cuts the sources.
        target: cuts the targets.
        candidates: most translations of a source piece.
        frequent: the most frequent target pieces that are on every list.

    Raises:
        UsageError: a number out of its range.
        DataError: there is no text.
    """
    for name, value in (("candidates", candidates), ("frequent", frequent)):
        if value < 0:
            raise UsageError(f"{name} must be at least 0, but is {value}.")
    sides = list(zip(*((clean(one), clean(other)) for one, other in pairs), strict=True))
    if not sides:
        raise DataError("There is no text to learn a shortlist from.")
    sources, targets = source.encode_batch(sides[0]), target.encode_batch(sides[1])
    written = np.bincount(np.fromiter(chain.from_iterable(targets), np.int64), minlength=len(target))
    common = np.argsort(-written, kind="stable")[:frequent]
    step = 1 + sum((len(x) + 1) * len(y) for x, y in zip(sources, targets, strict=True)) // MOST_CELLS
    cells = Cells.of(sources[::step], targets[::step])
    best = _best(cells, learn_counts(cells).translation, len(source), candidates)
    translations = np.concatenate([best, _alike(source, target)], axis=1)
    return Shortlist(torch.from_numpy(translations), torch.from_numpy(common[written[common] > 0]), len(target))


def _best(cells: Cells, counts: np.ndarray, size: int, candidates: int) -> np.ndarray:
    """The target pieces of the highest counts for each source piece, [X candidates], filled up with the end mark."""
    order = np.lexsort((-counts, cells.source))
    source, target, count = cells.source[order], cells.target[order], counts[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    kept = (rank < candidates) & (count >= LEAST)
    best = np.full((size, candidates), EOS)
    best[source[kept], rank[kept]] = target[kept]
    return best


def _alike(source: Subwords, target: Subwords) -> np.ndarray:
    """The target piece that is spelt like each source piece, [X 1]: names and numbers are copied."""
    spelt: dict[str, int] = {piece: index for index, piece in enumerate(_spellings(target))}
    return np.array([[spelt.get(piece, EOS)] for piece in _spellings(source)])


def _spellings(subwords: Subwords) -> Sequence[str]:
    return subwords.pieces(range(len(subwords)))
