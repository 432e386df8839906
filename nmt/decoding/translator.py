"""Text to text: batches lines by length, searches, and gives the translations back in the order of the lines.

Row t of every alignment that leaves this room belongs to target piece t, whichever word the model's own row t belongs
to: Luong's content scores look at the source for the word just *fed* (Luong et al. 2015, footnote 14), so their rows
move up by one, and the row of the last piece comes from feeding that piece as well.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from nmt import recipe
from nmt.data.batching import cut, pad
from nmt.data.subwords import BOS, EOS, PAD, Subwords
from nmt.decoding.ensemble import Ensemble, Precision
from nmt.decoding.hypothesis import Hypothesis, Penalties
from nmt.decoding.lines import clean, one_line, read_ahead, split_text
from nmt.decoding.search import beam_search, greedy
from nmt.errors import DataError, UsageError
from nmt.model.seq2seq import Seq2Seq

logger = logging.getLogger(__name__)


class Member(Protocol):
    """A model with the subwords that it reads and writes, such as a `Bundle`."""

    @property
    def source(self) -> Subwords: ...
    @property
    def target(self) -> Subwords: ...
    @property
    def model(self) -> Seq2Seq: ...


class RecipeMember(Member, Protocol):
    """A member that knows how it wants to be decoded."""

    @property
    def recipe(self) -> recipe.Recipe: ...


@dataclass(frozen=True)
class _Parts:
    """A member without a recipe."""

    model: Seq2Seq
    source: Subwords
    target: Subwords


@dataclass(frozen=True)
class TranslationHypothesis(Hypothesis):
    """One translation of a line. Row t of its alignment belongs to target piece t, column s to source piece s.

    The last column is that of the source's end mark, and the last row that of the target's, if finished. The alignment
    has no rows where none was asked for and no columns where no model was run.
    """

    text: str


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    source: str
    """The line as it was given, without its line end."""
    source_ids: tuple[int, ...]
    """The pieces that the (first) model read, without end mark."""
    hypotheses: tuple[TranslationHypothesis, ...]
    """Best first; never empty."""

    @property
    def text(self) -> str:
        """The best translation: one line, whatever the source holds."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        return self.hypotheses[0].score


@dataclass(frozen=True)
class _Unit:
    """What is decoded at a time: the ids of one text, as each member cuts it."""

    ids: tuple[tuple[int, ...], ...]

    @property
    def length(self) -> int:
        """Of the longest source, end mark included."""
        return 1 + max(map(len, self.ids))


class Translator:
    """Translates lines with one model or the mean of several.

    The same line gives the same translation, score and alignment whatever other lines surround it.
    """

    def __init__(
        self,
        members: Sequence[RecipeMember],
        *,
        decoding: recipe.Decoding | None = None,
        n_best: int = 1,
        batch_tokens: int = 8192,
        window: int = 2000,
        max_source: int = 500,
        alignments: bool = True,
        precision: Precision = "fp32",
    ) -> None:
        """Check and set up; the models are used where they are and left in the mode they are in.

        Args:
            members: bundles with the same target vocabulary; the first one's recipe says how to decode by default.
            decoding: beam size, penalties, longest output.
            n_best: hypotheses a line, at most the beam size.
            batch_tokens: source pieces in a batch, padding and every place of the beam counted.
            window: lines read ahead and sorted by length; 1 answers each line before the next is read.
            max_source: longest source in pieces; what is longer is translated in parts.
            alignments: whether hypotheses carry their alignment (some models need a second pass for it).
            precision: of the matrix products; probabilities are always fp32.

        Raises:
            DataError: the target vocabularies differ.
            UsageError: an option is out of its range.
        """
        if not members:
            raise UsageError("A translator needs at least one model, but got none.")
        self._members: tuple[Member, ...] = tuple(members)
        self._decoding = members[0].recipe.decoding if decoding is None else decoding
        self._set_up(n_best, batch_tokens, window, max_source, alignments, precision)

    @classmethod
    def of(
        cls,
        model: Seq2Seq,
        source: Subwords,
        target: Subwords,
        *,
        decoding: recipe.Decoding,
        n_best: int = 1,
        batch_tokens: int = 8192,
        window: int = 2000,
        max_source: int = 500,
        alignments: bool = True,
        precision: Precision = "fp32",
    ) -> Self:
        """A translator of a bare model, for instance one in training; the rest as for the class itself."""
        translator = cls.__new__(cls)
        translator._members, translator._decoding = (_Parts(model, source, target),), decoding
        translator._set_up(n_best, batch_tokens, window, max_source, alignments, precision)
        return translator

    def _set_up(
        self, n_best: int, batch_tokens: int, window: int, max_source: int, alignments: bool, precision: Precision
    ) -> None:
        if not 1 <= n_best <= self._decoding.beam_size:
            beam_size = self._decoding.beam_size
            raise UsageError(f"n_best must be between 1 and beam_size, which is {beam_size}, but is {n_best}.")
        for name, value in (("batch_tokens", batch_tokens), ("window", window), ("max_source", max_source)):
            if value < 1:
                raise UsageError(f"{name} must be at least 1, but is {value}.")
        _check_targets(self._members)
        self._n_best, self._batch_tokens, self._window = n_best, batch_tokens, window
        self._max_source, self._alignments = max_source, alignments
        self._penalties = Penalties(self._decoding.length_penalty, self._decoding.coverage_penalty)
        fingerprints = {member.source.fingerprint for member in self._members}
        models = [member.model for member in self._members]
        self._ensemble = Ensemble(models, same_source=len(fingerprints) == 1, precision=precision)

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        """Translate lines, in their order; at most a window of them is held at a time.

        A blank line has an empty translation. Control characters in a line are read as spaces.
        """
        number = 1
        for window in read_ahead(lines, self._window, size=len):
            yield from self._translate_window([line.rstrip("\r\n") for line in window], number)
            number += len(window)

    def score(self, pairs: Iterable[tuple[str, str | Sequence[int]]]) -> Iterator[Translation]:
        """Forced decoding: log-probability, score and alignment of known translations, in their order.

        A target given as ids is scored in just these pieces; text is cut into the most probable ones.
        """
        for window in read_ahead(pairs, self._window, size=lambda pair: len(pair[0]) + len(pair[1])):
            yield from self._score_window(window)

    # --- a window of lines ---------------------------------------------------------------------------------------

    def _translate_window(self, lines: Sequence[str], first_number: int) -> Iterator[Translation]:
        units_of_lines = self._units(lines, first_number)
        units = [unit for of_line in units_of_lines for unit in of_line]
        found: list[list[TranslationHypothesis]] = [[] for _ in units]
        for rows in self._batches([unit.length for unit in units], self._decoding.beam_size):
            for row, hypotheses in zip(rows, self._decode([units[row] for row in rows]), strict=True):
                found[row] = hypotheses
        remaining = iter(found)
        for line, of_line in zip(lines, units_of_lines, strict=True):
            parts = [next(remaining) for _ in of_line]
            source_ids = tuple(index for unit in of_line for index in unit.ids[0])
            yield Translation(line, source_ids, tuple(_join(ranked) for ranked in zip(*parts, strict=False)) or _EMPTY)

    def _score_window(self, pairs: Sequence[tuple[str, str | Sequence[int]]]) -> Iterator[Translation]:
        units = self._encode([clean(source) for source, _ in pairs])
        encode = self._members[0].target.encode
        targets = [encode(clean(target)) if isinstance(target, str) else list(target) for _, target in pairs]
        found: list[TranslationHypothesis | None] = [None] * len(pairs)
        lengths = [max(unit.length, len(target) + 1) for unit, target in zip(units, targets, strict=True)]
        for rows in self._batches(lengths, 1):
            forced = self._force([units[row] for row in rows], [targets[row] for row in rows])
            for row, hypothesis in zip(rows, forced, strict=True):
                found[row] = hypothesis
        for (source, target), unit, hypothesis in zip(pairs, units, found, strict=True):
            assert hypothesis is not None
            if isinstance(target, str):
                hypothesis = _with_text(hypothesis, one_line(target.rstrip("\r\n")))
            yield Translation(source.rstrip("\r\n"), unit.ids[0], (hypothesis,))

    def _units(self, lines: Sequence[str], first_number: int) -> list[list[_Unit]]:
        """What to decode for each line: nothing, the line, or its parts."""
        texts = [clean(line) for line in lines]
        units = []
        for number, (text, unit) in enumerate(zip(texts, self._encode(texts), strict=True), start=first_number):
            if not text:
                units.append([])
            elif self._fits(unit):
                units.append([unit])
            else:
                parts = self._encode(split_text(text, lambda part: self._fits(self._encode([part])[0])))
                units.append(parts)
                logger.warning(
                    "Line %d has %d pieces, more than the %d that are translated at a time: it is translated in %d parts.",
                    number, unit.length - 1, self._max_source, len(parts),
                )  # fmt: skip
        return units

    def _encode(self, texts: Sequence[str]) -> list[_Unit]:
        if not texts:
            return []
        members = [member.source.encode_batch(texts) for member in self._members]
        return [_Unit(tuple(map(tuple, ids))) for ids in zip(*members, strict=True)]

    def _fits(self, unit: _Unit) -> bool:
        return unit.length - 1 <= self._max_source

    def _batches(self, lengths: Sequence[int], width: int) -> list[list[int]]:
        """Rows of similar length whose padded size times `width` keeps to the budget; long ones first."""
        sizes = np.array(lengths, dtype=np.int64)
        order = np.argsort(-sizes, kind="stable")
        return [rows.tolist() for rows in cut(order, sizes, sizes * width, self._batch_tokens)]

    # --- a batch of units ----------------------------------------------------------------------------------------

    def _decode(self, units: Sequence[_Unit]) -> list[list[TranslationHypothesis]]:
        with self._ensemble.evaluating():
            found = self._search(units)
            realigned = self._realign(units, found)
        decode = self._members[0].target.decode
        return [
            [
                _hypothesis(hypothesis, one_line(decode(hypothesis.ids)), rows)
                for hypothesis, rows in zip(ranked, aligned, strict=True)
            ]
            for ranked, aligned in zip(found, realigned, strict=True)
        ]

    def _search(self, units: Sequence[_Unit]) -> list[list[Hypothesis]]:
        sources = self._sources(units)
        longest = [int(self._decoding.max_ratio * len(unit.ids[0])) + 11 for unit in units]
        max_lengths = torch.tensor(longest, device=self._ensemble.device)
        mask = sources[0] != PAD
        state = self._ensemble.encode(sources)
        alpha, beta = self._penalties.length, self._penalties.coverage
        if self._decoding.beam_size == 1:
            best = greedy(
                self._ensemble.step, state, batch=len(units), max_lengths=max_lengths, length_penalty=alpha,
                coverage_penalty=beta, source_mask=mask, bos=BOS, eos=EOS, forbid=(PAD, BOS),
            )  # fmt: skip
            return [[hypothesis] for hypothesis in best]
        return beam_search(
            self._ensemble.step, state, batch=len(units), beam_size=self._decoding.beam_size, max_lengths=max_lengths,
            length_penalty=alpha, coverage_penalty=beta, n_best=self._n_best, source_mask=mask, bos=BOS, eos=EOS,
            forbid=(PAD, BOS),
        )  # fmt: skip

    def _realign(self, units: Sequence[_Unit], found: Sequence[Sequence[Hypothesis]]) -> list[list[Tensor]]:
        """The alignment of each hypothesis, row t for target piece t and without padding."""
        if not self._alignments:
            return [[hypothesis.alignment[:0, :0] for hypothesis in ranked] for ranked in found]
        own = [
            [hypothesis.alignment[:, : len(unit.ids[0]) + 1] for hypothesis in ranked]
            for unit, ranked in zip(units, found, strict=True)
        ]
        if self._ensemble.shows_predicted:
            return own
        for rank in range(self._n_best):  # one rank at a time takes no more memory than the search did
            rows = [row for row, ranked in enumerate(found) if rank < len(ranked)]
            targets = [found[row][rank].ids for row in rows]
            for row, forced in zip(rows, self._force([units[row] for row in rows], targets), strict=True):
                own[row][rank] = forced.alignment[: len(own[row][rank])].clone()
        return own

    def _force(self, units: Sequence[_Unit], targets: Sequence[Sequence[int]]) -> list[TranslationHypothesis]:
        if not units:
            return []
        with self._ensemble.evaluating():
            sources = [[unit.ids[member] for unit in units] for member in range(len(self._members))]
            forced = self._ensemble.force(sources, targets)
            totals = forced.token_log_probs.sum(dim=1)
            lengths = torch.tensor([len(target) + 1 for target in targets], device=totals.device)
            mask = self._sources(units)[0] != PAD
            scores = self._penalties.score(totals, lengths, forced.alignment.sum(dim=1), mask)
        tokens, alignment = forced.token_log_probs.tolist(), forced.alignment.cpu()
        decode = self._members[0].target.decode
        return [
            TranslationHypothesis(
                ids=tuple(target),
                score=score,
                log_probability=total,
                token_log_probs=tuple(tokens[row][: len(target) + 1]),
                alignment=alignment[row, : len(target) + 1, : len(unit.ids[0]) + 1].clone(),
                finished=True,
                text=one_line(decode(target)),
            )
            for row, (unit, target, score, total) in enumerate(
                zip(units, targets, scores.tolist(), totals.tolist(), strict=True)
            )
        ]

    def _sources(self, units: Sequence[_Unit]) -> list[Tensor]:
        """The source [B S] of each member, with end marks."""
        members = range(len(self._members))
        return [pad([[*unit.ids[member], EOS] for unit in units]).to(self._ensemble.device) for member in members]


_EMPTY = (TranslationHypothesis((), 0.0, 0.0, (), torch.zeros(0, 0), finished=True, text=""),)
"""The one hypothesis of a blank line."""


def _check_targets(members: Sequence[Member]) -> None:
    first = members[0].target.fingerprint
    for number, member in enumerate(members[1:], start=2):
        if member.target.fingerprint != first:
            raise DataError(
                f"Model {number} of {len(members)} has another target vocabulary than model 1, so their probabilities "
                "cannot be averaged: use models that were trained with the same target subwords."
            )


def _hypothesis(found: Hypothesis, text: str, alignment: Tensor) -> TranslationHypothesis:
    return TranslationHypothesis(
        found.ids, found.score, found.log_probability, found.token_log_probs, alignment, found.finished, text
    )


def _with_text(hypothesis: TranslationHypothesis, text: str) -> TranslationHypothesis:
    return _hypothesis(hypothesis, text, hypothesis.alignment)


def _join(parts: Sequence[TranslationHypothesis]) -> TranslationHypothesis:
    """The translations of the parts of a line as one.

    Scores and log-probabilities are summed. Inner end marks lose their row and their entry of `token_log_probs`; what
    was paid to an inner end mark of the source counts for the last one, so that rows still sum to 1.
    """
    if len(parts) == 1:
        return parts[0]
    finished = all(part.finished for part in parts)
    kept = [len(part.ids) + (finished and part is parts[-1]) for part in parts]
    token_log_probs = [value for part, rows in zip(parts, kept, strict=True) for value in part.token_log_probs[:rows]]
    blocks = [part.alignment[:rows] for part, rows in zip(parts, kept, strict=True)]
    return TranslationHypothesis(
        ids=tuple(index for part in parts for index in part.ids),
        score=sum(part.score for part in parts),
        log_probability=sum(part.log_probability for part in parts),
        token_log_probs=tuple(token_log_probs),
        alignment=_block_diagonal(blocks),
        finished=finished,
        text=" ".join(part.text for part in parts if part.text),
    )


def _block_diagonal(blocks: Sequence[Tensor]) -> Tensor:
    """Alignments [T_i S_i] of parts as one; the last column of each is that of the end mark, which they share."""
    inner = torch.block_diag(*(block[:, :-1] for block in blocks))
    return torch.cat([inner, torch.cat([block[:, -1:] for block in blocks])], dim=1)
