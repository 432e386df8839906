"""Links the words of parallel text by what the text itself teaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from string import punctuation

import numpy as np

from nmt.alignment.links import Links
from nmt.alignment.statistical.cells import Cells, Ids
from nmt.alignment.statistical.hmm import HMM, ROUNDS, THRESHOLD, agreement, learn
from nmt.alignment.statistical.ibm1 import Lexicon
from nmt.errors import DataError
from nmt.scripts import Split, splitter

MOST_CELLS = 40_000_000
"""Bounds the memory (about 80 bytes each): of a text with more pairs of words, every second, third ... line is learnt from."""
LONGEST = 200
"""Most words of a side; a longer pair teaches nothing and gets no links."""
_BLOCK = 10_000


class WordVocabulary:
    """Numbers words by their form without case and without the punctuation around them; unknown ones share a number."""

    def __init__(self, lines: Iterable[str], split: Split) -> None:
        self.split = split
        forms = sorted({_form(word) for line in lines for word in split(line)})
        self.number = {form: number for number, form in enumerate(forms)}

    def __len__(self) -> int:
        return len(self.number) + 1

    def ids(self, line: str) -> list[int]:
        """The numbers of a line's words."""
        unknown = len(self.number)
        return [self.number.get(_form(word), unknown) for word in self.split(line)]


def _form(word: str) -> str:
    return word.strip(punctuation).casefold() or word


@dataclass(frozen=True)
class HMMAligner:
    """Models of both directions, and the words they know."""

    source: WordVocabulary
    target: WordVocabulary
    keys: Ids
    """The number of each entry's source word times the size of the target vocabulary, plus that of its target word; sorted."""
    forward: HMM
    backward: HMM
    lines: int
    """How many lines with words on both sides there were to learn from."""

    @classmethod
    def learn(cls, text: Iterable[tuple[str, str]], rounds: Iterable[object] = range(ROUNDS)) -> HMMAligner:
        """Learn from pairs of lines.

        Args:
            text: source and target lines; the words of a side that is written without spaces are its characters.
            rounds: as many items as there shall be rounds; they are drawn as the rounds begin.

        Raises:
            DataError: there is nothing to learn from.
        """
        lines = list(text)
        splits = tuple(splitter(pair[side] for pair in lines) for side in (0, 1))
        pairs = [pair for pair in lines if _can_be_linked(pair, splits)]
        if not pairs:
            raise DataError("There is nothing to learn word links from: no line has words on both sides.")
        step = 1 + sum(prod(_lengths(pair, splits)) for pair in pairs) // MOST_CELLS
        source, target = map(WordVocabulary, zip(*pairs[::step], strict=True), splits)
        cells = _cells(pairs[::step], source, target)
        forward, backward = learn(cells, rounds)
        return cls(source, target, cells.source * len(target) + cells.target, forward, backward, len(pairs))

    @property
    def splits(self) -> tuple[Split, ...]:
        """What splits the lines of either side into words."""
        return self.source.split, self.target.split

    def links(self, text: Iterable[tuple[str, str]]) -> Iterator[Links]:
        """The links of each pair of lines, learnt from or not, in order; none for one that is blank or too long."""
        pairs = iter(text)
        while block := list(islice(pairs, _BLOCK)):
            found: list[list[tuple[int, int]]] = [[] for _ in block]
            linkable = [pair if _can_be_linked(pair, self.splits) else ("", "") for pair in block]
            cells = _cells(linkable, self.source, self.target)
            agreed = agreement(self._known(self.forward, cells), self._known(self.backward, cells), cells)
            for group in cells.groups:
                for pair, target, source in np.argwhere(group.of(agreed) >= THRESHOLD).tolist():
                    found[group.rows[pair]].append((source, target))
            yield from map(frozenset, found)

    def _known(self, model: HMM, cells: Cells) -> HMM:
        """The model with what it knows of these cells' entries; two words never seen together never translate each other."""
        keys = cells.source * len(self.target) + cells.target
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = np.where(self.keys[place] == keys, model.lexicon.translation[place], 0.0)
        return HMM(Lexicon(known, np.append(model.lexicon.empty, 0.0)), model.jumps)


def _cells(pairs: Sequence[tuple[str, str]], source: WordVocabulary, target: WordVocabulary) -> Cells:
    return Cells.of([source.ids(one) for one, _ in pairs], [target.ids(other) for _, other in pairs])


def _lengths(pair: tuple[str, str], splits: Sequence[Split]) -> list[int]:
    """Words of either side."""
    return [len(split(line)) for line, split in zip(pair, splits, strict=True)]


def _can_be_linked(pair: tuple[str, str], splits: Sequence[Split]) -> bool:
    return all(0 < length <= LONGEST for length in _lengths(pair, splits))
