"""Joined pairs: each is two pairs of its part in one line, drawn anew in every epoch, within the longest length."""

import numpy as np
import numpy.typing as npt
import pytest

from nmt.data.encoded import EncodedPairs
from nmt.data.flat import Lists
from nmt.data.joined import join_pairs

SOURCES = [[9, 1], [9, 2, 3], [9], [9, 4, 5, 6], [7, 8]]
TARGETS = [[11], [12, 13], [14, 15, 16], [17], [18]]
PAIRS = EncodedPairs(Lists.of(SOURCES, np.uint16), Lists.of(TARGETS, np.uint16))


def rows(*numbers: int) -> npt.NDArray[np.int32]:
    return np.array(numbers, np.int32)


def joined(share: float = 1.0, most: int = 100, epoch: int = 0, tag: int = 0) -> tuple[EncodedPairs, list[int]]:
    parts = [(rows(0, 1, 2, 3), tag), (rows(4), 0)]
    pairs, own = join_pairs(PAIRS, parts, share=share, most=most, seed=1, epoch=epoch)
    return pairs, own.tolist()


def test_the_pairs_stay_and_joined_ones_of_the_same_part_follow() -> None:
    pairs, own = joined()
    assert own == list(range(10))
    together = pairs[own]
    assert together[:5] == list(zip(SOURCES, TARGETS, strict=True))
    possible = [
        (SOURCES[a] + SOURCES[b], TARGETS[a] + TARGETS[b]) for part in ((0, 1, 2, 3), (4,)) for a in part for b in part
    ]
    assert all(pair in possible for pair in together[5:])
    assert (pairs.source_lengths[own] == [len(source) for source, _ in together]).all()


@pytest.mark.parametrize(("share", "count"), [(0, 0), (0.5, 2), (2, 10)])
def test_so_many_are_joined_per_pair_of_a_part(share: float, count: int) -> None:
    assert len(joined(share=share)[0]) == 5 + count


def test_every_epoch_draws_anew_and_the_same_epoch_the_same() -> None:
    first, again, other = (joined(epoch=epoch)[0] for epoch in (0, 0, 1))
    every = range(len(first))
    assert first[every] == again[every] != other[every]


def test_a_joined_line_has_its_tag_once() -> None:
    pairs, own = joined(tag=1)
    for source, _ in pairs[own[5:9]]:
        assert source[0] == 9
        assert source.count(9) == 1


def test_pairs_that_would_be_too_long_are_left_out() -> None:
    pairs, own = joined(share=5, most=4)
    lengths = [(len(source), len(target)) for source, target in pairs[own[5:]]]
    assert lengths
    assert max(max(pair) for pair in lengths) <= 4


def test_rows_that_an_epoch_leaves_out_are_not_joined() -> None:
    pairs, own = join_pairs(PAIRS, [(rows(0, 2), 0)], share=1, most=100, seed=1, epoch=0)
    assert own.tolist() == [0, 2, 5, 6]
    assert all(set(source) <= {9, 1} for source, _ in pairs[own])
