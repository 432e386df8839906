"""Scores, windows, weights and context against the equations, and what must hold for any of them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call

from nmt import recipe
from nmt.model.attention import Attention, at_least_fp32, masked_softmax
from tests.reference import attention as reference
from tests.reference.settings import ATTENTIONS, SCORE_SIZES, small

BATCH, SOURCE, ANNOTATION = 3, 5, 4
LENGTHS = (5, 1, 3)


def attention_of(settings: dict) -> Attention:
    """An attention in float64 whose every weight, biases included, is random."""
    torch.manual_seed(1)
    chosen = recipe.Attention.model_validate(settings["attention"])
    attention = Attention(chosen, query=settings["decoder"]["hidden"], annotation=2 * settings["encoder"]["hidden"])
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    return attention.double()


def remembered(attention: Attention, lengths: tuple[int, ...] = LENGTHS, annotation: int = ANNOTATION):
    mask = torch.arange(max(lengths)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)
    annotations = torch.randn(len(lengths), max(lengths), annotation, dtype=torch.float64) * mask.unsqueeze(-1)
    return attention.remember(annotations, mask, torch.randn(len(lengths), annotation, dtype=torch.float64))


def weights_of(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def query_of(settings: dict, rows: int = BATCH) -> Tensor:
    return torch.randn(rows, settings["decoder"]["hidden"], dtype=torch.float64)


@pytest.mark.parametrize("half_width", [1, 3])
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_weights_and_context_follow_the_equations(score: str, window: str, half_width: int) -> None:
    settings = small(score=score, window=window, half_width=half_width)
    attention = attention_of(settings)
    memory, query = remembered(attention), query_of(settings)
    for step in (0, 2, 7):
        context, weights = attention(query, torch.full((BATCH,), step), memory)
        for row, length in enumerate(LENGTHS):
            annotations = memory.annotations[row, :length].numpy()
            summary = memory.summary[row].numpy()
            expected_context, alpha = reference.attend(
                query[row].numpy(), step, annotations, summary, settings["attention"], weights_of(attention)
            )
            np.testing.assert_allclose(context[row].detach(), expected_context, rtol=0, atol=1e-10)
            np.testing.assert_allclose(weights[row, :length].detach(), alpha, rtol=0, atol=1e-10)


def test_weights_and_context_fit_on_paper() -> None:
    attention = attention_of(small(score="dot", annotation=2))
    annotations = torch.eye(2, dtype=torch.float64).unsqueeze(0)
    memory = attention.remember(annotations, torch.ones(1, 2, dtype=torch.bool), torch.zeros(1, 2, dtype=torch.float64))
    query = torch.tensor([[math.log(3), 0.0]], dtype=torch.float64)
    context, weights = attention(query, torch.zeros(1, dtype=torch.long), memory)
    assert weights.tolist() == [[pytest.approx(0.75), pytest.approx(0.25)]]
    assert context.tolist() == [[pytest.approx(0.75), pytest.approx(0.25)]]


@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_gradients_are_those_of_the_function(score: str, window: str) -> None:
    settings = small(score=score, window=window, half_width=2)
    attention = attention_of(settings)
    memory, query = remembered(attention), query_of(settings)
    names = [name for name, _ in attention.named_parameters()]

    def attend(query: Tensor, annotations: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        return functional_call(both, dict(zip(prefixed, weights, strict=True)), (query, annotations))

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention

        def forward(self, query: Tensor, annotations: Tensor) -> tuple[Tensor, Tensor]:
            remembered = self.attention.remember(annotations, memory.mask, memory.summary)
            context, weights = self.attention(query, torch.arange(BATCH), remembered)
            return context + 0 * query.sum() + 0 * annotations.sum(), weights + 0 * query.sum()

    both, prefixed = Both(), [f"attention.{name}" for name in names]
    inputs = [query, memory.annotations, *attention.parameters()]
    assert gradcheck(attend, tuple(value.detach().requires_grad_() for value in inputs))


attentions = st.sampled_from([pair for pair in ATTENTIONS if pair[0] != "none"])


@hypothesis_settings(deadline=None)
@given(
    attentions,
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 12),
    st.integers(0, 2**16),
)
def test_weights_are_a_share_of_the_real_words(
    pair: tuple[str, str], lengths: list[int], half_width: int, step: int, seed: int
) -> None:
    score, window = pair
    settings = small(score=score, window=window, half_width=half_width)
    attention = attention_of(settings)
    torch.manual_seed(seed)
    memory, query = remembered(attention, tuple(lengths)), query_of(settings, len(lengths))
    with torch.no_grad():
        _, weights = attention(query, torch.full((len(lengths),), step), memory)
    assert (weights >= 0).all()
    assert (weights[~memory.mask] == 0).all()
    totals = weights.sum(1)
    if score == "location":  # a window whose every position lies beyond W_a's rows has nothing to weigh
        assert (totals <= 1 + 1e-12).all()
        assert (weights[:, SCORE_SIZES["location"]["max_source"] :] == 0).all()
    elif window == "local-p":
        assert (totals <= 1 + 1e-12).all()
        assert (totals > 0).all()
    else:
        torch.testing.assert_close(totals, torch.ones_like(totals), rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", ["additive", "dot", "general", "concat", "location"])
@pytest.mark.parametrize("window", ["local-m", "local-p"])
def test_a_window_as_wide_as_the_sentence_is_global_times_the_gaussian(score: str, window: str) -> None:
    settings = small(score=score, window=window, half_width=SOURCE)
    local, everywhere = attention_of(settings), attention_of(small(score=score))
    everywhere.load_state_dict({name: value for name, value in local.state_dict().items() if "window" not in name})
    memory, query, position = remembered(local), query_of(settings), torch.tensor([0, 2, 9])
    _, expected = everywhere(query, position, memory)
    if window == "local-p":
        away = torch.arange(SOURCE).unsqueeze(0) - local.window.center(query, memory.mask).unsqueeze(1)
        expected = expected * torch.exp(-(away**2) / (2 * (SOURCE / 2) ** 2))
    _, weights = local(query, position, memory)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)


def test_the_monotonic_window_moves_with_the_step_and_stops_at_the_last_word() -> None:
    attention = attention_of(small(window="local-m", half_width=1))
    memory = remembered(attention, (5, 3))
    query = torch.randn(2, 5, dtype=torch.float64)
    seen = [(attention(query, torch.full((2,), step), memory)[1] > 0).int().tolist() for step in (0, 1, 3, 8)]
    assert [long for long, _ in seen] == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert [short for _, short in seen] == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0]]


def test_rows_may_be_at_different_steps() -> None:
    attention = attention_of(small(window="local-m"))
    memory = remembered(attention, (5, 5))
    query = torch.randn(2, 5, dtype=torch.float64)
    _, together = attention(query, torch.tensor([0, 4]), memory)
    _, first = attention(query, torch.tensor([0, 0]), memory)
    _, last = attention(query, torch.tensor([4, 4]), memory)
    torch.testing.assert_close(together, torch.stack([first[0], last[1]]), rtol=0, atol=0)


def test_a_location_window_beyond_the_known_positions_weighs_nothing_and_stays_finite() -> None:
    settings = small(score="location", window="local-m", half_width=1)  # W_a has 6 rows
    attention = attention_of(settings)
    memory, query = remembered(attention, (10,)), query_of(settings, 1).requires_grad_()
    context, weights = attention(query, torch.tensor([9]), memory)
    assert weights.sum() == 0
    assert (context == 0).all()
    context.sum().backward()
    assert query.grad.isfinite().all()


def test_the_softmax_holds_extreme_scores() -> None:
    scores = torch.tensor([[1e4, -1e4, 1e4, 5.0], [-1e30, -1e30, float("-inf"), 1e30]])
    allowed = torch.tensor([[True, True, True, True], [True, True, True, False]])
    assert masked_softmax(scores, allowed).tolist() == [[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]]


def test_a_row_that_allows_nothing_gets_no_weight() -> None:
    scores = torch.tensor([[1.0, 2.0], [3.0, 3.0]], requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[False, False], [True, True]]))
    assert weights.tolist() == [[0, 0], [0.5, 0.5]]
    (weights * torch.tensor([1.0, 2.0])).sum().backward()
    assert scores.grad.tolist() == [[0, 0], [-0.25, 0.25]]


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [("bfloat16", "float32"), ("float16", "float32"), ("float32", "float32"), ("float64", "float64")],
)
def test_softmax_inputs_have_at_least_the_digits_of_fp32(given_type: str, kept: str) -> None:
    assert at_least_fp32(torch.zeros(1, dtype=getattr(torch, given_type))).dtype == getattr(torch, kept)


@pytest.mark.parametrize("score", ["additive", "general", "none"])
def test_selecting_rows_of_a_memory_picks_and_repeats_them(score: str) -> None:
    memory = remembered(attention_of(small(score=score)))
    picked = memory.select(torch.tensor([2, 0, 2]))
    for name in ("annotations", "keys", "mask", "summary"):
        assert torch.equal(getattr(picked, name), getattr(memory, name)[[2, 0, 2]])
