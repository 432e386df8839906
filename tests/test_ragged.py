"""Rows in groups of different sizes, and even sizes."""

from __future__ import annotations

import pytest
import torch

from nmt.evened import even_within, evened
from nmt.ragged import Ragged


@pytest.mark.parametrize("sizes", [[2, 0, 3, 1], [2, 2, 2], [1, 1, 1], [0, 0, 4], [1], [0, 0]])
def test_rows_go_to_the_first_places_of_their_line_and_come_back(sizes: list[int]) -> None:
    groups = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    rows = Ragged(groups, len(sizes))
    values = torch.randn(len(groups), 3)
    grid = rows.spread(values, fill=7.0)
    assert grid.shape == (len(sizes), max(sizes), 3)
    start = 0
    for line, size in zip(grid, sizes, strict=True):
        assert torch.equal(line[:size], values[start : start + size])
        assert bool((line[size:] == 7).all())
        start += size
    assert torch.equal(rows.collect(grid), values)
    assert rows.fill == pytest.approx(len(groups) / max(len(sizes) * max(sizes), 1))
    assert rows.is_plain == (sizes == [1] * len(sizes))


def test_places_know_their_rows() -> None:
    rows = Ragged(torch.tensor([0, 0, 2, 2, 2]), 3)
    assert rows.at(torch.tensor([[1, 0, 0], [0, 0, 0], [2, 0, 1]])).tolist() == [[1, 0, 0], [0, 0, 0], [4, 2, 3]]
    assert Ragged.one_each(3, torch.device("cpu")).at(torch.zeros(3, 1, dtype=torch.long)).tolist() == [[0], [1], [2]]


def test_even_numbers_are_few_and_near() -> None:
    found = [evened(count) for count in range(5000)]
    assert all(count <= even <= count + max(count // 8, 0) for count, even in enumerate(found))
    assert all(evened(even) == even == even_within(even) for even in found)
    assert all(count - count // 8 <= even_within(count) <= count for count in range(5000))
    assert found[:17] == list(range(17))
    assert len(set(found)) < 16 + 8 * 9
