"""Segments of different lengths, flat and padded, and bucket sizes."""

from __future__ import annotations

import pytest
import torch

from nmt.bucketing import bucket_size, largest_bucket_within
from nmt.segments import Segments


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
    assert rows.density == pytest.approx(len(segment_ids) / max(len(sizes) * max(sizes), 1))


def test_columns_of_padded_segments_map_to_flat_rows() -> None:
    rows = Segments(torch.tensor([0, 0, 2, 2, 2]), 3)
    assert rows.rows_at(torch.tensor([[1, 0, 0], [0, 0, 0], [2, 0, 1]])).tolist() == [[1, 0, 0], [0, 0, 0], [4, 2, 3]]


def test_bucket_sizes_are_few_and_near() -> None:
    buckets = [bucket_size(count) for count in range(5000)]
    assert all(count <= bucket <= count + max(count // 8, 0) for count, bucket in enumerate(buckets))
    assert all(bucket_size(bucket) == bucket == largest_bucket_within(bucket) for bucket in buckets)
    assert all(count - count // 8 <= largest_bucket_within(count) <= count for count in range(5000))
    assert buckets[:17] == list(range(17))
    assert len(set(buckets)) < 16 + 8 * 9
