"""Segments of different lengths, flat and padded."""

from __future__ import annotations

import pytest
import torch

from nmt.search.segments import Segments


@pytest.mark.parametrize("sizes", [[2, 0, 3, 1], [2, 2, 2], [1, 1, 1], [0, 0, 4], [1], [0, 0]])
def test_padding_follows_each_segment_and_to_flat_drops_it(sizes: list[int]) -> None:
    segment_ids = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    rows = Segments(segment_ids, len(sizes))
    values = torch.randn(len(segment_ids), 3)
    padded = rows.to_padded(values, padding=7.0)
    assert padded.shape == (len(sizes), max(sizes), 3)
    start = 0
    for segment, size in zip(padded, sizes, strict=True):
        assert torch.equal(segment[:size], values[start : start + size])
        assert bool((segment[size:] == 7).all())
        start += size
    assert torch.equal(rows.to_flat(padded), values)
