"""IBM model 1 against straight-line loops, and the shortlists that are learnt from it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest

from nmt.aligning import shortlist
from nmt.aligning.model1 import learn_counts
from nmt.aligning.shortlist import learn_shortlist
from nmt.data.subwords import EOS, UNK, Subwords
from nmt.errors import DataError, UsageError

WORDS = {"red": "rot", "dog": "hund", "cat": "katze", "sees": "sieht", "the": "die", "big": "gross", "42": "42"}


def reference(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], rounds: int) -> dict[tuple[int, int], float]:
    """Brown et al. 1993, model 1, in loops; the empty word is 0."""
    probability: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    count: dict[tuple[int, int], float] = {}
    for _ in range(rounds):
        count, of_source = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for y in target:
                total = sum(probability[x, y] for x in (0, *source))
                for x in (0, *source):
                    count[x, y] += probability[x, y] / total
                    of_source[x] += probability[x, y] / total
        probability = defaultdict(float, {(x, y): value / of_source[x] for (x, y), value in count.items()})
    return count


@pytest.mark.parametrize("rounds", [1, 4])
def test_counts_are_those_of_the_loops(rounds: int) -> None:
    draw = random.Random(1)
    pairs = [
        (
            [draw.randint(4, 12) for _ in range(draw.randint(0, 5))],
            [draw.randint(4, 9) for _ in range(draw.randint(0, 5))],
        )
        for _ in range(40)
    ]
    found = learn_counts([x for x, _ in pairs], [y for _, y in pairs], empty=0, rounds=rounds)
    wanted = reference(pairs, rounds)
    assert len(wanted) > 40
    assert dict(zip(zip(found.source, found.target, strict=True), found.count, strict=True)) == pytest.approx(wanted)


def test_no_text_has_no_counts() -> None:
    assert len(learn_counts([[4]], [[]], empty=0).count) == 0


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    draw = random.Random(2)
    sources = [draw.sample(list(WORDS), k=draw.randint(2, 4)) for _ in range(200)]
    return [(" ".join(words), " ".join(WORDS[word] for word in words)) for words in sources]


@pytest.fixture(scope="module")
def sides(pairs: list[tuple[str, str]]) -> list[Subwords]:
    return [Subwords.train(lines, kind="word", size=11, byte_fallback=False) for lines in zip(*pairs, strict=True)]


def listed(sides: list[Subwords], pairs: list[tuple[str, str]], word: str, **options: int) -> list[str]:
    """What a word may become, but for the end mark and the unknown piece."""
    import torch

    made = learn_shortlist(pairs, *sides, **options)
    ids = made.pieces(torch.tensor([sides[0].encode(word)])).tolist()
    assert {UNK, EOS} <= set(ids)
    return [sides[1].decode([index]) for index in ids if index not in (UNK, EOS)]


def test_the_best_candidate_of_a_word_is_its_translation(pairs: list[tuple[str, str]], sides: list[Subwords]) -> None:
    for word, translation in WORDS.items():
        assert listed(sides, pairs, word, candidates=1, frequent=0) == [translation]
        assert translation in listed(sides, pairs, word, candidates=3, frequent=0)


def test_words_that_are_spelt_alike_are_copied_and_frequent_ones_always_listed(
    pairs: list[tuple[str, str]], sides: list[Subwords]
) -> None:
    assert listed(sides, pairs, "42", candidates=0, frequent=0) == ["42"]
    assert listed(sides, pairs, "dog", candidates=0, frequent=0) == []
    many = [*pairs, *[("red", "rot")] * 500]
    assert listed(sides, many, "dog", candidates=0, frequent=1) == ["rot"]
    assert len(listed(sides, pairs, "dog", candidates=0, frequent=99)) == len(WORDS)


def test_a_long_text_is_thinned_out_evenly(
    pairs: list[tuple[str, str]], sides: list[Subwords], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(shortlist, "MOST_CELLS", sum((len(x.split()) + 1) * len(y.split()) for x, y in pairs) // 3)
    monkeypatch.setattr(
        shortlist, "learn_counts", lambda x, y, empty: read.append((len(x), len(y))) or learn_counts(x, y, empty=empty)
    )
    learn_shortlist(pairs, *sides, candidates=2, frequent=2)
    assert read == [(50, 50)]


def test_impossible_requests_are_refused_in_a_sentence(pairs: list[tuple[str, str]], sides: list[Subwords]) -> None:
    with pytest.raises(UsageError, match="candidates must be at least 0, but is -1"):
        learn_shortlist(pairs, *sides, candidates=-1, frequent=0)
    with pytest.raises(UsageError, match="frequent must be at least 0, but is -2"):
        learn_shortlist(pairs, *sides, candidates=0, frequent=-2)
    with pytest.raises(DataError, match="no text to learn a shortlist from"):
        learn_shortlist([], *sides, candidates=1, frequent=1)
