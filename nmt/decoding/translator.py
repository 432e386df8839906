"""Text to text: batches lines by length, decodes them, and gives the translations back in the order of the lines."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from nmt import recipe
from nmt.data.subwords import BOS, EOS, PAD, Subwords
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.hypothesis import IMPOSSIBLE
from nmt.decoding.lines import clean, one_line, read_ahead, split_text
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translation import Translation, TranslationHypothesis, empty, join, unscored
from nmt.decoding.units import Unit, UnitDecoder
from nmt.decoding.unknown import Lexicon, UnknownWords
from nmt.decoding.workers import Workers
from nmt.device import DecodingPrecision
from nmt.errors import DataError, UsageError
from nmt.evened import even_within
from nmt.model.seq2seq import Seq2Seq

__all__ = ["Translation", "TranslationHypothesis", "Translator"]

logger = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")
TaskT = TypeVar("TaskT")
FoundT = TypeVar("FoundT")

_NO_NUMBERS = "The model's probabilities are not numbers, because its weights are damaged or too large"
_MOST_WEIGHTS = 2**26
"""Of a pair that is scored, which takes about 16 bytes each."""
_SHORTEST = 8
"""Shorter units count as this long, which bounds the rows of a batch and so their [N V] log-probabilities."""


@runtime_checkable
class Member(Protocol):
    """A model with the subwords that it reads and writes."""

    @property
    def source(self) -> Subwords: ...
    @property
    def target(self) -> Subwords: ...
    @property
    def model(self) -> Seq2Seq: ...


@runtime_checkable
class RecipeMember(Member, Protocol):
    """One that also knows how it should be decoded: a `Bundle`."""

    @property
    def recipe(self) -> recipe.Recipe: ...


@dataclass(frozen=True)
class _Bare:
    """A member without a recipe."""

    source: Subwords
    target: Subwords
    model: Seq2Seq


_Known = tuple[Unit, Sequence[int]]
"""A source and the ids of its translation, which is scored."""


@dataclass(frozen=True)
class _Window(Generic[ItemT, TaskT]):
    """Consecutive items, the numbers of their lines, and what of them is decoded, with its length in pieces."""

    numbers: range
    items: Sequence[ItemT]
    tasks: Sequence[TaskT]
    lengths: Sequence[int]


@dataclass(frozen=True)
class _Pair:
    """A source and a known translation, as they came and in pieces."""

    source: str
    target: str | Sequence[int]
    unit: Unit
    ids: list[int]

    @property
    def is_short(self) -> bool:
        """Whether there is memory for all weights between the two."""
        return (self.unit.length + 1) * (len(self.ids) + 1) <= _MOST_WEIGHTS


class Translator:
    """Translates lines with one model, or with the mean of the probabilities of several.

    The same line gives the same translation, score and alignment whatever other lines surround it.
    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        decoding: recipe.Decoding | None = None,
        n_best: int = 1,
        batch_tokens: int = 8192,
        window: int = 2000,
        max_source: int = 500,
        alignments: bool = True,
        posterior: bool = False,
        replace_unknown: Lexicon | None = None,
        shortlist: Shortlist | None = None,
        precision: DecodingPrecision = "fp32",
        processes: int = 1,
    ) -> None:
        """Check and set up. The models are copied as they are now, on the device where they are.

        Args:
            members: bundles with the same target vocabulary; each may have source subwords of its own.
            decoding: beam size, penalties and longest output; by default what the first bundle's recipe says.
            n_best: most hypotheses a line, up to the beam size.
            batch_tokens: source pieces in a batch, counting padding and every place of the beam.
            window: lines that are read ahead and sorted by length; with 1 each is answered before the next is read.
            max_source: longest source in pieces; a line that is longer is translated in parts.
            alignments: whether hypotheses carry their alignment.
            posterior: whether that is what the target pieces tell of where they were read, rather than the attention before
                they are known (see `posterior_alignment`); it takes a second pass with many output layers a piece.
            replace_unknown: translations of source words. Each unknown piece of a translation is replaced by that of the
                source word that it was read most from, or by this word itself where there is none: `{}` copies them all.
                By default a piece's mark stays, `⁇` as SentencePiece writes it.
            shortlist: which target pieces may translate which source pieces of the first bundle; by default all may.
            precision: of the matrix products; probabilities are always fp32.
            processes: most processes of one thread that decode batches side by side, for what has several batches; each takes
                memory of its own for what it computes. With 1 all is done here.

        Raises:
            DataError: the target vocabularies differ.
            UsageError: an option is out of its range, or the models cannot compute in int8 where they are.
        """
        if not members:
            raise UsageError("A translator needs at least one model, but got none.")
        decoding = decoding or _own_decoding(members[0])
        if not 1 <= n_best <= decoding.beam_size:
            raise UsageError(f"n_best must be between 1 and beam_size, which is {decoding.beam_size}, but is {n_best}.")
        for name, value in (("batch_tokens", batch_tokens), ("window", window), ("max_source", max_source)):
            if value < 1:
                raise UsageError(f"{name} must be at least 1, but is {value}.")
        _check_targets(members)
        self._members = tuple(members)
        self._batch_tokens, self._window, self._max_source = batch_tokens, window, max_source
        self._width, self._processes = decoding.beam_size, processes
        ensemble = Ensemble(
            [member.model for member in members],
            same_source=len({member.source.fingerprint for member in members}) == 1,
            precision=precision,
            shortlist=shortlist,
        )
        source, target = members[0].source, members[0].target
        self._decoder = UnitDecoder(
            ensemble,
            target,
            decoding=decoding,
            n_best=n_best,
            alignments=alignments,
            posterior=posterior,
            unknown=None if replace_unknown is None else UnknownWords(source, target, replace_unknown),
        )

    @classmethod
    def of(
        cls,
        model: Seq2Seq,
        source: Subwords,
        target: Subwords,
        *,
        decoding: recipe.Decoding,
        batch_tokens: int = 8192,
        alignments: bool = True,
        precision: DecodingPrecision = "fp32",
    ) -> Translator:
        """A translator of a bare model, for instance of one in training."""
        return cls(
            [_Bare(source, target, model)],
            decoding=decoding,
            batch_tokens=batch_tokens,
            alignments=alignments,
            precision=precision,
        )

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        """Translate lines, in their order, holding at most a window of them, with several processes two.

        A blank line has an empty translation. Control characters and lone surrogates are read as spaces and U+FFFD, and
        none is ever written, so that every line gives one line.
        """
        windows = (
            self._cut(numbers, [line.rstrip("\r\n") for line in part]) for numbers, part in self._read(lines, len)
        )
        for window, found in self._decoded(windows, self._decoder.search, self._width):
            yield from self._translations(window, found)

    def score(self, pairs: Iterable[tuple[str, str | Sequence[int]]]) -> Iterator[Translation]:
        """Forced decoding: log-probability, score and alignment of known translations, in the order of the pairs.

        A target given as ids is scored in just these pieces; text is cut by the target's subwords first. A source is read in
        one piece. A pair that would have more than 67 million weights (8,000 pieces on both sides) is not scored: its figures
        are not numbers (nan), it has no alignment, and a warning names it.

        Raises:
            ValueError: an id is a special mark or beyond the vocabulary.
            DataError: the model's probabilities are not numbers.
        """
        parts = self._read(pairs, lambda pair: len(pair[0]) + len(pair[1]))
        windows = (self._paired(numbers, part) for numbers, part in parts)
        for window, found in self._decoded(windows, self._decoder.force, 1):
            yield from self._scores(window, found)

    def _read(self, items: Iterable[ItemT], size: Callable[[ItemT], int]) -> Iterator[tuple[range, Sequence[ItemT]]]:
        """Windows of consecutive items, and the numbers of their lines."""
        first = 1
        for part in read_ahead(items, self._window, size=size):
            yield range(first, first + len(part)), part
            first += len(part)

    def _decoded(
        self,
        windows: Iterable[_Window[ItemT, TaskT]],
        run: Callable[[Sequence[TaskT]], Sequence[FoundT]],
        width: int,
    ) -> Iterator[tuple[_Window[ItemT, TaskT], Iterator[FoundT]]]:
        """Each window with what is found for its tasks, in their order. Those of similar length are decoded together."""
        opened: deque[tuple[_Window[ItemT, TaskT], list[list[int]]]] = deque()

        def batches_of_windows() -> Iterator[list[list[TaskT]]]:
            for window in windows:
                batches = self._batches(window.lengths, width)
                opened.append((window, batches))
                yield [[window.tasks[row] for row in rows] for rows in batches]

        with Workers(run, self._processes) as workers:
            for answers in workers.map(batches_of_windows()):
                window, batches = opened.popleft()
                found: dict[int, FoundT] = {}
                for rows, of_batch in zip(batches, answers, strict=True):
                    found.update(zip(rows, of_batch, strict=True))
                yield window, iter([found[row] for row in range(len(window.tasks))])

    def _cut(self, numbers: range, lines: Sequence[str]) -> _Window[tuple[str, list[Unit]], Unit]:
        """Lines and the units that they are cut into."""
        units_of_lines = self._units_of_lines(lines, numbers.start)
        units = [unit for of_line in units_of_lines for unit in of_line]
        items = list(zip(lines, units_of_lines, strict=True))
        return _Window(numbers, items, units, [unit.length for unit in units])

    def _translations(
        self, window: _Window[tuple[str, list[Unit]], Unit], found: Iterator[list[TranslationHypothesis]]
    ) -> Iterator[Translation]:
        """Those of a window's lines, of what was found for their units."""
        lost = 0
        for line, units in window.items:
            source_ids = tuple(index for unit in units for index in unit.ids[0])
            parts = [next(found) for _ in units]
            hypotheses = tuple(join(ranked) for ranked in zip(*parts, strict=False)) or (empty(),)
            lost += hypotheses[0].score == IMPOSSIBLE
            yield Translation(line, source_ids, hypotheses)
        if lost:
            first, last = window.numbers[0], window.numbers[-1]
            logger.warning("%s, so %d of lines %d to %d are empty.", _NO_NUMBERS, lost, first, last)

    def _paired(self, numbers: range, pairs: Sequence[tuple[str, str | Sequence[int]]]) -> _Window[_Pair, _Known]:
        """Pairs, of which those are scored that are not too long."""
        units = self._encode([clean(source) for source, _ in pairs])
        items = [
            _Pair(source, target, unit, self._target_ids(target))
            for (source, target), unit in zip(pairs, units, strict=True)
        ]
        short = [item for item in items if item.is_short]
        tasks = [(item.unit, item.ids) for item in short]
        return _Window(numbers, items, tasks, [max(item.unit.length, len(item.ids)) for item in short])

    def _scores(self, window: _Window[_Pair, _Known], found: Iterator[TranslationHypothesis]) -> Iterator[Translation]:
        """Those of a window's pairs, of what was found for the ones that are not too long."""
        hypotheses = [next(found) if item.is_short else None for item in window.items]
        if any(hypothesis is not None and math.isnan(hypothesis.log_probability) for hypothesis in hypotheses):
            raise DataError(f"{_NO_NUMBERS}, so nothing can be scored.")
        for number, item, hypothesis in zip(window.numbers, window.items, hypotheses, strict=True):
            if hypothesis is None:
                sizes = item.unit.length, len(item.ids)
                logger.warning("Line %d has %d and %d tokens, too many to score: its score is nan.", number, *sizes)
                hypothesis = unscored(item.ids, self._members[0].target)
            if isinstance(item.target, str):
                text = one_line(item.target.rstrip("\r\n"))
                hypothesis = TranslationHypothesis.of(hypothesis, text=text, alignment=hypothesis.alignment)
            yield Translation(item.source.rstrip("\r\n"), item.unit.ids[0], (hypothesis,))

    def _units_of_lines(self, lines: Sequence[str], first_number: int) -> list[list[Unit]]:
        """What to decode for each line: nothing if it is blank, itself if it fits, else its parts."""
        texts = [clean(line) for line in lines]
        whole = self._encode(texts)
        return [
            [] if not text else [unit] if self._fits(unit) else self._parts(text, unit.length, number)
            for number, (text, unit) in enumerate(zip(texts, whole, strict=True), start=first_number)
        ]

    def _parts(self, text: str, length: int, number: int) -> list[Unit]:
        parts = self._encode(split_text(text, lambda part: self._fits(self._encode([part])[0])))
        logger.warning(
            "Line %d has %d tokens, but a model reads at most %d at a time: it is translated in %d parts.",
            number,
            length,
            self._max_source,
            len(parts),
        )
        return parts

    def _fits(self, unit: Unit) -> bool:
        return unit.length <= self._max_source

    def _encode(self, texts: Sequence[str]) -> list[Unit]:
        members = [member.source.encode_batch(texts) for member in self._members]
        versions = zip(*members, strict=True)
        return [Unit(tuple(map(tuple, ids)), text) for ids, text in zip(versions, texts, strict=True)]

    def _target_ids(self, target: str | Sequence[int]) -> list[int]:
        subwords = self._members[0].target
        if isinstance(target, str):
            return subwords.encode(clean(target))
        for index in target:
            if index in (PAD, BOS, EOS) or not 0 <= index < len(subwords):
                raise ValueError(
                    f"Target ids must be tokens of the vocabulary, below {len(subwords)}, but one is {index}."
                )
        return list(target)

    def _batches(self, lengths: Sequence[int], width: int) -> list[list[int]]:
        """Rows of similar length whose padded size times `width` keeps to the budget, long ones first; their number is even."""
        sizes = np.maximum(np.array(lengths, dtype=np.int64) + 1, _SHORTEST)
        order = np.argsort(-sizes, kind="stable")
        batches, start = [], 0
        while start < len(order):
            most = max(self._batch_tokens // (int(sizes[order[start]]) * width), 1)
            end = start + even_within(most)
            batches.append(order[start:end].tolist())
            start = end
        return batches


def _own_decoding(member: Member) -> recipe.Decoding:
    return member.recipe.decoding if isinstance(member, RecipeMember) else recipe.Decoding()


def _check_targets(members: Sequence[Member]) -> None:
    first = members[0].target.fingerprint
    for number, member in enumerate(members[1:], start=2):
        if member.target.fingerprint != first:
            raise DataError(
                f"Model {number} of {len(members)} has another target vocabulary than model 1, so their probabilities "
                "cannot be averaged: use models that were trained with the same target subwords."
            )
