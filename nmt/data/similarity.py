"""How like the validation text pairs are: the cross-entropy difference of Moore and Lewis (2010), on both sides (Axelrod et al. 2011).

By n-grams of characters, which tell apart domains and also spellings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import ParallelCorpus

ORDER = 5
"""Characters of an n-gram."""
_ORDER_OF_SPELLINGS = 2
"""Shorter n-grams know how words are spelled, not which there are."""
_PRIOR = 2.0
"""Occurrences that the estimate of one character less counts for."""
MOST = 5.0
"""How often an epoch shows a pair at most."""
_BUCKETS = 20
"""Bits of the number of an n-gram; different ones may share a number."""
_MOST_LINES = 20_000
"""Most lines that a model is estimated on."""
_NEUTRAL = 10
"""Characters that are added to each line, equally likely by both models."""
_BATCH = 10_000
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


class CharacterModel:
    """A language model of characters: an interpolated n-gram model with a Dirichlet prior (MacKay and Peto 1995).

    p(c | h) = (count(h c) + m p(c | h')) / (count(h) + m), where h' is h without its first character, and m is `_PRIOR`.
    """

    def __init__(self, lines: Sequence[str], order: int = ORDER) -> None:
        text = _Characters(lines)
        self._counts = [
            tuple(np.bincount(numbers[text.is_own], minlength=1 << _BUCKETS) for numbers in grams)
            for grams in islice(text.grams(), order)
        ]

    def log_probabilities(self, lines: Sequence[str]) -> Floats:
        """The mean log-probability of a character of each line, its end included, in nats."""
        text = _Characters(lines)
        probabilities: Floats = np.full(len(text.codes), 1 / 256)
        for (counts, history_counts), (grams, histories) in zip(self._counts, text.grams(), strict=False):
            probabilities = (counts[grams] + _PRIOR * probabilities) / (history_counts[histories] + _PRIOR)
        sums = np.add.reduceat(np.where(text.is_own, np.log(probabilities), 0.0), text.starts)
        return sums / text.lengths


class _Characters:
    """The characters of lines, with an end mark after each and as many before the first as a history needs."""

    def __init__(self, lines: Sequence[str]) -> None:
        pad = "\n" * (ORDER - 1)
        text = "".join(f"{pad}{line}\n" for line in lines)
        self.codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        self.lengths = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
        self.starts = np.cumsum(self.lengths + len(pad)) - (self.lengths + len(pad))
        self.is_own = np.ones(len(self.codes), bool)
        self.is_own[(self.starts[:, None] + np.arange(len(pad))).ravel()] = False

    def grams(self) -> Iterator[tuple[Numbers, Numbers]]:
        """The number of the n-gram that ends with each character, and that of the n-gram without this character, for n from 1."""
        hashed = np.zeros(len(self.codes), np.uint64)
        histories: Numbers = np.zeros(len(self.codes), np.int64)
        for size in range(ORDER):
            hashed = (hashed ^ np.roll(self.codes, size)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(size)
            hashed ^= hashed >> np.uint64(29)
            grams = (hashed * np.uint64(0x94D049BB133111EB) >> np.uint64(64 - _BUCKETS)).astype(np.int64)
            yield grams, histories
            histories = np.roll(grams, 1)


def similarities(train: ParallelCorpus, valid: ParallelCorpus) -> Floats:
    """How much likelier a character of each pair is by a model of the validation text than by one of as much training text.

    The sum of both sides, in nats, by the validation text of the same languages; 0 if there is none.
    """
    held_out = {languages: part.untagged for languages, part in valid.directions.items()}
    return np.concatenate(
        [
            _of_pairs(part, held_out[part.languages])
            if part.languages in held_out and len(part)
            else np.zeros(len(part))
            for part in train.parts or [train]
        ]
    )


def spellings(lines: Sequence[str], held_out: Sequence[str]) -> float:
    """How differently the target side of a training text is spelled, in nats per character.

    The interquartile range of similarities by bigrams. Short lines tell little, so they count less.
    """
    models = _models(lines, held_out, _ORDER_OF_SPELLINGS)
    batches = (lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH))
    lengths = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
    low, high = np.quantile(_differences(batches, models) * lengths / (lengths + _NEUTRAL), (0.25, 0.75))
    return float(high - low)


def pair_weights(similarity: Floats, parts: Sequence[range], strengths: Sequence[float]) -> Floats:
    """How often an epoch shows each pair: in proportion to exp(strength x similarity), at most `MOST` times, once in the mean of a part."""
    own = zip(parts, strengths, strict=True)
    return np.concatenate([_weights(similarity[part.start : part.stop], strength) for part, strength in own])


def describe_weights(weights: Floats) -> str:
    """One sentence on how unequally pairs are shown."""
    shown = np.cumsum(np.sort(weights)[::-1])
    share = (np.searchsorted(shown, shown[-1] / 2) + 1) / len(weights)
    return f"Half of an epoch are the {share:.0%} of the pairs that are most like the validation text."


def _of_pairs(train: ParallelCorpus, valid: ParallelCorpus) -> Floats:
    sides = (train.source, valid.source), (train.target, valid.target)
    source, target = (_differences(lines.batches(), _models(lines, like, ORDER)) for lines, like in sides)
    return source + target


def _differences(batches: Iterable[Sequence[str]], models: tuple[CharacterModel, CharacterModel]) -> Floats:
    """The differences of the log-probabilities of all lines."""
    return np.concatenate([np.subtract(*(model.log_probabilities(batch) for model in models)) for batch in batches])


def _models(lines: Sequence[str], held_out: Sequence[str], order: int) -> tuple[CharacterModel, CharacterModel]:
    """A model of the validation text, and one of random training lines with about as many characters."""
    like = [held_out[row] for row in range(0, len(held_out), -(-len(held_out) // _MOST_LINES))]
    rows = np.random.default_rng(0).choice(len(lines), min(len(lines), _MOST_LINES), replace=False)
    sample = [lines[row] for row in rows.tolist()]
    ends = np.cumsum([len(line) + 1 for line in sample])
    count = int(np.searchsorted(ends, sum(len(line) + 1 for line in like))) + 1
    return CharacterModel(like, order), CharacterModel(sample[:count], order)


def _weights(similarity: Floats, strength: float) -> Floats:
    """In proportion to exp(strength x similarity), 1 in the mean and at most `MOST`."""
    if not len(similarity):
        return similarity
    weights: Floats = np.exp(strength * (similarity - similarity.max()))
    for _ in range(20):  # cutting lowers the mean, and scaling exceeds the limit again: less every time
        weights = np.minimum(weights / weights.mean(), MOST)
    return weights
