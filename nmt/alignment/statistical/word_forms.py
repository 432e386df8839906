"""What the forms of words say of their translations: words with the same stem, and words spelled alike.

Both matter most for rare words: the table of words alone cannot learn that `negotiated` translates as `négocié` from
`negotiating`, and of two names that always occur together it cannot tell which translates which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmt.alignment.statistical.word_pairs import Cells, Entries, Floats, Ids

STEM = 5
"""Letters of a stem: the first ones of a word."""
SHORTEST_PREFIX = 3
"""Least number of first letters that two words share to count as spelled alike."""
_COMPARED = 12
"""Letters compared."""


@dataclass(frozen=True)
class WordForms:
    """Stems and spelling of the words of both sides.

    Attributes:
        entry: index of the pair of stems of each entry, [entries].
        source: source stem of each pair of stems.
        target: target stem of each pair of stems.
        source_share: p(x | stem of x), the relative frequency of each source word among those of its stem.
        target_share: the same for each target word.
        similarity: length of the common prefix of both words divided by that of the longer one, 0 if the prefix is shorter
            than `SHORTEST_PREFIX`, [entries].
    """

    entry: Entries
    source: Ids
    target: Ids
    source_share: Floats
    target_share: Floats
    similarity: Floats

    @classmethod
    def of(cls, cells: Cells, source_words: Sequence[str], target_words: Sequence[str]) -> WordForms:
        """The forms of the words with these ids."""
        source_stem, target_stem = _stems(source_words), _stems(target_words)
        width = 1 + int(target_stem.max(initial=0))
        pairs, entry = np.unique(source_stem[cells.source] * width + target_stem[cells.target], return_inverse=True)
        return cls(
            entry.reshape(-1).astype(np.int32),
            pairs // width,
            pairs % width,
            _share([group.sources for group in cells.groups], source_stem),
            _share([group.targets for group in cells.groups], target_stem),
            _similarity(cells, source_words, target_words),
        )

    def flipped(self) -> WordForms:
        """The same forms with source and target exchanged."""
        return WordForms(self.entry, self.target, self.source, self.target_share, self.source_share, self.similarity)


def _stems(words: Sequence[str]) -> Ids:
    return np.unique(np.array(words, f"U{STEM}"), return_inverse=True)[1].reshape(-1)


def _share(sentences: Sequence[Ids], stems: Ids) -> Floats:
    """Relative frequency of each word among the words of its stem."""
    words = np.concatenate([group.reshape(-1) for group in sentences] or [np.empty(0, np.int64)])
    frequency = np.bincount(words, minlength=len(stems)).astype(np.float64)
    return np.asarray(frequency / np.maximum(np.bincount(stems, frequency), 1)[stems])


def _similarity(cells: Cells, source_words: Sequence[str], target_words: Sequence[str]) -> Floats:
    source, target = _letters(source_words), _letters(target_words)
    alike, prefix = np.ones(len(cells.source), dtype=bool), np.zeros(len(cells.source))
    for place in range(_COMPARED):
        letters = source[cells.source, place]
        alike &= (letters == target[cells.target, place]) & (letters > 0)
        prefix += alike
    lengths = (np.array([len(word) for word in words], dtype=np.int64) for words in (source_words, target_words))
    longer = np.maximum(*(length[ids] for length, ids in zip(lengths, (cells.source, cells.target), strict=True)))
    return np.where(prefix >= SHORTEST_PREFIX, prefix / np.maximum(longer, 1), 0.0)


def _letters(words: Sequence[str]) -> Entries:
    """The first letters of each word as numbers, 0 after its end, [words, letters]."""
    return np.array(words, f"U{_COMPARED}").view(np.int32).reshape(-1, _COMPARED)
