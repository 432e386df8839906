"""Compiled kernels against the PyTorch that they stand beside, on tensors of any size and at the edges of what is a number."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from nmt.fast import gru, int8, packed_gru
from nmt.fast.kernels import decoding as kernels
from nmt.fast.search import FastSearch
from nmt.model.normalizers import masked_softmax
from nmt.search.beam import Candidates
from nmt.search.candidates import top_tokens
from nmt.search.finished import FinishedHypotheses
from nmt.search.loop import Search
from nmt.search.options import SearchOptions
from nmt.search.segments import Segments
from tests.machine import needs_compiler, needs_fast, needs_int8_kernel

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    torch.manual_seed(4)
    with torch.inference_mode():
        yield


# --- attention ----------------------------------------------------------------------------------------------------


def attention(
    queries: Tensor, keys: Tensor, v: Tensor, mask: Tensor, h: Tensor, segment_ids: Tensor
) -> tuple[Tensor, Tensor]:
    """Bahdanau et al. 2015, A.1.2, in fp64."""
    scores = torch.tanh(queries.double().unsqueeze(1) + keys.double()[segment_ids]) @ v.double()
    weights = masked_softmax(scores, mask[segment_ids])
    return torch.einsum("ms,msa->ma", weights, h.double()[segment_ids]), weights


def compiled(
    queries: Tensor, keys: Tensor, v: Tensor, mask: Tensor, h: Tensor, segment_ids: Tensor
) -> tuple[Tensor, Tensor]:
    exp_keys = kernels.exp_of_keys(keys)
    assert exp_keys is not None
    return kernels.additive_attention(queries, exp_keys, v, mask, h, segment_ids)[:2]


@pytest.mark.parametrize(("width", "length", "annotation"), [(1, 1, 1), (2, 3, 5), (33, 17, 20), (512, 40, 512)])
@pytest.mark.parametrize("size", [0.01, 1.0, 5.0])
def test_attention_equals_its_equation(width: int, length: int, annotation: int, size: float) -> None:
    segment_ids = torch.tensor([0, 0, 0, 1, 3, 3])
    queries, keys, v = torch.randn(6, width) * size, torch.randn(4, length, width) * size, torch.randn(width)
    h, mask = torch.randn(4, length, annotation), torch.rand(4, length) > 0.3
    actual, expected = (function(queries, keys, v, mask, h, segment_ids) for function in (compiled, attention))
    for ours, exact in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours.double(), exact, atol=3e-5, rtol=0)
    assert (actual[1][~mask[segment_ids]] == 0).all()


@pytest.mark.parametrize("window", [1, 4, 9])
def test_attention_reads_only_its_window_and_adds_to_its_scores(window: int) -> None:
    starts = torch.randint(0, 10 - window, (6,))
    factors, addends = torch.rand(6, window) * (torch.rand(6, window) > 0.2), torch.randn(6, 9)
    segment_ids, queries, v = torch.tensor([0, 0, 0, 1, 3, 3]), torch.randn(6, 5), torch.randn(5)
    keys, h, mask = torch.randn(4, 9, 5), torch.randn(4, 9, 3), torch.rand(4, 9) > 0.3
    near = starts.unsqueeze(1) + torch.arange(window)
    everywhere = torch.zeros(6, 9).scatter(1, near, factors)
    rows = torch.arange(6)  # each query has a sentence of its own, of which all but the window is not a number
    far = torch.ones(6, 9, 1, dtype=torch.bool).scatter(1, near.unsqueeze(2), False)
    row_keys, row_annotations = keys[segment_ids].masked_fill(far, math.nan), h[segment_ids].masked_fill(far, math.nan)
    actual = kernels.additive_attention(
        queries, row_keys.mul(2).exp(), v, mask[segment_ids], row_annotations, rows, addends, starts, factors
    )
    scores = torch.tanh(queries.unsqueeze(1) + keys[segment_ids]) @ v + addends
    weights = masked_softmax(scores, mask[segment_ids] & (everywhere > 0)) * everywhere
    torch.testing.assert_close(actual[1], weights, atol=1e-5, rtol=0)
    torch.testing.assert_close(actual[0], torch.einsum("ms,msa->ma", weights, h[segment_ids]), atol=1e-5, rtol=0)


def test_attention_holds_for_all_magnitudes() -> None:
    sizes = torch.tensor([0.0, 1e-30, 1.0, 20.0, 43.0, 44.0, 45.0, 88.0, 1e4, 1e30])
    queries = torch.cat([sizes, -sizes]).unsqueeze(1).expand(-1, 3)
    keys = torch.tensor([0.0, 1e-30, 0.3, 9.0, 29.9, -0.3, -9.0, -29.9])[None, :, None].expand(1, -1, 3)
    arguments = queries, keys, torch.tensor([1.0, -2.0, 3.0]), torch.ones(1, 8, dtype=torch.bool), keys
    segment_ids = torch.zeros(len(queries), dtype=torch.long)
    actual, expected = (function(*arguments, segment_ids) for function in (compiled, attention))
    for ours, exact in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours.double(), exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 30.1])
def test_too_large_keys_have_no_exponentials(bad: float) -> None:
    keys = torch.randn(2, 3, 4)
    keys[1, 2, 3] = bad
    assert kernels.exp_of_keys(keys) is None


def test_attention_propagates_nan() -> None:
    keys, queries = torch.randn(1, 3, 4), torch.randn(2, 4)
    queries[1, 2] = math.nan
    mask = torch.ones(1, 3, dtype=torch.bool)
    context, weights = compiled(queries, keys, torch.randn(4), mask, keys, torch.zeros(2, dtype=torch.long))
    assert not context[0].isnan().any()
    assert context[1].isnan().all()
    assert weights[1].isnan().all()


# --- the most probable tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "size"), [(1, 1), (5, 3), (64, 64), (65, 5), (1000, 7), (8000, 12)])
@pytest.mark.parametrize("forbid", [(), (0, 2)])
def test_most_probable_equals_top_k_of_the_table(width: int, size: int, forbid: tuple[int, ...]) -> None:
    logits = torch.randn(9, width) * 5
    actual, ids = kernels.most_probable(logits, size, forbid=forbid)
    expected, places = top_tokens(torch.log_softmax(logits, 1), size, forbid)
    possible = expected > -math.inf
    within = (
        2e-5 if "asan" in os.environ.get("LD_PRELOAD", "") else 2e-6
    )  # sanitized code adds one number after another
    torch.testing.assert_close(actual, expected, atol=within, rtol=within)
    assert torch.equal(ids[possible], places[possible])


def test_ties_go_to_the_lowest_token() -> None:
    logits = torch.zeros(1, 300)
    logits[0, [299, 3, 77]] = 1.0
    _, ids = kernels.most_probable(logits, 5, forbid=(0,))
    assert ids.tolist() == [[3, 77, 299, 1, 2]]


def test_columns_map_to_tokens_and_forbidden_ones_are_normalized_over() -> None:
    actual, ids = kernels.most_probable(
        torch.tensor([[0.0, 2.0, 1.0]] * 2),
        2,
        tokens=torch.tensor([[4, 9, 31], [5, 6, 7], [3, 2, 1]]),
        segment_ids=torch.tensor([0, 2]),
        forbid=(9, 10),
    )
    assert ids.tolist() == [[31, 4], [2, 1]]
    total = math.log(1 + math.exp(1) + math.exp(2))
    assert actual[0].tolist() == pytest.approx([1 - total, -total])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_row_with_nan_or_infinity_has_no_candidates(bad: float) -> None:
    logits = torch.randn(3, 200)
    logits[1, 150] = bad
    logits[2] = -math.inf
    actual, _ = kernels.most_probable(logits, 4)
    assert actual[0].isfinite().all()
    assert (actual[1:] == -math.inf).all()


# --- continuations ------------------------------------------------------------------------------------------------


@needs_fast
@pytest.mark.parametrize("seed", range(12))
def test_finished_and_live_candidates_are_those_of_pytorch(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def drawn(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator)

    sentences, width, n_best = (int(drawn(1, 5)) for _ in range(3))
    n_best = min(n_best, width)
    time, eos = int(drawn(0, 4)), 3
    lengths, alpha, horizon = (
        drawn(time + 1, time + 4, sentences),
        [0.0, 1.0, 0.6][seed % 3],
        [None, 1, 2][seed // 3 % 3],
    )
    options = SearchOptions(beam_size=width, n_best=n_best, length_penalty=alpha, horizon=horizon, eos=eos)
    # Few different numbers, so that many are equal, and some that are impossible.
    totals = -drawn(0, 6, sentences, width).float().sort(dim=1).values
    totals[drawn(0, 5, sentences, width) == 0] = -math.inf
    nowhere = torch.zeros(sentences, width, dtype=torch.long)
    picked = Candidates(nowhere, drawn(2, 5, sentences, width), torch.zeros(sentences, width), totals)
    before = -drawn(0, 6, sentences, n_best).float().sort(dim=1).values
    before[drawn(0, 2, sentences) == 0] = -math.inf

    def updated(kind: type[Search]) -> tuple[Tensor, FinishedHypotheses]:
        finished = FinishedHypotheses(options, lengths)
        finished.scores, finished.nodes = before.clone(), torch.arange(sentences * n_best).view(sentences, n_best)
        return kind(options).update_finished(finished, picked, None, 100, time), finished

    (live, ours), (expected, theirs) = updated(FastSearch), updated(Search)
    assert torch.equal(live, expected)
    torch.testing.assert_close(ours.scores, theirs.scores)
    assert torch.equal(ours.nodes[ours.scores > -math.inf], theirs.nodes[theirs.scores > -math.inf])


# --- int8 --------------------------------------------------------------------------------------------------------


@needs_int8_kernel
@pytest.mark.parametrize("sizes", [[5, 0, 129, 64], [0, 0]])
def test_products_of_segments_equal_single_products(sizes: list[int]) -> None:
    segments = Segments(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), len(sizes))
    weight = torch.randint(-127, 128, (40, 30)).to(torch.int8)
    matrix = kernels.Int8Matrix(weight, torch.rand(40), torch.randn(40))
    rows = torch.randint(0, 40, (len(segments.segment_ids),))
    segment_ids = torch.arange(len(sizes)).repeat_interleave(torch.tensor([8, 3, 0, 1][: len(sizes)]))
    values = torch.randn(len(segment_ids), 30)
    actual = torch.empty(len(segment_ids), max(sizes))
    kernels.int8_products_of_segments(matrix.panels_of_segments(rows, segments), values, segment_ids, actual)
    for segment, size in enumerate(sizes):
        if size:
            own = rows[segments.segment_ids == segment]
            assert matrix.bias is not None
            alone = kernels.Int8Matrix(weight[own], matrix.scales[own], matrix.bias[own]).panels()
            assert torch.equal(
                actual[segment_ids == segment, :size], kernels.int8_product(alone, values[segment_ids == segment])
            )
        assert (actual[segment_ids == segment, size:] == -math.inf).all()


@needs_int8_kernel
@pytest.mark.parametrize(("rows", "width"), [(0, 64), (1, 64), (7, 192), (50, 64), (100, 128)])
def test_fused_gru_step_equals_product_and_gates(rows: int, width: int) -> None:
    recurrent, projected = int8.Int8Linear(torch.nn.Linear(width, 3 * width)), torch.randn(rows, 3 * width + 5)[:, 5:]
    hidden = torch.randn(rows, 2, width)[:, 1]
    assert packed_gru.panels_of_gates(recurrent) is not None
    actual = packed_gru.packed_step(projected, recurrent, hidden)
    torch.testing.assert_close(actual, gru.gru_gates(projected, recurrent(hidden), hidden), atol=1e-6, rtol=1e-6)


# --- where they are used ------------------------------------------------------------------------------------------


def test_thread_count_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    segment_ids = torch.arange(60) // 3
    queries, keys, v, h = torch.randn(60, 65), torch.randn(20, 9, 65), torch.randn(65), torch.randn(20, 9, 31)
    logits = torch.randn(60, 900)
    weight = torch.randint(-127, 128, (200, 900), dtype=torch.int8)
    scales, has_int8 = torch.rand(200), kernels.multiplies_int8()
    panels = kernels.Int8Matrix(weight, scales, None).panels() if has_int8 else None

    def everything() -> list[Tensor]:
        actual = [*compiled(queries, keys, v, torch.ones(20, 9, dtype=torch.bool), h, segment_ids)]
        actual += kernels.most_probable(logits, 7)
        if panels is not None:
            actual.append(kernels.int8_product(panels, logits))
        return actual

    alone = everything()
    monkeypatch.setattr(kernels, "threads_for", lambda work: 3)
    assert all(map(torch.equal, everything(), alone))
