"""Word aligner that learns from the parallel text itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import prod
from string import punctuation
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from nmt.alignment.links import ConfidentLinks, Links, argmax_links, flip
from nmt.alignment.statistical.hmm import (
    FLOOR,
    GAMMA,
    HMM,
    ROUNDS,
    THRESHOLD,
    LearnedHMM,
    Posteriors,
    SmoothTable,
    Weights,
    agreement,
    learn,
    prior_mean,
)
from nmt.alignment.statistical.ibm1 import TranslationTable
from nmt.alignment.statistical.word_forms import WordForms, Words, spelling_similarity
from nmt.alignment.statistical.word_pairs import Cells, Floats, Ids
from nmt.alignment.symmetrization import Heuristic, symmetrize
from nmt.errors import DataError
from nmt.text.normalization import Normalizer
from nmt.text.scripts import Split, splitter

_log = logging.getLogger(__name__)
MAX_CELLS = 100_000_000
"""Most word pairs to learn from, to bound the memory (about 20 bytes each); of more text only every n-th line is used."""
MAX_WORDS = 200
"""Most words per side. Longer pairs are not learned from and get no links."""
_BLOCK_LINES = 10_000
_Key = TypeVar("_Key", np.int64, np.str_)


_normalize = Normalizer("nfc")


@lru_cache(maxsize=100_000)
def _form(word: str) -> str:
    """A word without case, surrounding punctuation and how its letters are composed."""
    normal = _normalize(word)
    return normal.strip(punctuation).casefold() or normal


def splits_of(text: Iterable[tuple[str, str]]) -> tuple[Split, Split]:
    """How to split the source and the target lines of a text, which is read twice, into words."""
    return splitter(one for one, _ in text), splitter(other for _, other in text)


@dataclass(frozen=True)
class HMMAligner:
    """HMM word aligner: a model per direction, and the words of both sides.

    Attributes:
        source: forms of the source words.
        target: forms of the target words.
        splits: how source and target lines are split into words.
        keys: source id times the number of target words plus target id, for each entry of the tables; sorted. Pairs of words
            that are no translations have none.
        stem_keys: the same with stems, for each pair of stems.
        forward: generates target words.
        backward: generates source words.
        lines: number of training lines with words on both sides.
    """

    source: Words
    target: Words
    splits: tuple[Split, Split]
    keys: Ids
    stem_keys: Ids
    forward: LearnedHMM
    backward: LearnedHMM
    lines: int

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
        splits = splits_of(text)
        lines = words = 0
        for pair in _linkable(text, splits):
            lines, words = lines + 1, words + prod(_lengths(pair, splits))
        if not lines:
            raise DataError("There is nothing to learn word links from: no line has words on both sides.")
        if step := words // MAX_CELLS:
            _log.warning("One line in %d is learned from: the text has %s pairs of words.", step + 1, f"{words:,}")
        cells, source, target = _cells(islice(_linkable(text, splits), 0, None, step + 1), splits)
        forms = WordForms.of(cells, source, target)
        forward, backward = learn(cells, forms, rounds)
        # Most words that occur together are no translations; without an entry they have nearly the same probability.
        tables = forward.table, backward.table
        sides = (forward.table, cells, forms), (backward.table, cells.flipped(), forms.flipped())
        entries = np.logical_or(*(_is_learned(*side) for side in sides)) | (forms.similarity > 0)
        stems = np.maximum(*(table.stems for table in tables)) > FLOOR
        return cls(
            source,
            target,
            splits,
            keys=cells.source[entries].astype(np.int64) * len(target) + cells.target[entries],
            stem_keys=(forms.source * len(target.stems) + forms.target)[stems],
            forward=LearnedHMM(forward.table.select(entries, stems), forward.jumps),
            backward=LearnedHMM(backward.table.select(entries, stems), backward.jumps),
            lines=lines,
        )

    def links(self, text: Iterable[tuple[str, str]]) -> Iterator[Links]:
        """Link each pair of lines, in order, whether seen in training or not. Blank and too long pairs get no links."""
        return map(frozenset, self.confident_links(text))

    def confident_links(self, text: Iterable[tuple[str, str]]) -> Iterator[ConfidentLinks]:
        """Likewise, with the confidence of each link: the geometric mean of its posteriors in both directions."""
        for weights in self.weights(text):
            yield {(i, j): float(weights[j, i]) for j, i in np.argwhere(weights >= THRESHOLD).tolist()}

    def weights(self, text: Iterable[tuple[str, str]]) -> Iterator[Weights]:
        """The confidence of every possible link of each pair of lines, [T S]; zeros for blank and too long pairs."""
        return self._matrices(text, lambda *models_and_cells: np.minimum(agreement(*models_and_cells), 1))

    def directed_links(
        self, text: Iterable[tuple[str, str]], direction: Literal["forward", "reverse"]
    ) -> Iterator[ConfidentLinks]:
        """The links of one direction's model, with their posteriors.

        Each word that it generates is linked to the word of the largest posterior, unless the empty word's is larger.
        """
        is_forward = direction == "forward"

        def posterior(forward: HMM, backward: HMM, cells: Cells) -> Weights:
            return Posteriors.of(*((forward, cells) if is_forward else (backward, cells.flipped()))).links

        for weights in self._matrices(text, posterior):
            generated = weights if is_forward else weights.T
            empty = 1 - generated.sum(axis=1, keepdims=True)
            likeliest = argmax_links(np.hstack([generated, empty]))
            links = frozenset((i, j) for i, j in likeliest if i < generated.shape[1])
            yield {(i, j): float(weights[j, i]) for i, j in (links if is_forward else flip(links))}

    def joined_links(self, text: Sequence[tuple[str, str]], heuristic: Heuristic) -> Iterator[ConfidentLinks]:
        """The links of both directions, joined, all with confidence 1."""
        both = self.directed_links(text, "forward"), self.directed_links(text, "reverse")
        for forward, reverse in zip(*both, strict=True):
            yield dict.fromkeys(symmetrize(frozenset(forward), frozenset(reverse), heuristic), 1.0)

    def _matrices(
        self, text: Iterable[tuple[str, str]], posterior_of: Callable[[HMM, HMM, Cells], Weights]
    ) -> Iterator[Weights]:
        """What a function of both models and the cells says of each pair of lines, [T S]."""
        pairs = iter(text)
        while block := list(islice(pairs, _BLOCK_LINES)):
            linkable = [pair if _is_linkable(pair, self.splits) else ("", "") for pair in block]
            cells, source, target = _cells(linkable, self.splits)
            posterior = posterior_of(*self._models_of(cells, source, target), cells)
            matrices = {
                row: matrix
                for group in cells.groups
                for row, matrix in zip(group.rows.tolist(), group.of(posterior), strict=True)
            }
            for row, pair in enumerate(block):
                yield matrices[row] if row in matrices else np.zeros(_lengths(pair, self.splits)[::-1], np.float32)

    def _models_of(self, cells: Cells, source: Words, target: Words) -> tuple[HMM, HMM]:
        """The models of both directions, with tables of these words.

        Words without an entry translate as their stems do, and are more probable if they are spelled alike.
        """
        own, other = _known(source.forms, self.source.number), _known(target.forms, self.target.number)
        x, y = own[cells.source], other[cells.target]
        entry = _found(self.keys, np.where((x < 0) | (y < 0), -1, x * len(self.target) + y))
        x_stem = _found(self.source.stems, source.stems)[source.stem_of][cells.source]
        y_stem = _found(self.target.stems, target.stems)[target.stem_of][cells.target]
        pair = _found(
            self.stem_keys, np.where((x_stem < 0) | (y_stem < 0), -1, x_stem * len(self.target.stems) + y_stem)
        )
        alike = np.exp(GAMMA * spelling_similarity(cells, source, target))

        def model(learned: LearnedHMM, given: Ids, share: Floats, empty: Ids) -> HMM:
            table = learned.table
            unseen = np.maximum(table.unseen(_at(table.stems, pair) * share, given), FLOOR) * alike
            translation = np.where(entry < 0, unseen, _at(table.translation, entry))
            return HMM(TranslationTable(translation, _at(table.empty, empty)), learned.jumps)

        return (
            model(self.forward, x, _shares(self.target, y, y_stem), other),
            model(self.backward, y, _shares(self.source, x, x_stem), own),
        )


def _is_learned(table: SmoothTable, cells: Cells, forms: WordForms) -> npt.NDArray[np.bool_]:
    """Whether the probability of an entry is another than without one."""
    unseen = table.unseen(prior_mean(table.stems, cells, forms), cells.source)
    return np.asarray(table.translation > 1.01 * unseen)


def _known(forms: Sequence[str], number: Mapping[str, int]) -> Ids:
    """The id of each word, -1 for a word that is not known."""
    return np.fromiter((number.get(form, -1) for form in forms), np.int64, len(forms))


def _found(keys: npt.NDArray[_Key], wanted: npt.NDArray[_Key]) -> Ids:
    """The places of values among sorted keys, -1 for those that are not there."""
    places = np.searchsorted(keys, wanted)
    return np.where(np.searchsorted(keys, wanted, "right") > places, places, -1)


def _at(values: Floats, places: Ids) -> Floats:
    """The values at some places, 0 at place -1."""
    taken, known = np.zeros(len(places)), places >= 0
    taken[known] = values[places[known]]
    return taken


def _shares(known: Words, words: Ids, stems: Ids) -> Floats:
    """p(word | stem) by ids; -1 is an unknown word, which counts as seen once."""
    frequency = np.where(words < 0, 1, known.frequency[words])
    of_stem = np.where(stems < 0, 1, known.stem_frequency[stems]) + (words < 0)
    return np.asarray(frequency / of_stem, dtype=np.float64)


def _cells(pairs: Iterable[tuple[str, str]], splits: tuple[Split, Split]) -> tuple[Cells, Words, Words]:
    """The cells of some lines, and their words."""
    numbers: tuple[dict[str, int], dict[str, int]] = {}, {}

    def ids(number: dict[str, int], line: str, split: Split) -> list[int]:
        return [number.setdefault(_form(word), len(number)) for word in split(line)]

    cells = Cells.of((ids(numbers[0], one, splits[0]), ids(numbers[1], other, splits[1])) for one, other in pairs)
    source, target = (Words(dict(zip(*side, strict=True))) for side in zip(numbers, cells.frequencies(), strict=True))
    return cells, source, target


def _lengths(pair: tuple[str, str], splits: tuple[Split, Split]) -> list[int]:
    """Number of words of each side."""
    return [len(split(line)) for line, split in zip(pair, splits, strict=True)]


def _linkable(pairs: Iterable[tuple[str, str]], splits: tuple[Split, Split]) -> Iterator[tuple[str, str]]:
    return (pair for pair in pairs if _is_linkable(pair, splits))


def _is_linkable(pair: tuple[str, str], splits: tuple[Split, Split]) -> bool:
    return all(0 < length <= MAX_WORDS for length in _lengths(pair, splits))
