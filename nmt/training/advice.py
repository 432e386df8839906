"""What to tell a user of a training: before it of text, vocabulary and model, after a validation of what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from nmt.data.columns import Column
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_text
from nmt.errors import DataError
from nmt.recipe import DataConfig, Recipe
from nmt.runtime.wording import counted, excerpt, perplexity
from nmt.training.losses import Diverged
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
_COMPARED = 2000
"""Most lines of a text whose conventions are compared."""
_FEWEST = 20
"""Lines from which on a share is worth comparing."""
_NOTABLE_DIFFERENCE = 0.3
"""The difference of two shares from which on it is worth a warning."""
_SPACED = re.compile(r"(?<!\S)[.,،۔।](?!\S)")
_ATTACHED = re.compile(r"(?<=\w)[.,،۔।](?!\S)")
_WIDTH = 60
"""Most characters of an example."""
_EXPLOSION = 10
"""How many times the lowest perplexity of validation shows that training diverged."""
_RISE = 1.2
"""How many times the lowest perplexity of validation shows overfitting, if that of training has fallen since."""
_IN_A_ROW = 3
"""Validations in a row that show it, and validations after the warm-up before a copy of the source is compared."""


def text_warnings(data: DataConfig, text: TrainingText) -> Iterator[str]:
    """What to know of the text of a new run: leaks, repetitions, other conventions."""
    for warning in (overlap_warning(data, text), duplicates_warning(data, text.train)):
        if warning is not None:
            yield warning
    yield from convention_warnings(text)


def _example(row: int, line: str) -> str:
    return f"line {row + 1:,}: {excerpt(line, _WIDTH)}"


# --- a vocabulary or model too large -----------------------------------------------------------------------------


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
    """Which settings to change if the vocabulary or the model is too large for the corpus, else None."""
    subwords, pretrained = recipe.subwords, recipe.training.pretrained
    problems, remedies = [], []
    is_learned = subwords.source_model is None and (pretrained is None or pretrained.subwords == "new")
    if is_learned and subwords.kind in ("unigram", "bpe"):
        sides = zip(size.tokens, size.vocabulary, strict=True)
        rarest = min(sides, key=lambda side: side[0] / side[1])
        tokens, vocabulary = (sum(size.tokens), size.vocabulary[0]) if subwords.joint else rarest
        if tokens < _MIN_OCCURRENCES * vocabulary and vocabulary > _SIZES[0]:
            problems.append(f"a vocabulary of {vocabulary:,} tokens ({tokens / vocabulary:.1f} occurrences each)")
            suitable = [each for each in _SIZES if each * _MIN_OCCURRENCES <= tokens]
            remedies.append(f"subwords.size={max(suitable, default=_SIZES[0])}")
    per_token = size.parameters / max(size.tokens[1], 1)
    if pretrained is None and per_token > _MAX_PARAMETERS:  # a pretrained model has learned its parameters elsewhere
        problems.append(f"a model of {size.parameters / 1e6:.1f} M parameters ({per_token:.0f} per target token)")
        remedies.append(
            f"the widths of the recipe {next(name for name, pairs in _PRESETS.items() if size.pairs >= pairs)}"
        )
    if not problems:
        return None
    subject, verb = " and ".join(problems), "is" if len(problems) == 1 else "are"
    return f"A{subject[1:]} {verb} too much for {size.pairs:,} pairs. Try {' and '.join(remedies)}."


# --- text that repeats itself -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overlap:
    """How much of a held-out text is also in the training text.

    Attributes:
        lines: number of pairs of the held-out text.
        pairs: how many of them are in the training text.
        sources: how many have a source side that is there, with any translation.
        example: the row and source side of one of them, of a pair if there is one.
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
        example = next(((row, held_out.source[row]) for row in [*common_pairs, *common_sources]), None)
        return cls(len(held_out), len(common_pairs), len(common_sources), example)


def overlap_warning(data: DataConfig, text: TrainingText) -> str | None:
    """A warning of lines of `data.valid` and `data.test` that are also in `data.train`; None if these are few."""
    held_out = {"data.valid": text.valid}
    if data.test is not None:
        with suppress(DataError):  # it cannot be read, or would have to be fetched
            held_out["data.test"] = load_text(data, data.test, fetch=False)
    findings = []
    for name, corpus in held_out.items():
        overlap = Overlap.of(corpus, text.train)
        if overlap.example is not None and overlap.sources >= _NOTABLE_OVERLAP * overlap.lines:
            findings.append(
                f"{counted(overlap.pairs, 'pair')} and {counted(overlap.sources, 'source')} of the {overlap.lines:,} of {name} "
                f"(such as {_example(*overlap.example)})"
            )
    if not findings:
        return None
    return f"Warning: data.train also has {' and '.join(findings)}. Scores on text that was trained on are too high."


def duplicates_warning(data: DataConfig, train: ParallelCorpus) -> str | None:
    """A warning of pairs of `data.train` that repeat an earlier one and are not filtered; None if these are few."""
    if not data.filters.duplicates or not len(train):
        return None
    text, total = train.untagged, len(train)
    # Pairs with an empty side are left out anyway.
    keys = (hash(pair) if all(pair) else hash((row,)) for row, pair in enumerate(text.pairs()))
    _, first_rows, counts = np.unique(np.fromiter(keys, np.int64, total), return_index=True, return_counts=True)
    repetitions = total - len(counts)
    if repetitions < _NOTABLE_REPETITION * total:
        return None
    row = int(first_rows[counts == counts.max()].min())
    return (
        f"Warning: {repetitions:,} ({repetitions / total:.0%}) of the {total:,} pairs of data.train repeat another (such as "
        f"{_example(row, text.source[row])}, {counts.max():,} times). data.filters.duplicates=false keeps one of each."
    )


# --- text written by other conventions ---------------------------------------------------------------------------


class Convention(NamedTuple):
    """A way to write, what to do if only one of two texts follows it, and whether a line does: None if it could not."""

    description: str
    advice: str
    is_followed: Callable[[str], bool | None]


_CONVENTIONS = (
    Convention(
        "have spaces before full stops and commas",
        "Detokenize it, since nmt learns tokens from plain text.",
        lambda line: True if _SPACED.search(line) else False if _ATTACHED.search(line) else None,
    ),
    Convention(
        "have no upper-case letter",
        "A model writes as its training text does: write both alike.",
        lambda line: line == line.lower() if line.lower() != line.upper() else None,
    ),
)


def convention_warnings(text: TrainingText) -> Iterator[str]:
    """A warning for each side and each convention that training and validation text of a pair of languages follow differently."""
    for languages, held_out in text.valid.directions.items():
        if languages not in text.train.directions:
            continue
        train, valid = text.train.directions[languages].untagged, held_out.untagged
        names = (train.name, valid.name) if len(text.valid.directions) > 1 else ("data.train", "data.valid")
        sides = zip(languages, (train.source, train.target), (valid.source, valid.target), strict=True)
        for language, *columns in sides:
            for convention in _CONVENTIONS:
                following = [_following(column, convention) for column in columns]
                if min(map(len, following)) < _FEWEST:
                    continue
                shares = [fmean(follows for follows, _ in lines) for lines in following]
                if abs(shares[0] - shares[1]) < _NOTABLE_DIFFERENCE:
                    continue
                findings = []
                for name, lines, share in zip(names, following, shares, strict=True):
                    is_more = share == max(shares)
                    example = next(example for follows, example in lines if follows == is_more)
                    findings.append(f"in {name} ({'such as' if is_more else 'unlike'} {example})")
                yield (
                    f"Warning: {shares[0]:.0%} of the lines in {language} {convention.description} {findings[0]}, "
                    f"{shares[1]:.0%} {findings[1]}. {convention.advice}"
                )


def _following(lines: Column, convention: Convention) -> list[tuple[bool, str]]:
    """Which of some lines of a text follow a convention, without those that could not, and each as an example."""
    rows = sorted(Random(1).sample(range(len(lines)), min(len(lines), _COMPARED)))
    answers = ((convention.is_followed(line), row, line) for row, line in zip(rows, lines.take(rows), strict=True))
    return [(follows, _example(row, line)) for follows, row, line in answers if follows is not None]


# --- what validations show ---------------------------------------------------------------------------------------


@dataclass
class Symptoms:
    """Follows the validations of a run: does it diverge, overfit, or translate worse than a copy of the source?"""

    copying: Mapping[str, float]
    """The scores of the untranslated source, by metric; none if validation does not translate."""
    warmup: int
    """Updates in which the learning rate rises."""
    lowest: float | None = None
    """The lowest perplexity of validation. This and what follows have the names in the state."""
    lowest_in_training: float | None = None
    """The perplexity of training before it; None if nothing was trained."""
    lowest_at: int = 0
    """Its update."""
    risen: int = 0
    """Validations in a row that are clearly above it."""
    after_warmup: int = 0
    """Validations after the warm-up."""
    score: float | None = None
    """chrF of the model; None if validation does not translate."""
    said: list[str] = field(default_factory=list)
    """The symptoms that were said."""

    def state_dict(self) -> dict[str, Any]:
        """What is known of the validations so far, and what was said."""
        return {"symptoms": {name: value for name, value in vars(self).items() if name not in ("copying", "warmup")}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`; earlier versions stored nothing."""
        vars(self).update(state.get("symptoms", {}))

    def of_validation(self, figures: Mapping[str, Any], *, improved: bool) -> Iterator[str]:
        """What the next validation shows, one message for each symptom that was not said before.

        Args:
            figures: the record of the validation.
            improved: whether its weights are the model now.
        """
        current = figures["perplexity"]
        if improved:
            self.adopt(figures)
        if self.lowest is None or current < self.lowest:
            self.lowest, self.lowest_in_training = current, figures.get("train_perplexity")
            self.lowest_at, self.risen = figures["update"], 0
        lowest = self.lowest or current
        before, now = self.lowest_in_training, figures.get("train_perplexity")
        has_learned = before is not None and now is not None and now < before
        self.risen = self.risen + 1 if has_learned and current > _RISE * lowest else 0
        self.after_warmup += 1 if figures["update"] >= self.warmup else 0
        if not has_learned and current > _EXPLOSION * lowest:
            verdict = f"{Diverged.verdict}: perplexity is above {_EXPLOSION} times the best. {Diverged.advice}"
            yield from self._once("divergence", verdict)
        if self.risen >= _IN_A_ROW:
            yield from self._once(
                "overfitting",
                f"Warning: the model overfits. Since update {self.lowest_at:,} the perplexity of validation has risen from "
                f"{perplexity(lowest)} to {perplexity(current)}, while that of training (with dropout, without label "
                f"smoothing) has fallen from {perplexity(before or 0)} to {perplexity(now or 0)}. More dropout, fewer updates or "
                "more text, such as back-translation, would help.",
            )
        if self.after_warmup == _IN_A_ROW:
            yield from self._once("copying", self.worse_than_copying())

    def adopt(self, figures: Mapping[str, Any]) -> None:
        """Take the record of a validation whose weights are the model now."""
        self.score = figures.get("chrf")

    def worse_than_copying(self) -> str | None:
        """A warning if the model scores lower than the untranslated source."""
        copied, score = self.copying.get("chrf"), self.score
        if copied is None or score is None or score >= copied:
            return None
        bleu = f" (BLEU {self.copying['bleu']:.2f})" if "bleu" in self.copying else ""
        return (
            f"Warning: chrF is {score:.2f} up to now, but {copied:.2f}{bleu} if the source is left untranslated: the model has learned "
            "less than to copy. Train longer, or on more text."
        )

    def _once(self, symptom: str, message: str | None) -> Iterator[str]:
        if message is not None and symptom not in self.said:
            self.said.append(symptom)
            yield message
