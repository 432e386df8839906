"""The most probable tokens of each row, and how ties are broken."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from nmt.search.candidates import top_tokens


@pytest.mark.parametrize(("width", "first"), [(40, 1), (8000, 4000), (40_000, 39_990)])
def test_equal_tokens_are_chosen_by_their_ids(width: int, first: int) -> None:
    scores = torch.full((3, width), -9.0)
    scores[1, first:] = -1.0
    values, ids = top_tokens(scores, 4)
    assert ids.tolist() == [[0, 1, 2, 3], [first, first + 1, first + 2, first + 3], [0, 1, 2, 3]]
    assert values.tolist() == [[-9.0] * 4, [-1.0] * 4, [-9.0] * 4]


@given(
    seed=st.integers(0, 10_000),
    width=st.sampled_from([1, 2, 8, 100, 3000]),
    size=st.integers(1, 12),
    levels=st.integers(1, 5),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    forbid=st.sampled_from([(), (0,), (0, 3)]),
)
def test_top_tokens_are_those_of_a_stable_sort(
    seed: int, width: int, size: int, levels: int, dtype: torch.dtype, forbid: tuple[int, ...]
) -> None:
    draw = torch.Generator().manual_seed(seed)
    scores = -torch.randint(levels, (4, width), generator=draw).to(dtype)
    scores[scores == 1 - levels] = -torch.inf
    allowed = scores.float()
    for token in forbid:
        if token < width:
            allowed[:, token] = -torch.inf
    expected, order = allowed.sort(dim=1, descending=True, stable=True)
    values, ids = top_tokens(scores, size, forbid)
    assert torch.equal(values, expected[:, :size])
    finite = values.isfinite()
    assert torch.equal(ids[finite], order[:, :size][finite])
