"""Words out of tokens and entropy, against values worked out by hand."""

from math import log

import numpy as np
import pytest
from numpy.typing import ArrayLike

from nmt.alignment.weights import Alignment, between_words, entropy
from nmt.errors import DataError


def random_rows(targets: int, sources: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(sources), size=targets)


# --- the carrier ------------------------------------------------------------------------------------------------


def test_alignment_keeps_a_copy_of_its_weights_that_cannot_change() -> None:
    weights = np.array([[0.25, 0.75]])
    alignment = Alignment(weights, ("a", "b"), ("c",))
    weights[0, 0] = 9
    assert alignment.weights.tolist() == [[0.25, 0.75]]
    with pytest.raises(ValueError, match="read-only"):
        alignment.weights[0, 0] = 1


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [([[1.0, 0.0]], r"\(2, 1\)"), ([[-0.1], [0.1]], "negative"), ([[np.nan], [0.1]], "finite")],
)
def test_alignment_refuses_what_is_no_weight_matrix(weights: list[list[float]], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Alignment(np.array(weights), ("a",), ("b", "c"))


def test_links_become_weights_of_one_between_words_or_the_characters_of_unspaced_text() -> None:
    expected = Alignment(np.array([[0.0, 1.0], [1.0, 0.0]]), ("red", "dog"), ("hund", "rot"))
    assert Alignment.of_links("red dog", "hund rot", {(0, 1), (1, 0)}) == expected
    assert Alignment.of_links(["red", "dog"], ["hund", "rot"], "0-1 1?0") == expected
    assert Alignment.of_links("a", "赤い犬", "").target == ("赤", "い", "犬")
    with pytest.raises(DataError, match="2-0 lies beyond the sentences, which have 2 source"):
        Alignment.of_links("red dog", "hund rot", "2-0")


# --- merging ----------------------------------------------------------------------------------------------------


def merged(weights: ArrayLike, source_word_of: list[int], target_word_of: list[int]) -> np.ndarray:
    source, target = ((tuple("abcde"[: max(word_of) + 1]), word_of) for word_of in (source_word_of, target_word_of))
    return between_words(weights, source, target).weights


def test_merging_agrees_with_loops_over_scattered_tokens() -> None:
    weights, source_word_of, target_word_of = random_rows(6, 5), [2, 0, -1, 2, 1], [1, 0, 1, -1, 0, 2]
    expected = np.zeros((3, 3))
    for word in range(3):
        rows = [row for row, row_word in zip(weights, target_word_of, strict=True) if row_word == word]
        for row in rows:
            for weight, source_word in zip(row, source_word_of, strict=True):
                if source_word >= 0:
                    expected[word, source_word] += weight / len(rows)
    np.testing.assert_allclose(merged(weights, source_word_of, target_word_of), expected)
    whole = merged(weights, [0, 0, 1, 2, 2], [0, 1, 1, 2, 3, 3])
    np.testing.assert_allclose(whole.sum(axis=1), 1)  # rows that sum to one still do


def test_end_marks_are_dropped_with_their_weight_and_words_without_tokens_are_zeros() -> None:
    assert merged([[0.3, 0.3, 0.4], [0.0, 0.0, 1.0]], [0, 1], [0]).tolist() == [[0.3, 0.3]]
    alignment = between_words([[1.0]], (("a", "b", "c"), [0]), (("d", "e"), [0]))
    assert alignment.weights.tolist() == [[1, 0, 0], [0, 0, 0]]


# --- entropy ----------------------------------------------------------------------------------------------------


def test_entropy_of_hard_uniform_and_skewed_rows() -> None:
    rows = np.array([[1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.25, 0.125, 0.125], [0, 0, 0, 0]])
    assert entropy(rows).tolist() == pytest.approx([0, log(4), 1.75 * log(2), 0])
    assert entropy([[0.2, 0.2]]) == pytest.approx([log(2)])  # scaled to sum to 1 first
