"""What the forms of words say of their translations: words with the same stem, and words spelled alike.

Both matter most for rare words: the table of words alone cannot learn that `negotiated` translates as `négocié` from
`negotiating`, and of two names that always occur together it cannot tell which translates which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nmt.alignment.statistical.word_pairs import BLOCK, Cells, Entries, Floats, Ids, numbered
from nmt.text.scripts import is_unspaced

STEM = 4
"""Letters of a stem: the first ones of a word; in scripts without spaces, the first alone."""
SHORTEST_PREFIX = 3
"""Least number of first letters that two words share to count as spelled alike."""
_COMPARED = 12
"""Letters compared."""


class Words:
    """The distinct words of one side of a text.

    Args:
        frequency: how often each word occurs. Ids count from 0 in this order.
    """

    def __init__(self, frequency: Mapping[str, int]) -> None:
        self.forms = list(frequency)
        self.frequency = np.fromiter(frequency.values(), np.int64, len(frequency))
        first = [form[: 1 if is_unspaced(form[:1]) else STEM] for form in self.forms]
        stems, stem_of = np.unique(np.array(first, f"U{STEM}"), return_inverse=True)
        self.stems: npt.NDArray[np.str_] = stems
        """The distinct stems, sorted."""
        self.stem_of: Ids = stem_of.reshape(-1)
        """The stem of each word."""

    def __len__(self) -> int:
        return len(self.forms)

    @cached_property
    def number(self) -> dict[str, int]:
        """The id of each word."""
        return {form: number for number, form in enumerate(self.forms)}

    @cached_property
    def stem_frequency(self) -> Ids:
        """How often words of each stem occur."""
        return np.bincount(self.stem_of, self.frequency, len(self.stems)).astype(np.int64)

    @property
    def share(self) -> Floats:
        """p(word | stem), the relative frequency of each word among those of its stem."""
        return np.asarray(self.frequency / self.stem_frequency[self.stem_of], dtype=np.float64)

    @property
    def letters(self) -> Entries:
        """The first letters of each word as numbers, 0 after its end, [words, letters]."""
        return np.array(self.forms, f"U{_COMPARED}").view(np.int32).reshape(-1, _COMPARED)


@dataclass(frozen=True)
class WordForms:
    """Stems and spelling of the two words of each entry of `Cells`.

    Attributes:
        entry: index of the pair of stems of each entry, [entries].
        source: source stem of each pair of stems.
        target: target stem of each pair of stems.
        source_share: p(x | stem of x) of each source word.
        target_share: the same for each target word.
        similarity: the spelling of the two words of each entry (`spelling_similarity`).
    """

    entry: Entries
    source: Ids
    target: Ids
    source_share: Floats
    target_share: Floats
    similarity: npt.NDArray[np.float32]

    @classmethod
    def of(cls, cells: Cells, source: Words, target: Words) -> WordForms:
        """The forms of words with these ids."""
        width = len(target.stems)
        keys = source.stem_of[cells.source] * width + target.stem_of[cells.target]
        pairs, entry = numbered(np.array_split(keys, 1 + len(keys) // BLOCK))
        similarity = spelling_similarity(cells, source, target)
        return cls(entry, pairs // max(width, 1), pairs % max(width, 1), source.share, target.share, similarity)

    def flipped(self) -> WordForms:
        """The same forms with source and target exchanged."""
        return WordForms(self.entry, self.target, self.source, self.target_share, self.source_share, self.similarity)


def spelling_similarity(cells: Cells, source: Words, target: Words) -> npt.NDArray[np.float32]:
    """How alike the two words of each entry are spelled, [entries].

    The length of their common prefix (at most twelve letters) divided by that of the longer word; 0 if the prefix is shorter than
    `SHORTEST_PREFIX`.
    """
    own, other = source.letters, target.letters
    alike, prefix = np.ones(len(cells.source), dtype=bool), np.zeros(len(cells.source), np.float32)
    for place in range(_COMPARED):
        letters = own[cells.source, place]
        alike &= (letters == other[cells.target, place]) & (letters > 0)
        prefix += alike
    lengths = [np.array([*map(len, words.forms)], np.float32) for words in (source, target)]
    longer = np.maximum(lengths[0][cells.source], lengths[1][cells.target])
    return np.where(prefix >= SHORTEST_PREFIX, prefix / np.maximum(longer, 1), np.float32(0))
