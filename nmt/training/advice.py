"""Advice before training: a vocabulary or model too large, pairs repeated, held-out text trained on, lines of several sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_text
from nmt.errors import DataError
from nmt.recipe import DataConfig, Recipe
from nmt.runtime.wording import counted, excerpt
from nmt.text.languages import base_language
from nmt.text.sentences import split_sentences
from nmt.training.text import TrainingText

_MIN_OCCURRENCES = 10
"""Mean occurrences of a token in the training text. Down to 11, larger vocabularies translate better (recipes/NOTES.md)."""
_MAX_PARAMETERS = 100
"""Parameters per target token of the training text."""
_SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
"""Vocabulary sizes to suggest."""
_PRESETS = {"medium": 60_000, "small": 0}
"""Recipes whose widths to suggest, largest first, and the number of pairs from which each is suitable."""
_NOTABLE_OVERLAP = 0.01
"""The share of common source sides from which on a held-out text is worth a warning."""
_NOTABLE_REPETITION = 0.02
"""The share of repeated pairs from which on it is worth a warning."""
_COUNTED = 50_000
"""Pairs up to which repetitions are counted; of a larger text, those of so many pairs are."""
_SAMPLE = 500
"""Most lines that are searched for several sentences."""
_NOTABLE_LINES = 0.2
"""The share of lines with several sentences from which on a text is worth a warning."""
_WIDTH = 60
"""Most characters of an example."""


@dataclass(frozen=True)
class TrainingSize:
    """The sizes of a training corpus and of the model that is trained on it.

    Attributes:
        pairs: number of sentence pairs.
        tokens: number of source and of target tokens.
        vocabulary: sizes of the source and of the target vocabulary.
        parameters: number of parameters.
    """

    pairs: int
    tokens: tuple[int, int]
    vocabulary: tuple[int, int]
    parameters: int


def advise(recipe: Recipe, size: TrainingSize) -> str | None:
    """One sentence on which settings to change if the vocabulary or the model is too large for the corpus, else None."""
    problems = list(filter(None, (_vocabulary_problem(recipe, size), _parameters_problem(recipe, size))))
    if not problems:
        return None
    subjects, remedies = (" and ".join(parts) for parts in zip(*problems, strict=True))
    verb = "is" if len(problems) == 1 else "are"
    return f"{subjects[0].upper()}{subjects[1:]} {verb} too much for {size.pairs:,} pairs. Try {remedies}."


def _vocabulary_problem(recipe: Recipe, size: TrainingSize) -> tuple[str, str] | None:
    """The problem and its remedy if tokens are too rare, else None."""
    subwords, pretrained = recipe.subwords, recipe.training.pretrained
    are_given = subwords.source_model is not None or (pretrained is not None and pretrained.subwords == "same")
    if are_given or subwords.kind not in ("unigram", "bpe"):
        return None
    tokens, vocabulary = (sum(size.tokens), size.vocabulary[0]) if subwords.joint else _side_with_rarer_tokens(size)
    if tokens >= _MIN_OCCURRENCES * vocabulary or vocabulary <= _SIZES[0]:
        return None
    suggestion = max([_SIZES[0], *(size for size in _SIZES if size * _MIN_OCCURRENCES <= tokens)])
    return (
        f"a vocabulary of {vocabulary:,} tokens ({tokens / vocabulary:.1f} occurrences each)",
        f"subwords.size={suggestion}",
    )


def _side_with_rarer_tokens(size: TrainingSize) -> tuple[int, int]:
    """Number of tokens and vocabulary size of the side whose tokens occur less often on average."""
    return min(zip(size.tokens, size.vocabulary, strict=True), key=lambda side: side[0] / side[1])


def _parameters_problem(recipe: Recipe, size: TrainingSize) -> tuple[str, str] | None:
    """The problem and its remedy if there are too many parameters, else None. A pretrained model has learned its own elsewhere."""
    if recipe.training.pretrained is not None:
        return None
    per_token = size.parameters / max(size.tokens[1], 1)
    if per_token <= _MAX_PARAMETERS:
        return None
    preset = next(name for name, pairs in _PRESETS.items() if size.pairs >= pairs)
    return (
        f"a model of {size.parameters / 1e6:.1f} M parameters ({per_token:.0f} per target token)",
        f"the widths of the recipe {preset}",
    )


@dataclass(frozen=True)
class Overlap:
    """How much of a held-out text is also in the training text.

    Attributes:
        lines: number of pairs of the held-out text.
        pairs: how many of them are in the training text.
        sources: how many have a source side that is there, with any translation.
        example: the line number and source side of one of them, of a pair if there is one.
    """

    lines: int
    pairs: int
    sources: int
    example: tuple[int, str] | None

    @classmethod
    def of(cls, held_out: ParallelCorpus, train: ParallelCorpus) -> Overlap:
        """Compare two texts. It takes the memory of the held-out text, however large the training text is."""
        train, held_out = train.untagged, held_out.untagged
        rows = train.source.rows_among(set(held_out.source))
        pairs = {(train.source[row], train.target[row]) for row in rows}
        sources = {source for source, _ in pairs}
        common_pairs = [row for row, pair in enumerate(held_out.pairs()) if pair in pairs]
        common_sources = [row for row, source in enumerate(held_out.source) if source in sources]
        example = next(((row + 1, held_out.source[row]) for row in [*common_pairs, *common_sources]), None)
        return cls(len(held_out), len(common_pairs), len(common_sources), example)


def overlap_warning(data: DataConfig, text: TrainingText) -> str | None:
    """One sentence on the lines of `data.valid` and `data.test` that are also in `data.train`; None if these are few."""
    overlaps = {name: Overlap.of(held_out, text.train) for name, held_out in _held_out(data, text)}
    findings = [
        f"{counted(overlap.pairs, 'pair')} and {counted(overlap.sources, 'source')} of the {overlap.lines:,} of {name} "
        f"(such as line {overlap.example[0]:,}: {excerpt(overlap.example[1], _WIDTH)})"
        for name, overlap in overlaps.items()
        if overlap.example is not None and overlap.sources >= _NOTABLE_OVERLAP * overlap.lines
    ]
    if not findings:
        return None
    return f"Warning: data.train also has {' and '.join(findings)}. Scores on text that was trained on are too high."


def _held_out(data: DataConfig, text: TrainingText) -> Iterator[tuple[str, ParallelCorpus]]:
    """The held-out texts by setting. `data.test` is left out if it cannot be read or might have to be fetched."""
    yield "data.valid", text.valid
    if data.test is not None:
        try:
            yield "data.test", load_text(data, data.test, fetch=False)
        except DataError:
            return


def duplicates_warning(data: DataConfig, train: ParallelCorpus) -> str | None:
    """One sentence on the pairs of `data.train` that repeat an earlier one and are not filtered; None if these are few.

    In a large text their share is estimated: of a pair that occurs m times, a share of 1 - 1/m is repetition.
    """
    if not data.filters.duplicates or not len(train):
        return None
    text, total = train.untagged, len(train)
    rows = sorted(Random(1).sample(range(total), min(total, _COUNTED)))
    pairs = list(zip(text.source.take(rows), text.target.take(rows), strict=True))
    sides = (text.source.rows_among({one for one, _ in pairs}), text.target.rows_among({other for _, other in pairs}))
    alike, counts = np.intersect1d(*sides, assume_unique=True).tolist(), Counter[tuple[str, str]]()
    for start in range(0, len(alike), _COUNTED):
        block = alike[start : start + _COUNTED]
        counts.update(zip(text.source.take(block), text.target.take(block), strict=True))
    share = sum(1 - 1 / counts[pair] for pair in pairs if all(pair)) / len(pairs)  # empty sides are left out anyway
    if share < _NOTABLE_REPETITION:
        return None
    row, pair = max(zip(rows, pairs, strict=True), key=lambda item: all(item[1]) * counts[item[1]])
    amount = f"{share:.0%}" if len(rows) < total else f"{round(share * total):,} ({share:.0%})"
    return (
        f"Warning: {amount} of the {total:,} pairs of data.train repeat another (such as line {row + 1:,}: "
        f"{excerpt(pair[0], _WIDTH)}, {counts[pair]:,} times). data.filters.duplicates=false keeps one of each."
    )


def several_sentences_warning(train: ParallelCorpus) -> str | None:
    """What to know of a training text of which many source lines hold several sentences; None if these are few."""
    source, language = train.untagged.source, base_language(train.languages[0])
    rows = sorted(Random(1).sample(range(len(source)), min(len(source), _SAMPLE)))
    several = [row for row in rows if len(split_sentences(source[row], language)) > 1]
    if not several or len(several) < _NOTABLE_LINES * len(rows):
        return None
    example = f"such as line {several[0] + 1:,}: {excerpt(source[several[0]], _WIDTH)}"
    return (
        f"Warning: {len(several) / len(rows):.0%} of the lines of data.train hold several sentences ({example}). nmt serve and "
        "--split-sentences translate one at a time: cut the training text into single sentences too."
    )
