"""Word aligner that learns from the parallel text itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import prod
from string import punctuation

import numpy as np

from nmt.alignment.links import ConfidentLinks, Links
from nmt.alignment.statistical.hmm import HMM, ROUNDS, THRESHOLD, agreement, learn
from nmt.alignment.statistical.ibm1 import TranslationTable
from nmt.alignment.statistical.word_forms import WordForms
from nmt.alignment.statistical.word_pairs import Cells, Ids
from nmt.errors import DataError
from nmt.text.normalization import Normalizer
from nmt.text.scripts import Split, splitter

MAX_CELLS = 40_000_000
"""Most word pairs to learn from, to bound the memory (about 80 bytes each); of more text only every n-th line is used."""
MAX_WORDS = 200
"""Most words per side. Longer pairs are not learned from and get no links."""
_BLOCK_LINES = 10_000


_normalize = Normalizer("nfc")


class WordVocabulary:
    """Maps words to ids, ignoring case, surrounding punctuation and how letters are composed. All unknown words share one id."""

    def __init__(self, lines: Iterable[str], split: Split) -> None:
        self.split = split
        forms = sorted({_form(word) for line in lines for word in split(line)})
        self.number = {form: number for number, form in enumerate(forms)}

    def __len__(self) -> int:
        return len(self.number) + 1

    def ids(self, line: str) -> list[int]:
        """The ids of a line's words."""
        unknown = len(self.number)
        return [self.number.get(_form(word), unknown) for word in self.split(line)]


@lru_cache(maxsize=100_000)
def _form(word: str) -> str:
    normal = _normalize(word)
    return normal.strip(punctuation).casefold() or normal


@dataclass(frozen=True)
class HMMAligner:
    """HMM word aligner: a model per direction, and the vocabularies."""

    source: WordVocabulary
    target: WordVocabulary
    keys: Ids
    """Source id times the size of the target vocabulary plus target id, for each entry of the table; sorted."""
    forward: HMM
    backward: HMM
    lines: int
    """Number of training lines with words on both sides."""

    @classmethod
    def learn(cls, text: Iterable[tuple[str, str]], rounds: Iterable[object] = range(ROUNDS)) -> HMMAligner:
        """Train on pairs of lines.

        Args:
            text: source and target lines, which are read several times. In text written without spaces, every character is
                a word.
            rounds: one item per training round, taken when the round begins (so a progress bar can count them).

        Raises:
            DataError: there is nothing to learn from.
        """
        splits = tuple(splitter(pair[side] for pair in text) for side in (0, 1))
        lines = words = 0
        for pair in _linkable(text, splits):
            lines, words = lines + 1, words + prod(_lengths(pair, splits))
        if not lines:
            raise DataError("There is nothing to learn word links from: no line has words on both sides.")
        pairs = list(islice(_linkable(text, splits), 0, None, 1 + words // MAX_CELLS))
        source, target = map(WordVocabulary, zip(*pairs, strict=True), splits)
        cells = _cells(pairs, source, target)
        forms = WordForms.of(cells, list(source.number), list(target.number))
        forward, backward = learn(cells, forms, rounds)
        return cls(source, target, cells.source * len(target) + cells.target, forward, backward, lines)

    @property
    def splits(self) -> tuple[Split, ...]:
        """The functions that split source and target lines into words."""
        return self.source.split, self.target.split

    def links(self, text: Iterable[tuple[str, str]]) -> Iterator[Links]:
        """Link each pair of lines, in order, whether seen in training or not. Blank and too long pairs get no links."""
        return map(frozenset, self.confident_links(text))

    def confident_links(self, text: Iterable[tuple[str, str]]) -> Iterator[ConfidentLinks]:
        """Likewise, with the confidence of each link: the geometric mean of its posteriors in both directions."""
        pairs = iter(text)
        while block := list(islice(pairs, _BLOCK_LINES)):
            links: list[dict[tuple[int, int], float]] = [{} for _ in block]
            linkable = [pair if _is_linkable(pair, self.splits) else ("", "") for pair in block]
            cells = _cells(linkable, self.source, self.target)
            posterior = agreement(self._restricted(self.forward, cells), self._restricted(self.backward, cells), cells)
            for group in cells.groups:
                own = group.of(posterior)
                places = np.argwhere(own >= THRESHOLD)
                for (pair, target, source), value in zip(places.tolist(), own[tuple(places.T)].tolist(), strict=True):
                    links[group.rows[pair]][source, target] = min(value, 1.0)
            yield from links

    def _restricted(self, model: HMM, cells: Cells) -> HMM:
        """The model with its translation table reduced to the entries of these cells. Unseen word pairs have probability 0."""
        keys = cells.source * len(self.target) + cells.target
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        translation = np.where(self.keys[place] == keys, model.table.translation[place], 0.0)
        return HMM(TranslationTable(translation, np.append(model.table.empty, 0.0)), model.jumps)


def _cells(pairs: Sequence[tuple[str, str]], source: WordVocabulary, target: WordVocabulary) -> Cells:
    return Cells.of([source.ids(one) for one, _ in pairs], [target.ids(other) for _, other in pairs])


def _lengths(pair: tuple[str, str], splits: Sequence[Split]) -> list[int]:
    """Number of words of each side."""
    return [len(split(line)) for line, split in zip(pair, splits, strict=True)]


def _linkable(pairs: Iterable[tuple[str, str]], splits: Sequence[Split]) -> Iterator[tuple[str, str]]:
    return (pair for pair in pairs if _is_linkable(pair, splits))


def _is_linkable(pair: tuple[str, str], splits: Sequence[Split]) -> bool:
    return all(0 < length <= MAX_WORDS for length in _lengths(pair, splits))
