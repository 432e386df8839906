"""Pairs in, alignments and links out: one for each, in order, a window at a time."""

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from nmt.alignment.extraction import ALIGNER_SHARE, AlignedPair, Extraction
from nmt.alignment.links import argmax_links, flip
from nmt.alignment.statistical.aligner import HMMAligner
from nmt.alignment.symmetrization import mutual_weights
from nmt.bundle.folder import Bundle
from nmt.decoding.forced_alignment import ForcedAligner, align_pairs
from nmt.decoding.translator import Translator
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe

PAIRS = [("the dog sees a cat", "a cat sleeps"), ("a cat", "the old dog sleeps here"), ("a dog", "a"), ("the", "a dog")]


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)


def forced_aligner(subwords: Subwords, *, seed: int = 1, window: int = 500, **options: Any) -> ForcedAligner:
    recipe = small_recipe(dropout=0.0).model_copy(update={"seed": seed})
    bundle = Bundle.fresh(recipe, subwords, subwords)
    with torch.no_grad():
        for parameter in bundle.model.parameters():
            parameter.mul_(3)  # so that rows are not all flat
    return ForcedAligner(bundle, Translator([bundle], window=window), **options)


def align(pairs: list[tuple[str, str]], *aligners: ForcedAligner, longest: int = 500, **rule: Any) -> list[AlignedPair]:
    extraction = Extraction(**rule)
    return list(align_pairs(pairs, *aligners, extraction=extraction, longest=longest))


def test_every_pair_is_answered_in_order_whatever_the_window(subwords: Subwords) -> None:
    pairs = [pair for length in (1, 4, 7) for pair in [(" ".join(["dog"] * length), "a cat"), *PAIRS]]
    expected = align(pairs, forced_aligner(subwords))
    for one, pair in zip(expected, pairs, strict=True):
        assert (" ".join(one.alignment.source), " ".join(one.alignment.target)) == pair
        assert one.links == argmax_links(one.alignment.weights)
    for small in (1, 3):
        results = align(
            pairs, forced_aligner(subwords, window=small), forced_aligner(subwords, window=small), joining="union"
        )
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_allclose(one.alignment.weights, other.alignment.weights, atol=1e-5)
            assert one.links >= other.links


def test_both_directions_together_are_each_of_them_alone(subwords: Subwords) -> None:
    one, other = forced_aligner(subwords, seed=1), forced_aligner(subwords, seed=2)
    forward = [pair.links for pair in align(PAIRS, one)]
    backward = [flip(pair.links) for pair in align([(target, source) for source, target in PAIRS], other)]
    both = [pair.links for pair in align(PAIRS, one, other, joining="union")]
    assert both == [mine | theirs for mine, theirs in zip(forward, backward, strict=True)]
    assert forward != backward


def test_a_line_in_which_the_models_see_other_words_has_the_links_of_the_first(
    subwords: Subwords, caplog: pytest.LogCaptureFixture
) -> None:
    spelling = Subwords.train(TEXT, kind="char", size=280, byte_fallback=True)
    pairs = [PAIRS[0], ("犬猫犬", "a cat"), PAIRS[1]]  # one token to a model that does not know the characters
    forward, backward = forced_aligner(subwords), forced_aligner(spelling, seed=2)
    alone = [pair.links for pair in align(pairs, forward)]
    for joining, others_differ in (("mean", False), ("intersection", True)):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            results = [pair.links for pair in align(pairs, forward, backward, joining=joining)]
        message = "Line 2: the two models split it into different words, so only the first model is used."
        assert message in caplog.messages
        assert results[1] == alone[1]
        assert (results != alone) is others_differ


def test_a_word_aligner_is_averaged_with_one_model_or_two(subwords: Subwords) -> None:
    aligner = HMMAligner.learn(PAIRS * 5)
    models = [forced_aligner(subwords, seed=seed) for seed in (1, 2)]
    for chosen in (models[:1], models):
        extraction = Extraction("mutual", joining="geometric")
        alone = align_pairs(PAIRS, *chosen, extraction=extraction, longest=500)
        joined = list(align_pairs(PAIRS, *chosen, extraction=extraction, longest=500, aligner=aligner))
        for one, other, confidences in zip(alone, joined, aligner.weights(PAIRS), strict=True):
            own = mutual_weights(one.alignment.weights) if len(chosen) == 1 else one.alignment.weights
            expected = (1 - ALIGNER_SHARE) * own + ALIGNER_SHARE * confidences
            np.testing.assert_allclose(other.alignment.weights, expected, atol=1e-6)


def test_an_aligner_of_other_words_is_not_used(
    subwords: Subwords, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HMMAligner, "weights", lambda aligner, pairs: iter([np.zeros((9, 9))]))
    other = HMMAligner.learn(PAIRS)
    with caplog.at_level(logging.WARNING):
        [aligned] = align_pairs(PAIRS[:1], forced_aligner(subwords), extraction=Extraction(), aligner=other)
    assert aligned.links == align(PAIRS[:1], forced_aligner(subwords))[0].links
    assert caplog.messages == ["Line 1: the aligner splits it into other words than the model, so it is not used."]


@pytest.mark.parametrize("directions", [1, 2])
def test_no_more_than_a_window_is_read_ahead(subwords: Subwords, directions: int) -> None:
    taken = 0

    def endless() -> Iterator[tuple[str, str]]:
        nonlocal taken
        while True:
            taken += 1
            yield "a dog", "a cat"

    aligners = [forced_aligner(subwords, window=4) for _ in range(directions)]
    aligned = align_pairs(endless(), *aligners, extraction=Extraction(), longest=500)
    assert len(list(islice(aligned, 9))) == 9
    assert taken <= 12


def test_lines_that_can_have_no_links_are_named_and_keep_their_place(
    subwords: Subwords, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = [PAIRS[0], ("", "a dog"), ("a dog", " \t"), ("\x00", ""), ("a " * 100, "a"), ("a", "a " * 100), PAIRS[0]]
    with caplog.at_level(logging.WARNING):
        results = align([*pairs, *[("", "")] * 10], forced_aligner(subwords), forced_aligner(subwords), longest=60)[:7]
    assert [bool(pair.links) for pair in results] == [True, *[False] * 5, True]
    assert [len(pair.alignment.target) for pair in results] == [3, 2, 0, 0, 0, 0, 3]
    assert [record.getMessage() for record in caplog.records] == [
        "Line 2 has a blank side: it gets no links.",
        "Line 3 has a blank side: it gets no links.",
        "Line 4 has a blank side: it gets no links.",
        "Line 5 has 200 tokens, more than 60: it gets no links.",
        "Line 6 has 200 tokens, more than 60: it gets no links.",
        *(f"Line {number} has a blank side: it gets no links." for number in range(8, 13)),
        "15 lines in all get no links.",
    ]
