"""Minimum Bayes risk decoding takes the sample that is most like all samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from nmt.decoding.minimum_bayes_risk import expected_chrf, most_expected
from nmt.decoding.translator import Translator
from nmt.recipe import DecodingConfig, change_decoding
from nmt.search.hypothesis import Hypothesis, no_alignment
from nmt.search.sampling import Sampling
from tests.decoding.test_translator import LINES, bundle, check_same, translate

TEXTS = st.lists(st.text(alphabet="abc  ", max_size=12), min_size=1, max_size=6)


def ngrams(text: str, n: int) -> list[str]:
    letters = text.replace(" ", "")
    return [letters[start : start + n] for start in range(len(letters) - n + 1)]


def reference(texts: Sequence[str], beta: float) -> dict[str, float]:
    """Count vectors over all n-grams of each n, in NumPy."""
    ratios: dict[str, list[tuple[float, float]]] = {text: [] for text in texts}
    for n in range(1, 7):
        keys = sorted({key for text in texts for key in ngrams(text, n)})
        counts = np.array([[ngrams(text, n).count(key) for key in keys] for text in texts]).reshape(len(texts), -1)
        mean = counts.mean(axis=0)
        for text, row in dict(zip(texts, counts, strict=True)).items():
            if row.sum():
                overlap = np.minimum(row, mean).sum()
                ratios[text].append((overlap / row.sum(), overlap / mean.sum()))
    scores = {}
    for text, pairs in ratios.items():
        precision, recall = np.mean(pairs, axis=0) if pairs else (0.0, 0.0)
        weighted = beta**2 * precision + recall
        scores[text] = (1 + beta**2) * precision * recall / weighted if weighted else 0.0
    return scores


@given(TEXTS, st.sampled_from([0.5, 1.0, 2.0]))
def test_expected_chrf_is_that_of_the_equation(texts: list[str], beta: float) -> None:
    assert expected_chrf(texts, beta) == pytest.approx(reference(texts, beta))


LONG = st.text(alphabet="abc", min_size=6, max_size=20)
"""Texts with n-grams of all orders: against the mean of several texts, an order counts that any of them has."""


@given(LONG, LONG)
def test_against_one_text_it_is_the_chrf_of_sacrebleu(text: str, other: str) -> None:
    """With many copies of `other`, the mean counts are nearly its own."""
    expected = CHRF().sentence_score(text, [other]).score / 100
    assert expected_chrf([text, *[other] * 999])[text] == pytest.approx(expected, abs=0.02)


def drawn(*texts: str) -> list[tuple[Hypothesis, str]]:
    return [
        (Hypothesis((number,), -1.0, -1.0, (-1.0,), no_alignment(), True), text) for number, text in enumerate(texts)
    ]


def test_the_text_most_like_all_wins_and_each_is_returned_once() -> None:
    samples = drawn("the cat sat", "a cat sat", "the cat sat", "the cat sits", "dogs")
    ranked = most_expected(samples, 3, 2.0)
    assert [text for _, text in ranked] == ["the cat sat", "the cat sits", "a cat sat"]
    assert ranked[0][0].ids == (0,)


def test_translations_are_samples_in_the_order_of_expected_chrf() -> None:
    samples = translate([bundle()], sampling=Sampling(temperature=0.6), n_best=8)
    most_like_all = translate([bundle()], mbr_samples=8, mbr_temperature=0.6, n_best=3)
    for all_of_line, best in zip(samples, most_like_all, strict=True):
        scores = expected_chrf([item.text for item in all_of_line.hypotheses])
        texts = [item.text for item in best.hypotheses]
        assert texts[0] in scores
        assert scores[texts[0]] == max(scores.values())
        assert len(texts) == min(3, len(scores))
        first = next(item for item in all_of_line.hypotheses if item.text == texts[0])
        assert best.hypotheses[0].score == pytest.approx(first.score, abs=1e-5)
        assert best.hypotheses[0].alignment.shape == first.alignment.shape


def test_a_beam_size_asks_for_beam_search() -> None:
    own = DecodingConfig(mbr_samples=16)
    assert change_decoding(own, {"beam_size": 3}, "Options") == DecodingConfig(beam_size=3)
    assert change_decoding(own, {"length_penalty": 0.5}, "Options").mbr_samples == 16
    both = change_decoding(own, {"beam_size": 3, "mbr_samples": 8}, "Options")
    assert (both.beam_size, both.mbr_samples) == (3, 8)
    usual, beam = Translator([bundle()], mbr_samples=4), Translator([bundle()])
    assert (usual.ranks_by_risk, usual.with_options(beam_size=3).ranks_by_risk, beam.ranks_by_risk) == (
        True,
        False,
        False,
    )
    for one, other in zip(usual.translate(LINES, beam_size=3), beam.translate(LINES), strict=True):
        check_same(one, other)
