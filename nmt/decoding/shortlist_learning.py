"""Learn a shortlist from parallel text: the most frequent translations of each source token, by IBM model 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import torch

from nmt.alignment.statistical.ibm1 import learn_counts
from nmt.alignment.statistical.word_pairs import Cells
from nmt.data.arrays import Lists, collect_lists
from nmt.data.encoded import EncodedPairs, id_type
from nmt.decoding.shortlist import Shortlist
from nmt.errors import DataError
from nmt.text.subwords import EOS, Subwords

MIN_COUNT = 0.01
"""Least expected count of a translation."""
MAX_CELLS = 40_000_000
"""Most token pairs to learn from, to bound the memory (about 100 bytes each); of more text only every n-th line is used."""
_BLOCK = 10_000


def learn_shortlist(
    pairs: Iterable[tuple[str, str]], source: Subwords, target: Subwords, *, candidates: int, frequent: int
) -> Shortlist:
    """List for each source token its most frequent translations, and the target token of the same spelling.

    Args:
        pairs: source and target lines in the normal form of the model.
        source, target: the subwords of each side.
        candidates: most translations per source token.
        frequent: how many of the most frequent target tokens are on every list.

    Raises DataError if there is no text.
    """
    lines, cells, frequencies = iter(pairs), 0, np.zeros(len(target), np.int64)

    def blocks() -> Iterator[tuple[Lists, Lists]]:
        nonlocal cells
        while block := list(islice(lines, _BLOCK)):
            texts = zip(*block, strict=True)
            sources, targets = (
                Lists.of(subwords.encode_batch(side), np.int32)
                for subwords, side in zip((source, target), texts, strict=True)
            )
            frequencies[:] += np.bincount(targets.values, minlength=len(target))
            cells += int(((np.diff(sources.starts) + 1) * np.diff(targets.starts)).sum())
            yield sources, targets

    text = EncodedPairs(*collect_lists(blocks(), 2, id_type(source, target)))
    if not len(text):
        raise DataError("There is no text to learn a shortlist from.")
    common = np.argsort(-frequencies, kind="stable")[:frequent]
    sample = Cells.of(text[range(0, len(text), 1 + cells // MAX_CELLS)])
    best = _most_frequent(sample, learn_counts(sample).translation, len(source), candidates)
    # so that names and numbers can be copied
    id_of: dict[str, int] = {token: index for index, token in enumerate(target.tokens(range(len(target))))}
    same_spelling = np.array([[id_of.get(token, EOS)] for token in source.tokens(range(len(source)))])
    translations = np.concatenate([best, same_spelling], axis=1)
    return Shortlist(torch.from_numpy(translations), torch.from_numpy(common[frequencies[common] > 0]), len(target))


def _most_frequent(cells: Cells, counts: np.ndarray, size: int, candidates: int) -> np.ndarray:
    """The target tokens of the highest counts for each source token, [X candidates], padded with the end mark."""
    order = np.lexsort((-counts, cells.source))
    source, target, count = cells.source[order], cells.target[order], counts[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    mask = (rank < candidates) & (count >= MIN_COUNT)
    best = np.full((size, candidates), EOS)
    best[source[mask], rank[mask]] = target[mask]
    return best
