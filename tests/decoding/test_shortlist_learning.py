"""Shortlists that are learned from text."""

from __future__ import annotations

import random

import pytest

from nmt.alignment.statistical.ibm1 import TranslationTable, learn_counts
from nmt.alignment.statistical.word_pairs import Cells
from nmt.decoding import shortlist_learning
from nmt.decoding.shortlist_learning import learn_shortlist
from nmt.errors import DataError
from nmt.text.subwords import EOS, UNK, Subwords

WORDS = {"red": "rot", "dog": "hund", "cat": "katze", "sees": "sieht", "the": "die", "big": "gross", "42": "42"}


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    draw = random.Random(2)
    sources = [draw.sample(list(WORDS), k=draw.randint(2, 4)) for _ in range(200)]
    return [(" ".join(words), " ".join(WORDS[word] for word in words)) for words in sources]


@pytest.fixture(scope="module")
def sides(pairs: list[tuple[str, str]]) -> list[Subwords]:
    return [Subwords.train(lines, kind="word", size=11, byte_fallback=False) for lines in zip(*pairs, strict=True)]


def listed(
    sides: list[Subwords], pairs: list[tuple[str, str]], word: str, *, candidates: int, frequent: int
) -> list[str]:
    """What a word may become, but for the end mark and the unknown token."""
    import torch

    shortlist = learn_shortlist(pairs, *sides, candidates=candidates, frequent=frequent)
    own, _ = shortlist.own_tokens(torch.tensor([sides[0].encode(word)]))
    ids = sorted([*shortlist.shared.tolist(), *own.tolist()])
    assert {UNK, EOS} <= set(ids)
    return [sides[1].decode([index]) for index in ids if index not in (UNK, EOS)]


def test_the_best_candidate_of_a_word_is_its_translation(pairs: list[tuple[str, str]], sides: list[Subwords]) -> None:
    for word, translation in WORDS.items():
        assert listed(sides, pairs, word, candidates=1, frequent=0) == [translation]
        assert translation in listed(sides, pairs, word, candidates=3, frequent=0)


def test_words_that_are_spelled_alike_are_copied_and_frequent_ones_always_listed(
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

    def watched(cells: Cells) -> TranslationTable:
        read.append(sum(len(group.rows) for group in cells.groups))
        return learn_counts(cells)

    monkeypatch.setattr(
        shortlist_learning, "MAX_CELLS", sum((len(x.split()) + 1) * len(y.split()) for x, y in pairs) // 3
    )
    monkeypatch.setattr(shortlist_learning, "learn_counts", watched)
    learn_shortlist(pairs, *sides, candidates=2, frequent=2)
    assert read == [50]


def test_no_text_is_an_error(sides: list[Subwords]) -> None:
    with pytest.raises(DataError, match="no text to learn a shortlist from"):
        learn_shortlist([], *sides, candidates=1, frequent=1)
