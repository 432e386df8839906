"""What to tell a user of a training: before it of text, vocabulary and model, after a validation of what goes wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, product
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nmt.data.columns import Column
from nmt.data.corpus import ParallelCorpus
from nmt.data.filters import first_occurrences
from nmt.data.locators import load_text
from nmt.errors import DataError
from nmt.recipe import HELD_OUT, DataConfig, Recipe, is_chosen
from nmt.runtime.wording import excerpt, perplexity
from nmt.text.marks import marks_warning
from nmt.text.subwords import UNK, Subwords
from nmt.training.losses import Diverged
from nmt.training.preparation import TrainingText

_MIN_OCCURRENCES = 10
"""Mean occurrences of a token in the training text. Down to 11, larger vocabularies translate better (recipes/NOTES.md)."""
_MAX_PARAMETERS = 100
"""Parameters per target token of the training text."""
_SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
"""Vocabulary sizes to suggest."""
_PRESETS = (("medium", 60_000, 256), ("small", 0, 128))
"""Recipes whose widths to suggest, largest first: the number of pairs from which each is suitable, and the width of its embeddings."""
_NOTABLE_SHARE = 0.01
"""The share from which on source sides of a held-out text that were trained on, and characters that subwords lack, are worth a warning."""
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
"""Validations in a row that show it."""


def text_warnings(data: DataConfig, text: TrainingText) -> Iterator[str]:
    """What to know of the text of a new run: what is held out, leaks, repetitions, other conventions."""
    if text.valid.name.endswith(HELD_OUT):
        yield (
            f"Kept back for validation: {len(text.valid):,} of the {len(text.train) + len(text.valid):,} pairs of "
            f"{text.valid.name.removesuffix(HELD_OUT)}, the same in every run. --valid (data.valid) names another text."
        )
    warnings = [overlap_warning(data, text), duplicates_warning(data, text.train), *convention_warnings(text)]
    for part in chain(*(corpus.parts or [corpus] for corpus in (text.train, text.valid))):
        marks = marks_warning(_sample(part.source) + _sample(part.target), part.name)
        warnings += [shift_warning(part), marks and f"Warning: {marks}"]
    yield from dict.fromkeys(filter(None, warnings))


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
    if _learns_subwords(recipe) and subwords.kind in ("unigram", "bpe") and not is_chosen(recipe, "subwords.size"):
        sides = zip(size.tokens, size.vocabulary, strict=True)
        rarest = min(sides, key=lambda side: side[0] / side[1])
        tokens, vocabulary = (sum(size.tokens), size.vocabulary[0]) if subwords.joint else rarest
        if tokens < _MIN_OCCURRENCES * vocabulary and vocabulary > _SIZES[0]:
            problems.append(f"a vocabulary of {vocabulary:,} tokens ({tokens / vocabulary:.1f} occurrences each)")
            suitable = [size for size in _SIZES if size * _MIN_OCCURRENCES <= tokens]
            remedies.append(f"subwords.size={max(suitable, default=_SIZES[0])}")
    per_token = size.parameters / max(size.tokens[1], 1)
    preset, width = next((name, width) for name, pairs, width in _PRESETS if size.pairs >= pairs)
    is_narrow = recipe.model.embedding <= width or is_chosen(recipe, "model.embedding")
    # a pretrained model has learned its parameters elsewhere
    if pretrained is None and per_token > _MAX_PARAMETERS and not is_narrow:
        problems.append(f"a model of {size.parameters / 1e6:.1f} M parameters ({per_token:.0f} per target token)")
        remedies.append(f"the widths of the recipe {preset}")
    if not problems:
        return None
    subject, verb = " and ".join(problems), "is" if len(problems) == 1 else "are"
    return f"A{subject[1:]} {verb} too much for {size.pairs:,} pairs. Try {' and '.join(remedies)}."


def _learns_subwords(recipe: Recipe) -> bool:
    """Whether the subwords are trained on the text of the recipe."""
    pretrained = recipe.training.pretrained
    return recipe.subwords.source_model is None and (pretrained is None or pretrained.subwords == "new")


# --- subwords from elsewhere ------------------------------------------------------------------------------------


def subword_warnings(recipe: Recipe, train: ParallelCorpus, subwords: tuple[Subwords, Subwords]) -> Iterator[str]:
    """A warning for each side whose subwords, trained elsewhere, lack characters of the text or do not give its lines back."""
    if _learns_subwords(recipe):
        return
    is_given = recipe.training.pretrained is None
    new = "leave out subwords.source_model and target_model" if is_given else "set training.pretrained.subwords=new"
    for side, model in zip(("source", "target"), subwords, strict=True):
        lines = _sample(getattr(train.untagged, side))
        characters = Counter("".join("".join(lines).split()))
        lacking = Counter({letter: characters[letter] for letter in model.unknown_characters("".join(characters))})
        texts = [
            line if UNK in ids else model.decode(ids)
            for line, ids in zip(lines, model.encode_batch(lines), strict=True)
        ]
        changed = [pair for pair in zip(lines, texts, strict=True) if pair[0] != pair[1]]
        faults = []
        if lacking.total() > _NOTABLE_SHARE * characters.total():
            examples = ", ".join(letter for letter, _ in lacking.most_common(5))
            faults.append(f"lack {lacking.total() / characters.total():.0%} of its characters ({examples})")
        if changed:
            example = " becomes ".join(excerpt(text, _WIDTH) for text in changed[0])
            faults.append(f"do not give {len(changed) / len(lines):.1%} of its lines back ({example})")
        if faults:
            yield f"Warning: the subwords of the {side} text {' and '.join(faults)}. For subwords that suit it, {new}."


# --- text that repeats itself -----------------------------------------------------------------------------------


def overlap_warning(data: DataConfig, text: TrainingText) -> str | None:
    """A warning of lines of `data.valid` and `data.test` that are also in `data.train`; None if these are few.

    Lines are compared by their source side. It takes the memory of the held-out text, however large the training text is.
    """
    held_out = {"data.valid": text.valid}
    if data.test is not None:
        with suppress(DataError):  # it cannot be read, or would have to be fetched
            held_out["data.test"] = load_text(data, data.test, fetch=False)
    train = text.train.untagged.source
    findings = []
    for name, corpus in held_out.items():
        sources = corpus.untagged.source
        trained = train.among(sources)
        common = [row for row, source in enumerate(sources) if source in trained]
        if common and len(common) >= _NOTABLE_SHARE * len(corpus):
            example = _example(common[0], sources[common[0]])
            findings.append(f"{len(common):,} of the {len(corpus):,} source lines of {name} (such as {example})")
    if not findings:
        return None
    return f"Warning: data.train also has {' and '.join(findings)}. Scores on text that was trained on are too high."


def duplicates_warning(data: DataConfig, train: ParallelCorpus) -> str | None:
    """A warning of pairs of `data.train` that repeat an earlier one and are not filtered; None if these are few."""
    if not data.filters.duplicates or not len(train):
        return None
    text, total = train.untagged, len(train)
    # Pairs with an empty side are left out anyway.
    pairs = (pair if all(pair) else (str(row), "") for row, pair in enumerate(text.pairs()))
    first = first_occurrences(pairs, total)
    repetitions = total - int(np.count_nonzero(first))
    if repetitions < _NOTABLE_REPETITION * total:
        return None
    row = int(np.argmin(first))
    return (
        f"Warning: {repetitions:,} ({repetitions / total:.0%}) of the {total:,} pairs of data.train repeat an earlier one (such as "
        f"{_example(row, text.source[row])}). data.filters.duplicates=false keeps one of each."
    )


# --- sides that are shifted against each other -------------------------------------------------------------------


def shift_warning(corpus: ParallelCorpus) -> str | None:
    """A warning if the lengths of lines correlate clearly better with those of lines before or after their own; else None.

    The height of a correlation would not do: it depends on the languages and on the kind of text.
    """
    shifted, most = [], 3  # the most lines of a shift
    blocks = range(0, len(corpus), max(len(corpus) // 100, 1000))
    for start in blocks:
        lines = (side[start : start + 1000] for side in (corpus.source, corpus.target))
        source, target = (np.log1p([len(line) for line in side]) for side in lines)
        if len(source) < _FEWEST:
            continue
        windows = sliding_window_view(source, len(source) - 2 * most)  # one for each shift
        with np.errstate(invalid="ignore", divide="ignore"):  # all of one length
            correlations = np.nan_to_num(np.corrcoef(windows, target[most:-most])[-1, :-1])
        now, best = correlations[most], correlations.max()
        margin = 6 * (2 / (windows.shape[1] - 3)) ** 0.5  # standard deviations of a difference of Fisher's z
        if best > now + 0.2 and np.arctanh(min(best, 0.999)) > np.arctanh(max(now, -0.999)) + margin:
            shifted.append((start + 1, now, best))
    if len(shifted) <= len(blocks) // 50:  # a few are badly aligned in any large text
        return None
    line, now, best = shifted[0]
    return (
        f"Warning: the sides of {corpus.name} seem to be shifted: from about line {line:,} on, the lengths of lines correlate by "
        f"{now:.2f}, but by {best:.2f} with those some lines away. Line n of one must translate line n of the other."
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
        lambda line: line == line.lower() if _has_cases(line) else None,
    ),
)


def _has_cases(line: str) -> bool:
    """Whether most letters of a line have two cases, unlike Japanese with a Latin word in it."""
    cased = sum(letter.lower() != letter.upper() for letter in line)
    return 2 * cased > sum(map(str.isalpha, line)) > 0


def convention_warnings(text: TrainingText) -> Iterator[str]:
    """A warning for each side and each convention that training and validation text of a pair of languages follow differently."""
    for languages, valid in text.valid.directions.items():
        if languages not in text.train.directions:
            continue
        train, valid = text.train.directions[languages].untagged, valid.untagged
        sides = zip(languages, (train.source, train.target), (valid.source, valid.target), strict=True)
        for (language, trained, held_out), convention in product(sides, _CONVENTIONS):
            followed = [map(convention.is_followed, _sample(column)) for column in (trained, held_out)]
            answers = [[answer for answer in of_text if answer is not None] for of_text in followed]
            if min(map(len, answers)) < _FEWEST:
                continue
            of_train, of_valid = map(fmean, answers)
            if abs(of_train - of_valid) >= _NOTABLE_DIFFERENCE:
                yield (
                    f"Warning: of the lines in {language}, {of_train:.0%} in {train.name}, but {of_valid:.0%} in {valid.name} "
                    f"{convention.description}. {convention.advice}"
                )


def _sample(lines: Column) -> list[str]:
    """Some lines from all of a text, the same every time."""
    return lines.take(sorted(Random(1).sample(range(len(lines)), min(len(lines), _COMPARED))))


# --- what validations show ---------------------------------------------------------------------------------------


@dataclass
class Symptoms:
    """Follows the validations of a run: does it diverge or overfit? The names are those in the state."""

    lowest: float | None = None
    """The lowest perplexity of validation."""
    lowest_in_training: float | None = None
    """The perplexity of training before it; None if nothing was trained."""
    lowest_at: int = 0
    """Its update."""
    risen: int = 0
    """Validations in a row that are clearly above it."""
    said: list[str] = field(default_factory=list)
    """The symptoms that were said."""

    def state_dict(self) -> dict[str, Any]:
        """What is known of the validations so far, and what was said."""
        return {"symptoms": dict(vars(self))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`."""
        vars(self).update(state["symptoms"])

    def of_validation(self, figures: Mapping[str, Any]) -> Iterator[str]:
        """What the record of the next validation shows, one message for each symptom that was not said before."""
        current, now = figures["perplexity"], figures.get("train_perplexity")
        if self.lowest is None or current < self.lowest:
            self.lowest, self.lowest_in_training, self.lowest_at = current, now, figures["update"]
        lowest, before = self.lowest, self.lowest_in_training
        has_learned = before is not None and now is not None and now < before
        self.risen = self.risen + 1 if has_learned and current > _RISE * lowest else 0
        if not has_learned and current > _EXPLOSION * lowest and "divergence" not in self.said:
            self.said.append("divergence")
            yield f"{Diverged.verdict}: perplexity is above {_EXPLOSION} times the best. {Diverged.advice}"
        if self.risen == _IN_A_ROW and "overfitting" not in self.said:
            self.said.append("overfitting")
            yield (
                f"Warning: the model overfits. Since update {self.lowest_at:,} the perplexity of validation has risen from "
                f"{perplexity(lowest)} to {perplexity(current)}, while that of training (with dropout, without label "
                f"smoothing) has fallen from {perplexity(before or 0)} to {perplexity(now or 0)}. More dropout, fewer updates or "
                "more text, such as back-translation, would help."
            )
