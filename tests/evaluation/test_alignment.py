"""Words out of pieces, links and the Pharaoh format, against values worked out by hand."""

import random
from math import log
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError, UsageError
from nmt.evaluation.alignment import (
    Alignment,
    GoldLinks,
    argmax_links,
    check_within,
    entropy,
    flip,
    format_pharaoh,
    merge_to_words,
    parse_pharaoh,
    read_pharaoh,
    threshold_links,
    write_pharaoh,
)


def random_rows(targets: int, sources: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(sources), size=targets)


# --- the carrier ------------------------------------------------------------------------------------------------


def test_alignment_keeps_its_own_unchangeable_weights() -> None:
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


# --- merging ----------------------------------------------------------------------------------------------------


def test_source_pieces_are_summed_and_target_pieces_averaged() -> None:
    weights = [[0.5, 0.25, 0.25], [0.125, 0.125, 0.75], [0.0, 1.0, 0.0]]
    merged = merge_to_words(weights, [0, 0, 1], [0, 1, 1])
    #  word 0: [.5+.25, .25]   word 1: mean of [.25, .75] and [1, 0]
    assert merged.tolist() == [[0.75, 0.25], [0.625, 0.375]]


def test_rows_that_sum_to_one_still_do() -> None:
    merged = merge_to_words(random_rows(7, 9), [0, 0, 1, 2, 2, 2, 3, 4, 4], [0, 1, 1, 1, 2, 3, 3])
    assert merged.shape == (4, 5)
    np.testing.assert_allclose(merged.sum(axis=1), 1)


def test_merging_agrees_with_loops_over_scattered_pieces() -> None:
    weights, source_word_of, target_word_of = random_rows(6, 5), [2, 0, -1, 2, 1], [1, 0, 1, -1, 0, 2]
    expected = np.zeros((3, 3))
    for word in range(3):
        rows = [row for row, owner in zip(weights, target_word_of, strict=True) if owner == word]
        for row in rows:
            for weight, owner in zip(row, source_word_of, strict=True):
                if owner >= 0:
                    expected[word, owner] += weight / len(rows)
    np.testing.assert_allclose(merge_to_words(weights, source_word_of, target_word_of), expected)


def test_end_marks_are_dropped_and_their_weight_is_only_given_back_on_request() -> None:
    weights = [[0.3, 0.3, 0.4], [0.0, 0.0, 1.0]]
    assert merge_to_words(weights, [0, 1, -1], [0, -1]).tolist() == [[0.3, 0.3]]
    assert merge_to_words(weights, [0, 1, -1], [0, -1], renormalise=True).tolist() == [[0.5, 0.5]]


def test_renormalising_leaves_a_row_of_zeros_alone() -> None:
    assert merge_to_words([[0.0, 1.0]], [0, -1], [0], renormalise=True).tolist() == [[0.0]]


def test_words_without_pieces_get_rows_and_columns_of_zeros() -> None:
    assert merge_to_words([[1.0]], [0], [0], size=(2, 3)).tolist() == [[1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("source_word_of", "target_word_of", "size"),
    [([0], [0], None), ([0, -2], [0], None), ([0, 3], [0], (1, 3)), ([0, 1], [0, 0], None)],
)
def test_indices_that_do_not_fit_are_refused(
    source_word_of: list[int], target_word_of: list[int], size: tuple[int, int] | None
) -> None:
    with pytest.raises(ValueError, match="must"):
        merge_to_words([[0.5, 0.5]], source_word_of, target_word_of, size=size)


# --- entropy ----------------------------------------------------------------------------------------------------


def test_entropy_of_hard_uniform_and_skewed_rows() -> None:
    rows = np.array([[1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.25, 0.125, 0.125], [0, 0, 0, 0]])
    assert entropy(rows, unit="bits").tolist() == [0, 2, 1.75, 0]
    assert entropy(rows)[1] == pytest.approx(log(4))
    assert entropy([[0.2, 0.2]], unit="bits") == pytest.approx([1])  # scaled to sum to 1 first


# --- links ------------------------------------------------------------------------------------------------------


def test_argmax_links_take_the_leftmost_of_equals_and_skip_empty_rows() -> None:
    assert argmax_links([[0.1, 0.9], [0.5, 0.5], [0.0, 0.0]]) == {(1, 0), (0, 1)}
    assert argmax_links([[0.1, 0.9], [0.5, 0.5]], threshold=0.6) == {(1, 0)}
    assert argmax_links(np.zeros((0, 3))) == argmax_links(np.zeros((3, 0))) == frozenset()


def test_threshold_links_take_all_that_reach_it() -> None:
    assert threshold_links([[0.5, 0.5], [0.2, 0.8], [0.4, 0.4]], 0.5) == {(0, 0), (1, 0), (1, 1)}
    with pytest.raises(UsageError, match="is 0"):
        threshold_links([[1.0]], 0)


def test_gold_counts_sure_links_as_possible_and_can_be_flipped() -> None:
    gold = GoldLinks(frozenset({(0, 1)}), frozenset({(2, 3)}))
    assert gold.possible == {(0, 1), (2, 3)}
    assert gold.flipped() == GoldLinks(frozenset({(1, 0)}), frozenset({(3, 2)}))
    assert flip({(0, 5)}) == {(5, 0)}


def test_a_link_beyond_the_sentences_is_refused() -> None:
    check_within({(1, 2)}, 2, 3, "here")
    with pytest.raises(DataError, match="here: the link 1-3 lies beyond the sentences, which have 2 source and 3"):
        check_within({(0, 0), (1, 3)}, 2, 3, "here")


# --- Pharaoh format ---------------------------------------------------------------------------------------------


def test_a_line_of_pharaoh_links() -> None:
    gold = parse_pharaoh("0-0  1p2 10-3 1-1", "here")
    assert gold.sure == {(0, 0), (10, 3), (1, 1)}
    assert gold.possible - gold.sure == {(1, 2)}
    assert format_pharaoh(gold) == "0-0 1-1 1p2 10-3"
    assert format_pharaoh({(2, 0), (0, 1)}) == "0-1 2-0"


@pytest.mark.parametrize("token", ["0", "0-", "a-b", "1--2", "-1-2", "0_0", "1-2-3", "²-1", "0P1"])
def test_a_bad_link_is_named_with_file_and_line(token: str, tmp_path: Path) -> None:
    path = tmp_path / "gold.align"
    path.write_text(f"0-0\n1-1 {token}\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_pharaoh(path)
    assert f"{path}, line 2: '{token}'" in str(caught.value)


def test_files_come_back_unchanged_whatever_their_line_ends(tmp_path: Path) -> None:
    generator = random.Random(1)
    links = [
        GoldLinks(
            frozenset((generator.randrange(50), generator.randrange(50)) for _ in range(count)),
            frozenset((generator.randrange(50), generator.randrange(50)) for _ in range(count)),
        )
        for count in (5, 0, 17, 0)
    ]
    path = tmp_path / "links"
    write_pharaoh(path, links)
    assert read_pharaoh(path) == links
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_pharaoh(path) == links


def test_a_missing_or_binary_file_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_pharaoh(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"0-0\n\xff\xfe")
    with pytest.raises(DataError, match="byte 4"):
        read_pharaoh(tmp_path / "binary")
    with pytest.raises(DataError, match="Cannot write"):
        write_pharaoh(tmp_path, [{(0, 0)}])
