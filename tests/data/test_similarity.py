"""Pairs like the validation text: cross-entropy differences by n-grams of characters, and how often an epoch shows a pair."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import profile
from nmt.data.columns import Column, collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.mixture import mix, rows_by_weight
from nmt.data.profile import profile_text
from nmt.data.similarity import MOST, ORDER, CharacterModel, describe_weights, pair_weights, similarities, spellings
from nmt.recipe import parse_recipe

WORDS = ("kato", "hundo", "domo", "arbo", "granda", "vidas")
OTHERS = ("the", "quick", "brown", "wolves", "jumped", "often")


def column(lines: list[str]) -> Column:
    return collect([(lines,)], 1)[0]


def text(words: tuple[str, ...], lines: int, seed: int) -> list[str]:
    random = Random(seed)
    return [" ".join(random.choices(words, k=random.randint(2, 9))) for _ in range(lines)]


def corpus(lines: list[str], languages: tuple[str, str] = ("eo", "xx")) -> ParallelCorpus:
    return ParallelCorpus(column(lines), column([line.upper() for line in lines]), "corpus", languages)


def log_probability(train: list[str], line: str) -> float:
    """The definition, counting as one reads it."""
    pad = "\n" * (ORDER - 1)
    places = [(pad + text + "\n", end) for text in train for end in range(ORDER, ORDER + len(text) + 1)]

    def count(history: str, character: str) -> int:
        gram = history + character
        return sum(text[max(end - len(gram), 0) : end] == gram for text, end in places)

    def seen(history: str) -> int:
        return sum(text[end - 1 - len(history) : end - 1] == history for text, end in places)

    padded, logs = pad + line + "\n", []
    for end in range(ORDER, len(padded) + 1):
        probability = 1 / 256
        for size in range(ORDER):
            history, character = padded[end - 1 - size : end - 1], padded[end - 1]
            probability = (count(history, character) + 2 * probability) / (seen(history) + 2)
        logs.append(math.log(probability))
    return sum(logs) / len(logs)


def test_probabilities_are_those_of_the_definition() -> None:
    train, lines = text(WORDS, 12, seed=1), [*text(WORDS, 4, seed=2), "", "x", "kato " * 40, "domo\U0001f30d"]
    found = CharacterModel(train).log_probabilities(lines)
    assert found == pytest.approx([log_probability(train, line) for line in lines], rel=1e-9)


def test_pairs_like_the_validation_text_are_more_similar() -> None:
    """Half of the training text is of the kind of the validation text."""
    train = corpus([*text(WORDS, 300, seed=1), *text(OTHERS, 300, seed=2)])
    found = similarities(train, corpus(text(OTHERS, 100, seed=3)))
    assert found[300:].min() > found[:300].max()
    assert found[300:].mean() > 0 > found[:300].mean()


def test_a_pair_is_shown_more_often_the_more_similar_it_is() -> None:
    train = corpus([*text(WORDS, 300, seed=1), *text(OTHERS, 100, seed=2)])
    valid = corpus(text(OTHERS, 100, seed=3))
    found = similarities(train, valid)
    weights, stronger = (pair_weights(found, train.ranges, [strength]) for strength in (0.5, 2))
    for each in (weights, stronger):
        assert each.mean() == pytest.approx(1, abs=0.01)
        assert 0 <= each.min() <= each.max() <= MOST
    assert (np.diff(weights[np.argsort(found)]) >= 0).all()
    assert stronger[300:].sum() > weights[300:].sum() > 100


def test_the_log_says_how_unequally_pairs_are_shown() -> None:
    assert "are the 50% of" in describe_weights(np.ones(10))
    assert "are the 20% of" in describe_weights(np.array([1, 1, 3, 1, 3, 1, 1, 1, 0, 0.0]))


def test_each_corpus_of_a_mixture_has_its_own_mean_and_validation_text() -> None:
    """A language that is not validated is left as it is."""
    ours, theirs = corpus(text(WORDS, 50, seed=1)), corpus(text(WORDS, 30, seed=2), ("eo", "yy"))
    train = mix([ours, theirs], [("<2xx>",), ("<2yy>",)])
    found = similarities(train, mix([corpus(text(OTHERS, 20, seed=3))], [("<2xx>",)]))
    weights = pair_weights(found, train.ranges, [1, 1])
    assert len(weights) == 80
    assert weights[:50].mean() == pytest.approx(1, abs=0.01)
    assert weights[:50].std() > 0
    assert weights[50:].tolist() == [1] * 30


def test_without_strength_every_pair_is_shown_once() -> None:
    found, parts = np.array([-3.0, 2.0, 0.5, 1.5]), [range(2), range(2, 2), range(2, 4)]
    assert pair_weights(found, parts, [0, 0, 0]).tolist() == [1, 1, 1, 1]
    uneven = pair_weights(found, parts, [0, 1, 1])
    assert uneven[:2].tolist() == [1, 1]
    assert uneven[2] < 1 < uneven[3]


def test_a_corpus_may_say_how_strongly_its_own_pairs_are_preferred() -> None:
    corpora = ({"corpus": "a", "similarity": 2}, {"corpus": "b", "similarity": 0}, "c")
    data = {"source": "eo", "target": "xx", "train": corpora, "valid": "v", "similarity": 0.5}
    assert parse_recipe({"name": "mix", "data": data}, "mix").data.similarities == [2, 0, 0.5]
    single = parse_recipe({"name": "one", "data": {**data, "train": "a"}}, "one")
    assert single.data.similarities == [0.5]


def test_two_spellings_differ_and_one_does_not() -> None:
    valid = text(OTHERS, 100, seed=3)
    assert spellings([*text(WORDS, 300, seed=1), *text(OTHERS, 300, seed=2)], valid) > 1
    assert spellings(text(OTHERS, 600, seed=2), valid) < 0.2


def test_spellings_of_a_large_text_are_those_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "SAMPLE", 100)
    mixed = [line for pair in zip(text(WORDS, 301, seed=1), text(OTHERS, 301, seed=2), strict=True) for line in pair]
    assert profile_text(corpus(mixed), corpus(text(OTHERS, 100, seed=3))).spellings > 1


@given(
    weights=st.lists(st.floats(0.001, 5), min_size=1, max_size=40), count=st.integers(0, 100), seed=st.integers(0, 9)
)
def test_rows_are_drawn_as_often_as_their_weights_say_rounded_up_or_down(
    weights: list[float], count: int, seed: int
) -> None:
    shares = np.array(weights) / sum(weights) * count
    rows = rows_by_weight(range(7, 7 + len(weights)), count, np.array(weights), np.random.default_rng(seed))
    times = np.bincount(rows, minlength=7 + len(weights))[7:]
    assert len(rows) == count
    assert (abs(times - shares) < 1 + 1e-6).all()
    assert rows.tolist() == sorted(rows)


def test_weights_hold_in_the_mean_of_many_draws() -> None:
    weights = np.array([0.1, 0.4, 1.0, 2.5])
    draws = [rows_by_weight(range(4), 4, weights, np.random.default_rng(seed)) for seed in range(2000)]
    assert np.bincount(np.concatenate(draws)) / 2000 == pytest.approx(weights, abs=0.04)
