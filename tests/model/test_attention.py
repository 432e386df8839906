"""Scores, windows, weights and context: the equations and properties of any attention. `test_recurrent.py` has the gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmt import recipe
from nmt.model.attention import (
    Attention,
    AttentionMemory,
    MultiHeadAttention,
    build_attention,
)
from nmt.model.normalizers import Normalizer, build_normalizer
from nmt.model.precision import at_least_fp32
from nmt.model.windows import Window
from tests.model.models import mask_of, weights_of
from tests.reference import attention as reference
from tests.reference.settings import ATTENTIONS, NORMALIZERS, SCORE_SIZES, small

BATCH, SOURCE, ANNOTATION = 3, 7, 4
LENGTHS = (7, 1, 3)
SCORES = ("additive", "dot", "general", "concat", "location")
STEPS = (0, 2, 7)


def attention_of(settings: dict[str, Any]) -> Attention | MultiHeadAttention:
    """An attention in float64 in which all weights, biases included, are random."""
    torch.manual_seed(1)
    config = recipe.AttentionConfig.model_validate(settings["attention"])
    annotation = 2 * settings["encoder"]["hidden"]
    attention = build_attention(config, query=settings["decoder"]["hidden"], annotation=annotation)
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    return attention.double()


def settings_of(
    score: str, window: str, half_width: int, heads: int, normalizer: recipe.NormalizerKind = "softmax"
) -> dict[str, Any]:
    """Settings with coverage, or without coverage, heads and normalizer if there is no score."""
    heads, normalizer = (1, "softmax") if score == "none" else (heads, normalizer)
    coverage = score != "none"
    return small(
        score=score, window=window, half_width=half_width, normalizer=normalizer, heads=heads, coverage=coverage
    )


def window_of(**settings: Any) -> Window:
    window = attention_of(small(**settings)).window
    assert isinstance(window, Window)
    return window


def annotations_of(lengths: tuple[int, ...]) -> Tensor:
    mask = mask_of(lengths)
    return torch.randn(*mask.shape, ANNOTATION, dtype=torch.float64) * mask.unsqueeze(-1)


def remembered(attention: Attention | MultiHeadAttention, lengths: tuple[int, ...] = LENGTHS) -> AttentionMemory:
    whole = annotations_of(lengths)
    return attention.build_memory(whole, mask_of(lengths), torch.randn(len(lengths), ANNOTATION, dtype=torch.float64))


def coverage_of(lengths: tuple[int, ...], steps: int) -> Tensor:
    """Random coverage before each of some steps."""
    mask = mask_of(lengths).unsqueeze(1)
    return 2 * torch.rand(len(lengths), steps, mask.shape[-1], dtype=torch.float64) * mask


def queries_of(settings: dict[str, Any], rows: int = BATCH, steps: int = 1) -> Tensor:
    return torch.randn(rows, steps, settings["decoder"]["hidden"], dtype=torch.float64)


def positions_of(*steps: int, rows: int = BATCH) -> Tensor:
    """The same steps for every sentence."""
    return torch.tensor(steps).expand(rows, -1)


@pytest.mark.parametrize(
    ("normalizer", "half_width", "heads"),
    [
        *(("softmax", 1, 1), ("softmax", 3, 2), ("sparsemax", 1, 2)),
        *(("sparsemax", 3, 1), ("entmax15", 3, 1), ("entmax15", 1, 2)),
    ],
)
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_weights_and_context_follow_the_equations(
    score: str, window: str, normalizer: recipe.NormalizerKind, half_width: int, heads: int
) -> None:
    settings = settings_of(score, window, half_width, heads, normalizer)
    attention = attention_of(settings)
    whole, summaries = annotations_of(LENGTHS), annotations_of(LENGTHS)[:, 0]
    queries, coverage = queries_of(settings, steps=len(STEPS)), coverage_of(LENGTHS, len(STEPS))
    with torch.no_grad():
        memory = attention.build_memory(whole, mask_of(LENGTHS), summaries)
        attended = attention(queries, positions_of(*STEPS), memory, coverage if score != "none" else None)
    for row, length in enumerate(LENGTHS):
        for t, step in enumerate(STEPS):
            annotations, covered = whole[row, :length].numpy(), coverage[row, t, :length].numpy()
            arrays = (queries[row, t].numpy(), step, annotations, summaries[row].numpy(), covered)
            context, alpha = reference.attend(*arrays, settings["attention"], weights_of(attention))
            np.testing.assert_allclose(attended.contexts[row, t], context, rtol=0, atol=1e-10)
            np.testing.assert_allclose(attended.weights[row, t, :length], alpha, rtol=0, atol=1e-10)
            assert (attended.weights[row, t, length:] == 0).all()


def test_weights_and_context_fit_on_paper() -> None:
    attention = attention_of(small(score="dot", annotation=2))
    annotations = torch.eye(2, dtype=torch.float64).unsqueeze(0)
    memory = attention.build_memory(annotations, mask_of([2]), torch.zeros(1, 2, dtype=torch.float64))
    queries = torch.tensor([[[math.log(3), 0.0], [0.0, 0.0]]], dtype=torch.float64)
    attended = attention(queries, positions_of(0, 1, rows=1), memory)
    assert attended.weights.tolist() == [[pytest.approx([0.75, 0.25]), pytest.approx([0.5, 0.5])]]
    assert attended.contexts.tolist() == [[pytest.approx([0.75, 0.25]), pytest.approx([0.5, 0.5])]]


@pytest.mark.parametrize("heads", [1, 2])
def test_predicted_centers_follow_the_equation(heads: int) -> None:
    settings = small(window="local-p", heads=heads)
    attention = attention_of(settings)
    queries, weights = queries_of(settings, steps=2), weights_of(attention)
    with torch.no_grad():
        centers = attention(queries, positions_of(0, 1), remembered(attention)).centers
    assert centers is not None
    assert centers.shape == (BATCH, 2, heads)
    for row, length in enumerate(LENGTHS):
        for t in range(2):
            head_queries = [queries[row, t].numpy()]
            if heads == 2:
                head_queries = [share @ head_queries[0] for share in np.split(weights["query.weight"], 2)]
            window = {name.rpartition("window.")[2]: value for name, value in weights.items() if "window." in name}
            expected = [reference.predicted_center(query, length, window) for query in head_queries]
            np.testing.assert_allclose(centers[row, t], expected, rtol=0, atol=1e-10)


attentions = st.sampled_from([pair for pair in ATTENTIONS if pair[0] != "none"])


@given(
    attentions,
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 12),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(NORMALIZERS),
    st.integers(0, 2**16),
)
def test_weights_are_a_distribution_over_the_real_tokens(
    pair: tuple[str, str], lengths: list[int], half_width: int, step: int, heads: int, normalizer: Any, seed: int
) -> None:
    score, window = pair
    settings = settings_of(score, window, half_width, heads, normalizer)
    attention, rows = attention_of(settings), len(lengths)
    torch.manual_seed(seed)
    memory, queries = remembered(attention, tuple(lengths)), queries_of(settings, rows)
    coverage = coverage_of(tuple(lengths), 1) if score != "none" else None
    with torch.no_grad():
        weights = attention(queries, positions_of(step, rows=rows), memory, coverage).weights.squeeze(1)
    assert (weights >= 0).all()
    assert (weights[~mask_of(lengths)] == 0).all()
    totals = weights.sum(1)
    if score == "location":  # if all positions of a window lie beyond the rows of W_a, the weights are 0
        assert (totals <= 1 + 1e-12).all()
        assert (weights[:, SCORE_SIZES["location"]["max_source"] :] == 0).all()
    elif window == "local-p":
        assert (totals <= 1 + 1e-12).all()
        assert (totals > 0).all()
    else:
        torch.testing.assert_close(totals, torch.ones_like(totals), rtol=0, atol=1e-12)


def test_the_monotonic_window_moves_with_the_step_and_stops_at_the_last_token() -> None:
    settings = small(window="local-m", half_width=1)
    attention = attention_of(settings)
    attended = attention(queries_of(settings, 2, 4), positions_of(0, 1, 3, 8, rows=2), remembered(attention, (5, 3)))
    long, short = (attended.weights > 0).int().tolist()
    assert long == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert short == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0]]
    assert attended.centers is not None
    assert attended.centers.squeeze(-1).tolist() == [[0, 1, 3, 4], [0, 1, 2, 2]]


@pytest.mark.parametrize(
    ("ratio", "centers"),
    [(1.0, [0, 1, 2, 3, 4, 5]), (2.0, [0, 2, 4, 6, 8, 8]), (0.5, [0, 0, 1, 2, 2, 2]), (0.1, [0, 0, 0, 0, 0, 0])],
)
def test_the_ratio_sets_the_speed_of_the_monotonic_window(ratio: float, centers: list[int]) -> None:
    window = window_of(window="local-m", ratio=ratio)
    assert window.center(torch.zeros(1, 6, 5), positions_of(*range(6), rows=1), mask_of([9])).tolist() == [centers]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("window", ["local-m", "local-p"])
@pytest.mark.parametrize("score", SCORES)
def test_positions_outside_the_window_are_not_read(score: str, window: str, heads: int) -> None:
    settings = settings_of(score, window, 1, heads)
    attention, queries, coverage = attention_of(settings), queries_of(settings, 1), coverage_of((9,), 1)
    covered, positions = coverage if score != "none" else None, positions_of(4, rows=1)
    memory = remembered(attention, (9,))
    expected = attention(queries, positions, memory, covered)
    assert expected.centers is not None
    distance = (torch.arange(9.0) - expected.centers.view(-1, 1)).abs()
    is_outside = (distance > 3).view(1, *[heads] * (heads > 1), 9, 1)  # of 2D + 1 positions in a row, also at an end
    parts = {
        name: values.masked_fill(is_outside, math.nan) if values.is_floating_point() else values
        for name, values in (("annotations", memory.annotations), ("keys", memory.keys))
    }
    attended = attention(queries, positions, replace(memory, **parts), covered)
    assert torch.equal(attended.weights, expected.weights)
    assert torch.equal(attended.contexts, expected.contexts)
    assert is_outside.sum() >= 2 * heads


def test_a_window_beyond_the_rows_of_a_location_score_gets_no_weight_and_finite_gradients() -> None:
    settings = small(score="location", window="local-m", half_width=1)  # W_a has 6 rows
    attention = attention_of(settings)
    queries = queries_of(settings, 1).requires_grad_()
    attended = attention(queries, positions_of(9, rows=1), remembered(attention, (10,)))
    assert attended.weights.sum() == 0
    assert (attended.contexts == 0).all()
    attended.contexts.sum().backward()
    assert queries.grad is not None
    assert queries.grad.isfinite().all()


every_normalizer = pytest.mark.parametrize(
    "normalize", [build_normalizer(kind) for kind in get_args(recipe.NormalizerKind)]
)


@every_normalizer
def test_every_normalizer_is_stable_for_extreme_scores(normalize: Normalizer) -> None:
    scores = torch.tensor([[1e4, -1e4, 1e4, 5.0], [-1e30, -1e30, float("-inf"), 1e30]])
    allowed = torch.tensor([[True, True, True, True], [True, True, True, False]])
    torch.testing.assert_close(normalize(scores, allowed), torch.tensor([[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]]))


@given(st.integers(1, 60), st.floats(-3, 1.8), st.sampled_from(NORMALIZERS), st.integers(0, 2**16))
def test_normalizers_follow_the_equations(length: int, log_scale: float, kind: Any, seed: int) -> None:
    """Also in fp32, in long sentences, with ties, and for large and small scores."""
    torch.manual_seed(seed)
    scores = 10**log_scale * torch.randint(-9, 9, (2, length)).double() + torch.randn(2, length).double()
    scores[:, length // 2 :] = scores[:, length // 2 :].round()
    allowed, normalize = torch.rand(2, length) < 0.8, build_normalizer(kind)
    expected = np.stack(
        [reference.NORMALIZERS[kind](*row) for row in zip(scores.numpy(), allowed.numpy(), strict=True)]
    )
    np.testing.assert_allclose(normalize(scores, allowed), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(normalize(scores.float(), allowed), expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("kind", get_args(recipe.NormalizerKind))
def test_normalizers_have_the_gradients_of_finite_differences(kind: recipe.NormalizerKind) -> None:
    torch.manual_seed(1)
    scores = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)
    allowed, normalize = mask_of([9, 4, 1, 7]), build_normalizer(kind)
    assert torch.autograd.gradcheck(lambda values: normalize(values, allowed), scores)
    assert torch.autograd.gradgradcheck(lambda values: normalize(values, allowed), scores)
    assert ((normalize(scores, allowed) == 0)[0].any()) == (kind != "softmax")


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_softmax_inputs_are_at_least_fp32(kind: torch.dtype) -> None:
    assert at_least_fp32(torch.zeros(1, dtype=kind)).dtype == torch.promote_types(kind, torch.float32)


@every_normalizer
def test_a_row_without_allowed_positions_gets_no_weight(normalize: Normalizer) -> None:
    scores = torch.tensor([[1.0, 2.0], [3.0, 3.0]], requires_grad=True)
    weights = normalize(scores, torch.tensor([[False, False], [True, True]]))
    torch.testing.assert_close(weights, torch.tensor([[0, 0], [0.5, 0.5]]))
    (weights * torch.tensor([1.0, 2.0])).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[0].tolist() == [0, 0]
    assert scores.grad[1, 0] < 0 < scores.grad[1, 1]
