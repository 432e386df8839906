"""Translate text: loops over windows of lines, batches of similar length, and translations in the order of the lines."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import chain, count, islice, repeat
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import numpy as np

from nmt.alignment.extraction import fitting_extraction
from nmt.alignment.translation import (
    Translation,
    TranslationHypothesis,
    WordReader,
    unread_hypothesis,
)
from nmt.bundle.folder import Bundle
from nmt.decoding.batch_decoder import BatchDecoder, SourceSentence
from nmt.decoding.halving import Halving
from nmt.decoding.options import DecodingOptions, Pair, checked_pairs, is_pair, with_prefixes
from nmt.decoding.packed import PackedModels
from nmt.decoding.parts import join, split_text
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.terms import Terms
from nmt.errors import DataError, UsageError
from nmt.fast.bucketing import largest_bucket_within
from nmt.recipe import Recipe
from nmt.runtime.device import DecodingPrecision
from nmt.runtime.pool import Pool
from nmt.runtime.progress import with_progress
from nmt.runtime.wording import counted
from nmt.search.hypothesis import NEG_INF
from nmt.text.languages import base_language
from nmt.text.sentences import split_sentences
from nmt.text.subwords import BOS, EOS, PAD
from nmt.text.unseen import UnseenCharacters
from nmt.text.words import clean

__all__ = ["Translation", "TranslationHypothesis", "Translator"]

logger = logging.getLogger(__name__)

_NOT_NUMBERS = "The model's probabilities are not numbers, because its weights are damaged or too large"
_BATCH_TOKENS = 2**13
_GPU_BATCH_TOKENS = 2**16
"""For search on a GPU, so that more hypotheses share the start of each kernel."""
_MAX_WEIGHTS = 2**26
"""Most attention weights of a pair to score; each takes about 16 bytes."""
_MIN_LENGTH = 8
"""Shorter sentences count as this long when batches are made, to bound the rows of their [N V] log-probabilities."""
_WINDOW_CHARACTERS = 300_000
"""Most characters of a window of lines, to bound its memory: alignments grow with the square of a line's length."""


@dataclass(frozen=True)
class _Line:
    """A line, and the sentences that a model reads of it: none of one that stays as it is, several if they are split or too long."""

    text: str
    sentences: list[SourceSentence]
    target_text: str = ""
    """Its translation, if that is known."""

    @property
    def source_ids(self) -> tuple[int, ...]:
        """What the first model reads of it."""
        return tuple(index for sentence in self.sentences for index in sentence.ids[0])


InputT = TypeVar("InputT")
ResultT = TypeVar("ResultT")


def _reloaded(kind: type[Translator], reload: Callable[[], PackedModels], settings: DecodingOptions) -> Translator:
    """A translator in another process, which loads the models itself."""
    return kind(replace(reload(), settings=settings, reload=reload))


class Translator:
    """Translates lines with one model, or with an ensemble that averages probabilities. `nmt.load` makes one.

    A line gets the same translation, score and alignment whatever lines it is batched with, up to rounding (scores in fp32
    agree to about 1e-6 per token). Several threads may call a translator at the same time.
    """

    def __init__(
        self,
        members: Bundle | Sequence[Bundle] | PackedModels,
        *,
        shortlist: Shortlist | str | Path | None = None,
        precision: DecodingPrecision | Literal["auto"] = "fp32",
        **options: Any,
    ) -> None:
        """Check the options and copy the models, on the device where they are.

        Args:
            members: bundles with the same target vocabulary; their source subwords may differ. `PackedModels` are shared as
                they are, without the next two options.
            shortlist, precision: as for `nmt.load`.
            options: those of `DecodingOptions`.

        Raises:
            DataError: the target vocabularies differ, or the shortlist file cannot be used.
            UsageError: an option does not exist or is out of range, or the device cannot compute in the precision.
        """
        if not isinstance(members, PackedModels):
            members = PackedModels.of(members, shortlist=shortlist, precision=precision)
        self._models = members.changed(options)
        self._members, self._ensemble = self._models.members, self._models.ensemble
        self._settings = settings = self._models.settings
        self._is_undecided = len(self.recipe.data.targets) > 1 and settings.to is None
        """Whether the language to translate to must still be named."""
        tags = [[] for _ in self._members] if self._is_undecided else self._models.tags(settings.to)
        member = self._members[0]
        extraction = fitting_extraction(member.recipe, posterior=settings.posterior)
        lexicon = settings.terms or {}
        terms = dict(zip(*(member.normalizer.all(list(side)) for side in (lexicon, lexicon.values())), strict=True))
        self._reader = WordReader((member.source, member.target), extraction, settings.posterior, terms)
        self._decoder = BatchDecoder(
            *(self._ensemble, member.source, member.target, settings, tags, self._models.unwritten),
            Terms(member.target, terms) if terms else None,
        )

    @property
    def recipe(self) -> Recipe:
        """The recipe of the (first) model."""
        return self._members[0].recipe

    @property
    def to(self) -> str | None:
        """The language that was chosen to translate to; None if none was."""
        return self._settings.to

    @property
    def ranks_by_risk(self) -> bool:
        """Whether hypotheses are in the order of their expected chrF (minimum Bayes risk), not of their scores."""
        return self._decoder.chooses_by_risk

    def __repr__(self) -> str:
        directions = ", ".join(map(" to ".join, self.recipe.data.directions))
        return f"Translator({self.recipe.name!r}, {directions}, {counted(len(self._members), 'model')})"

    def with_options(self, **options: Any) -> Translator:
        """The same models with some options changed, at once: nothing is loaded or packed again.

        Raises:
            UsageError: an option does not exist or is out of range.
        """
        return type(self)(self._models.changed(options))

    def _called(self, options: dict[str, Any]) -> Translator:
        """This translator for a call. Raises UsageError, also if it is not known to which language it is to translate."""
        translator = self.with_options(**options) if options else self
        if translator._is_undecided:
            self._models.tags(None)  # says which languages there are
        return translator

    def __reduce__(self) -> tuple[Callable[..., Translator], tuple[Any, ...]]:
        """Pickle how to load the models, and the options, so that another process loads the models itself.

        Raises:
            UsageError: the translator was not made by `nmt.load`.
        """
        if self._models.reload is None:
            raise UsageError(
                "A Translator of models in memory cannot go to another process: save them, and make one by nmt.load."
            )
        return _reloaded, (type(self), self._models.reload, self._settings)

    @overload
    def translate(
        self, lines: str, *, prefix: str = "", first_line: int = 1, show_progress: bool = False, **options: Any
    ) -> Translation: ...
    @overload
    def translate(
        self,
        lines: Iterable[str],
        *,
        prefix: Iterable[str] = "",
        first_line: int = 1,
        show_progress: bool = False,
        **options: Any,
    ) -> list[Translation]: ...
    def translate(
        self,
        lines: object,
        *,
        prefix: object = "",
        first_line: int = 1,
        show_progress: bool = False,
        **options: Any,
    ) -> Translation | list[Translation]:
        """Translate a sentence, or several.

            translator.translate("A man is riding a horse.").text
            translator.translate(["A cat.", "Two dogs."], beam_size=10, n_best=3)[1].hypotheses[2].text

        * A blank line has an empty translation.
        * Control characters are read as spaces, lone surrogates as U+FFFD. Translations have neither, so each is one line.
        * A translation with a prefix begins with it, in its normal form; a last word may go on unless a space follows it. Such a line is
          not split into sentences.

        Args:
            lines: a str, which is one sentence, or an iterable of lines. More lines than fit the memory: `stream`.
            prefix: the text that the translation must begin with; of several lines one for each, "" for none.
            first_line: the number of the first line, for warnings and samples.
            show_progress: whether a bar on stderr shows how far a long list is, if stderr is a terminal.
            options: those of `DecodingOptions`, for this call only.

        Returns:
            A `Translation` for a str; else a list of them, in the order of the lines.

        Raises:
            UsageError: `lines` is neither, a line is not a str, there are more or fewer prefixes than lines, or an option does not exist
                or is out of range.
        """
        translator = self._called(options)
        if isinstance(lines, str):
            [translation] = translator._translate(with_prefixes([lines], [prefix]), first_line)
            return translation
        results = translator._translate(with_prefixes(lines, prefix), first_line)
        return list(_watched(results, "translating", lines, show=show_progress))

    def stream(
        self, lines: Iterable[str], *, prefix: Iterable[str] = "", first_line: int = 1, **options: Any
    ) -> Iterator[Translation]:
        """Translate lines as they are read, in their order.

            with open("news.en") as lines:
                texts = [translation.text for translation in translator.stream(lines)]

        At most one window of lines is in memory, two with several processes. With `window=1` each line is translated before
        the next one is read.

        Args and errors are those of `translate`.
        """
        return self._called(options)._translate(with_prefixes(lines, prefix), first_line)

    @overload
    def score(self, pairs: Pair, *, show_progress: bool = False, **options: Any) -> Translation: ...
    @overload
    def score(self, pairs: Iterable[Pair], *, show_progress: bool = False, **options: Any) -> list[Translation]: ...
    def score(self, pairs: object, *, show_progress: bool = False, **options: Any) -> Translation | list[Translation]:
        """Score known translations by forced decoding: log-probability, score and alignment.

            translator.score(("A cat.", "Eine Katze.")).hypotheses[0].log_probability

        A pair with as many sentences on both sides is read sentence by sentence, as `translate` reads a line; nothing else is split.

        Args:
            pairs: a pair (source, target) or an iterable of pairs. A target is text, which the target subwords split, or a
                list of token ids. More pairs than fit the memory: `stream_scores`.
            show_progress: as for `translate`.
            options: as for `translate`.

        Returns:
            A `Translation` for a single pair; else a list of them, in the order of the pairs.

        Raises:
            UsageError: `pairs` is neither, an id is a special token or beyond the vocabulary, or an option is wrong.
            DataError: the model's probabilities are nan, or a pair has more than 67 million attention weights (8,000 tokens on
                both sides).
        """
        translator = self._called(options)
        if is_pair(pairs):
            [translation] = translator._score([pairs])
            return translation
        return list(_watched(translator._score(checked_pairs(pairs)), "scoring", pairs, show=show_progress))

    def stream_scores(self, pairs: Iterable[Pair], **options: Any) -> Iterator[Translation]:
        """Score pairs as they are read, in their order.

        Args and errors are those of `score`.
        """
        return self._called(options)._score(checked_pairs(pairs))

    @overload
    def align(self, pairs: Pair, *, show_progress: bool = False, **options: Any) -> Translation: ...
    @overload
    def align(self, pairs: Iterable[Pair], *, show_progress: bool = False, **options: Any) -> list[Translation]: ...
    def align(self, pairs: Any, *, show_progress: bool = False, **options: Any) -> Translation | list[Translation]:
        """Align known translations, by the posterior: `score` with `posterior=True`.

            sorted(translator.align(("A cat.", "Eine Katze.")).links)  # [(0, 0), (1, 1)]

        The posterior has a third of the errors of the attention, which `posterior=False` chooses; so do `layer` and `head`
        of `nmt.load`.

        Args, result and errors are those of `score`.
        """
        options.setdefault("posterior", self._settings.posterior or not self._models.chooses_attention)
        translations: Translation | list[Translation] = self.score(pairs, show_progress=show_progress, **options)
        return translations

    def _translate(self, lines: Iterable[tuple[str, str]], first_line: int = 1) -> Iterator[Translation]:
        numbers, failed = count(first_line), 0
        read = _windows(lines, self._settings.window, lambda line: len(line[0]) + len(line[1]))
        windows = (self._read_lines(window, numbers) for window in read)
        usual = _BATCH_TOKENS if self._ensemble.device.type == "cpu" else _GPU_BATCH_TOKENS
        size = (self._settings.batch_tokens or usual) // self._decoder.hypotheses
        for line, n_best_lists in self._decode(windows, self._decoder.search, size):
            # Hypothesis n of a line with several sentences joins number n of each.
            hypotheses = tuple(join(ranked, self._decoder.penalties) for ranked in zip(*n_best_lists, strict=False))
            if hypotheses and hypotheses[0].score == NEG_INF:
                failed += 1
            if not hypotheses:
                hypotheses = (unread_hypothesis(self._members[0].normalizer(line.text)),)
            yield Translation(line.text, line.source_ids, hypotheses, self._reader)
        if failed:
            logger.warning("%s, so the translations of %s are empty.", _NOT_NUMBERS, counted(failed, "line"))

    def _score(self, pairs: Iterable[Pair]) -> Iterator[Translation]:
        numbers = count(1)
        read = _windows(pairs, self._settings.window, lambda pair: len(pair[0]) + len(pair[1]))
        windows = (self._read_pairs(window, numbers) for window in read)
        size = self._settings.batch_tokens or _BATCH_TOKENS
        for line, hypotheses in self._decode(windows, self._decoder.force, size):
            hypothesis = replace(join(hypotheses, self._decoder.penalties), text=line.target_text)
            if math.isnan(hypothesis.log_probability):
                raise DataError(f"{_NOT_NUMBERS}, so nothing can be scored.")
            yield Translation(line.text, line.source_ids, (hypothesis,), self._reader)

    def _decode(
        self,
        windows: Iterable[list[_Line]],
        run: Callable[[Sequence[SourceSentence]], Sequence[ResultT]],
        size: int,
    ) -> Iterator[tuple[_Line, list[ResultT]]]:
        """Decode the sentences of each window in batches of similar length, of at most `size` tokens with padding.

        Yields each line with the results of its sentences, in order. While processes decode a window, the next one is read. At
        the end warns of characters that the model has hardly seen.
        """
        unseen = UnseenCharacters(self._members[0].source.unknown_characters, self._models.reported_characters)
        begun = deque[tuple[list[_Line], list[list[int]], list[int]]]()
        ahead = 1 if self._settings.processes > 1 and self._settings.window > 1 else 0
        with Pool(Halving(run), self._settings.processes) as pool:
            for window in chain(windows, repeat([], ahead)):
                sentences = [sentence for line in window for sentence in line.sentences]
                unseen.add(sentence.text for sentence in sentences)
                batches = _batches([sentence.length for sentence in sentences], size, self._settings.processes)
                tasks = pool.submit([[sentences[row] for row in rows] for rows in batches])
                begun.append((window, batches, tasks))
                if len(begun) > ahead:
                    lines, batches, tasks = begun.popleft()
                    results: dict[int, ResultT] = {}
                    for rows, output in zip(batches, pool.collect(tasks), strict=True):
                        results.update(zip(rows, output, strict=True))
                    in_order = (results[row] for row in range(len(results)))
                    for line in lines:
                        yield line, list(islice(in_order, len(line.sentences)))
        if warning := unseen.warning():
            logger.warning("%s", warning)

    def _read_lines(self, given: Sequence[tuple[str, str]], numbers: Iterator[int]) -> list[_Line]:
        """Encode the lines of a window, given with their prefixes, but those that stay as they are; split sentences that are too long."""
        lines = [line.rstrip("\r\n") for line, _ in given]
        normal, prefixes = self._members[0].normalizer.all(lines), [self._prefix(prefix) for _, prefix in given]
        source, reads_all = self.recipe.data.source, self._settings.keep_numbers is False
        texts_of_lines = []
        for line, prefix in zip(normal, prefixes, strict=True):
            is_read = any(map(str.isalpha, line)) or (reads_all and line)
            texts_of_lines.append([line] if prefix else self._sentences(line, source) if is_read else [])
        encoded = iter(self._encode([text for texts in texts_of_lines for text in texts]))
        window = []
        for line, texts, prefix, number in zip(lines, texts_of_lines, prefixes, numbers, strict=False):
            sentences: list[SourceSentence] = []
            for sentence in islice(encoded, len(texts)):
                is_short = sentence.length <= self._settings.max_source
                name = f"Line {number}" if len(texts) == 1 else f"A sentence of line {number}"
                sentences += [sentence] if is_short else self._parts(sentence, name)
            placed = [
                replace(sentence, place=(number, place), prefix="" if place else prefix)
                for place, sentence in enumerate(sentences)
            ]
            window.append(_Line(line, placed))
        return window

    def _prefix(self, text: str) -> str:
        """The normal form of a prefix, with a space at its end if it has any. Raises UsageError if there is a shortlist."""
        normal = self._members[0].normalizer(text)
        if normal and self._ensemble.shortlist is not None:
            raise UsageError("A prefix may need tokens that are not on the shortlist: leave one out.")
        return f"{normal} " if normal and text.rstrip("\r\n")[-1:].isspace() else normal

    def _sentences(self, line: str, language: str) -> list[str]:
        """The sentences of a line that are read by themselves, or the line as the only one."""
        if self._settings.split_sentences is False:
            return [line]
        return [text.strip() for text in split_sentences(line, base_language(language))]

    def _parts(self, sentence: SourceSentence, name: str) -> list[SourceSentence]:
        """The parts of a sentence that is too long; the warning names it."""
        longest = self._settings.max_source
        parts = self._encode(split_text(sentence.text, lambda part: self._encode([part])[0].length <= longest))
        limit = f"has {sentence.length} tokens, but a model reads at most {longest} at a time"
        logger.warning("%s %s: it is translated in %d parts.", name, limit, len(parts))
        return parts

    def _read_pairs(self, pairs: Sequence[Pair], numbers: Iterator[int]) -> list[_Line]:
        """Encode the pairs of a window, sentence by sentence where both sides have as many.

        Raises DataError if one is too long, UsageError if ids are no tokens.
        """
        normal = self._members[0].normalizer.all([source for source, _ in pairs])
        sides = [self._known_sentences(source, target) for source, (_, target) in zip(normal, pairs, strict=True)]
        encoded = iter(self._encode([text for texts, _, _ in sides for text in texts]))
        window = []
        for (source, _), (_, targets, target_text), number in zip(pairs, sides, numbers, strict=False):
            sentences = []
            for ids, sentence in zip(targets, encoded, strict=False):
                if (sentence.length + 1) * (len(ids) + 1) > _MAX_WEIGHTS:
                    raise DataError(
                        f"Line {number} has {sentence.length:,} and {len(ids):,} tokens, too many to score."
                    )
                sentences.append(replace(sentence, target=ids))
            window.append(_Line(source.rstrip("\r\n"), sentences, target_text))
        return window

    def _known_sentences(
        self, source: str, target: str | Sequence[int]
    ) -> tuple[list[str], list[tuple[int, ...]], str]:
        """The sentences of a source, the ids of their translations, and the whole translation. Raises UsageError."""
        subwords, data = self._members[0].target, self.recipe.data
        if not isinstance(target, str):
            for index in target:
                if index in (PAD, BOS, EOS) or not 0 <= index < len(subwords):
                    limit = f"below {len(subwords)}, but one is {index}"
                    raise UsageError(f"Target ids must be tokens of the vocabulary, {limit}.")
            return [source], [tuple(target)], clean(subwords.decode(target))
        normal = self._members[0].normalizer(target)
        sources, targets = self._sentences(source, data.source), self._sentences(normal, self.to or data.target)
        if len(sources) != len(targets) or not sources:
            sources, targets = [source], [normal]
        return sources, [tuple(ids) for ids in subwords.encode_batch(targets)], clean(target)

    def _encode(self, texts: Sequence[str]) -> list[SourceSentence]:
        """Encode texts in the normal form of the first member; each other member reads its own."""
        first, *others = self._members
        encoded = [member.source.encode_batch(member.normalizer.all(texts)) for member in others]
        versions = zip(first.source.encode_batch(texts), *encoded, strict=True)
        return [SourceSentence(tuple(map(tuple, ids)), text) for ids, text in zip(versions, texts, strict=True)]


def _watched(results: Iterator[Translation], what: str, items: object, *, show: bool) -> Iterator[Translation]:
    """Pass the results for the items on, with a progress bar if it is to be shown."""
    total = len(items) if isinstance(items, Sized) else None
    return with_progress(results, what, total=total, quiet=not show)


def _windows(inputs: Iterable[InputT], length: int, characters: Callable[[InputT], int]) -> Iterator[list[InputT]]:
    """Windows of so many lines, or fewer if they have many characters. A full one is yielded before the next line is read."""
    window: list[InputT] = []
    size = 0
    for line in inputs:
        window.append(line)
        size += characters(line)
        if len(window) == length or size >= _WINDOW_CHARACTERS:
            yield window
            window, size = [], 0
    if window:
        yield window


def _batches(lengths: Sequence[int], size: int, processes: int) -> list[list[int]]:
    """Batch rows of similar length, longest first; a batch has at most `size` tokens with padding.

    Several are so many that each process gets as many: the last one, of the shortest sentences, is split.
    """
    tokens = np.maximum(np.array(lengths, dtype=np.int64) + 1, _MIN_LENGTH)
    order = np.argsort(-tokens, kind="stable")
    batches, start = [], 0
    while start < len(order):
        rows = max(size // int(tokens[order[start]]), 1)
        end = start + largest_bucket_within(rows)
        batches.append(order[start:end].tolist())
        start = end
    if len(batches) > 1:
        missing = -len(batches) % processes
        parts = np.array_split(batches.pop(), 1 + missing)
        batches += [part.tolist() for part in parts if len(part)]
    return batches
