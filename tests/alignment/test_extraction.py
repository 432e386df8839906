"""Links read off the matrices of one model or of two."""

import numpy as np
import pytest

from nmt.alignment.extraction import ALIGNER_SHARE, Extraction, fitting_extraction
from nmt.alignment.symmetrization import Mean, mutual_weights
from nmt.alignment.weights import Alignment
from nmt.errors import UsageError
from nmt.recipe import GuidedAlignmentConfig
from tests.bundle.test_folder import small_recipe


def alignment(weights: list[list[float]], source: str, target: str) -> Alignment:
    return Alignment(np.array(weights), tuple(source.split()), tuple(target.split()))


def test_links_are_read_off_by_either_method() -> None:
    one = alignment([[0.6, 0.4], [0.2, 0.25]], "a b", "c d")
    assert Extraction().pair(one).links == {(0, 0), (1, 1)}
    assert Extraction(threshold=0.5).pair(one).links == {(0, 0)}
    assert Extraction("threshold").pair(one).links == {(0, 0), (1, 0)}
    assert Extraction("threshold", 0.2).pair(one).links == {(0, 0), (1, 0), (0, 1), (1, 1)}
    for threshold in (0.0, 1.5):
        with pytest.raises(UsageError, match="must lie above 0 and not above 1"):
            Extraction(threshold=threshold)


def test_links_are_mutual_where_both_words_choose_each_other() -> None:
    # d-a: sqrt(.7 .7/.8) = .78; d-b: sqrt(.3 .3/.7) = .36; e-b: sqrt(.4 .4/.7) = .48; f and g share c: sqrt(1/2) = .71 each.
    one = alignment([[0.7, 0.3, 0.0], [0.1, 0.4, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], "a b c", "d e f g")
    assert Extraction("mutual").pair(one).links == {(0, 0), (1, 1), (2, 2), (2, 3)}
    assert Extraction("threshold").pair(one).links == {(0, 0), (1, 0), (1, 1), (2, 2), (2, 3)}
    assert Extraction("mutual", 0.75).pair(one).links == {(0, 0)}


@pytest.mark.parametrize("joining", ["mean", "geometric"])
def test_a_word_aligner_has_its_share_in_the_mean(joining: Mean) -> None:
    forward = alignment([[0.8, 0.2], [0.8, 0.2]], "a b", "d e")
    backward = alignment([[0.5, 0.5], [0.5, 0.5]], "d e", "a b")
    confidences = [[1.0, 0.0], [0.0, 0.9]]
    extraction = Extraction("mutual", joining=joining)
    for reverse in (None, backward):
        alone = (
            mutual_weights(forward.weights) if reverse is None else extraction.pair(forward, reverse).alignment.weights
        )
        result = extraction.pair(forward, reverse, confidences)
        expected = (1 - ALIGNER_SHARE) * alone + ALIGNER_SHARE * np.array(confidences)
        np.testing.assert_allclose(result.alignment.weights, expected, atol=1e-12)
        assert result.links == {(0, 0), (1, 1)} != extraction.pair(forward, reverse).links


def test_the_links_of_the_other_direction_are_flipped() -> None:
    forward = alignment([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]], "a b", "c d e")  # 0-0 0-1 1-2
    backward = alignment([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9]], "c d e", "a b")  # 0-0 1-2
    assert Extraction(joining="intersection").pair(forward, backward).links == {(0, 0), (1, 2)}
    assert Extraction(joining="union").pair(forward, backward).links == {(0, 0), (0, 1), (1, 2)}


def test_the_mean_of_both_directions_is_read_off_as_one_matrix() -> None:
    forward = alignment([[0.6, 0.4, 0.0], [0.5, 0.3, 0.0]], "a b c", "d e")  # the rest of a row is the end mark's
    backward = alignment([[0.1, 0.9], [0.8, 0.2], [0.3, 0.5]], "d e", "a b c")
    mean = np.array([[0.35, 0.6, 0.15], [0.7, 0.25, 0.25]])  # (0.6 + 0.1) / 2, (0.4 + 0.8) / 2, (0.0 + 0.3) / 2; ...
    result = Extraction(joining="mean").pair(forward, backward)
    np.testing.assert_allclose(result.alignment.weights, mean, atol=1e-12)
    assert (result.alignment.source, result.alignment.target) == (forward.source, forward.target)
    assert result.links == {(1, 0), (0, 1)}  # each model alone: 0-0 0-1 and 1-0 0-1 2-1
    assert Extraction(joining="mean", threshold=0.65).pair(forward, backward).links == {(0, 1)}
    assert Extraction("threshold", joining="mean").pair(forward, backward).links == {(0, 0), (1, 0), (0, 1)}


def test_the_attention_of_guided_alignment_is_read_off_by_threshold_and_any_other_by_argmax() -> None:
    one = alignment([[0.6, 0.4], [0.2, 0.25]], "a b", "c d")
    left_alone = small_recipe()
    guided = left_alone.training.model_copy(update={"guided_alignment": GuidedAlignmentConfig(links="gold")})
    assert fitting_extraction(left_alone).pair(one).links == {(0, 0), (1, 1)}
    assert fitting_extraction(left_alone.model_copy(update={"training": guided})).pair(one).links == {(0, 0), (1, 0)}
    assert fitting_extraction(left_alone, posterior=True).pair(one).links == Extraction("mutual").pair(one).links
