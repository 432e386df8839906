"""Training's compiled kernels against PyTorch: models as a whole in fp64, and each kernel at its edges."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.fast import accelerate, attention, gru, loss
from nmt.fast.attention import attend_additively
from nmt.fast.deferred import deferring
from nmt.fast.kernels import calls
from nmt.fast.loss import chunked_cross_entropy
from tests.fast.models import assert_near, assert_same, learned, plain_loss, random_model
from tests.machine import needs_compiler, needs_fast
from tests.reference.settings import ORDERS, small

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(6)


def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on training uses no kernel."""
    for module in (gru, loss, attention):
        monkeypatch.setattr(module, "can_use", lambda *tensors: False)


def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that training calls from here on, in their order."""
    called: list[str] = []

    def record(name: str, *arrays: Any, **numbers: Any) -> None:
        called.append(name)
        calls.call(name, *arrays, **numbers)

    for module in (gru, loss, attention):
        monkeypatch.setattr(module, "call", record)
    return called


# --- whole models -------------------------------------------------------------------------------------------------


@needs_fast
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("score", "window"), [("additive", "global"), ("concat", "local-p"), ("general", "local-m")])
def test_models_use_the_kernels_and_have_the_plain_gradients(
    score: str, window: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(small(score=score, window=window, half_width=1, order=order))
    exact = learned(model)
    called = compiled(monkeypatch)
    ours = learned(accelerate(model.float()))
    assert {"softmax_gradient", "gru_step", "gru_step_back"} <= set(called)
    assert ("additive_keys_back" in called) == (score != "general")
    assert_same(ours, exact, 1e-5)


@needs_fast
@pytest.mark.parametrize("order", ORDERS)
def test_bf16_gradients_are_as_near_as_without_kernels(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(small(order=order, readout="tanh"))  # of a maxout rounding may choose the other
    exact = learned(model)
    fast = accelerate(model.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = learned(fast)
        plain(monkeypatch)
        without = learned(fast)
    error, usual = (sum(float((each[name] - exact[name]).norm()) for name in exact) for each in (ours, without))
    assert error <= 1.3 * usual


@needs_fast
def test_thread_count_changes_only_rounding() -> None:
    model = accelerate(random_model(small()).float())
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = learned(model)
        torch.set_num_threads(3)
        three = learned(model)
    finally:
        torch.set_num_threads(threads)
    assert_same(three, one, 1e-6)


# --- attention ----------------------------------------------------------------------------------------------------


def attention_gradients(queries: Tensor, keys: Tensor, v: Tensor, mask: Tensor, h: Tensor, by: Tensor) -> list[Tensor]:
    """Of a sum of contexts and weights of two steps, for queries, keys, v and annotations."""
    inputs = [each.detach().requires_grad_() for each in (queries, keys, v, h)]
    query_input, key_input, vector, annotations = inputs
    score = torch.nn.Linear(v.shape[0], 1, bias=False)
    score.weight = torch.nn.Parameter(vector.detach().unsqueeze(0))
    total = torch.zeros((), dtype=queries.dtype)
    if queries.dtype == torch.float64:
        for step in query_input.unbind(0):
            scores = torch.tanh(step.unsqueeze(1) + key_input) @ vector
            weights = torch.softmax(scores.masked_fill(~mask, -1e30), -1) * mask
            total = total + (torch.einsum("ns,nsa->na", weights, annotations) * by).sum() + (weights**2).sum()
        return list(torch.autograd.grad(total, inputs))
    with deferring():
        attended = attend_additively(query_input.transpose(0, 1), key_input, score, annotations, mask)
        assert attended is not None
        total = (attended[0] * by.unsqueeze(1)).sum() + (attended[1] ** 2).sum()
    gradients_ = torch.autograd.grad(total, [query_input, key_input, score.weight, annotations])
    return [each.squeeze(0) if each is gradients_[2] else each for each in gradients_]


@pytest.mark.parametrize(("width", "length", "annotation"), [(1, 1, 1), (2, 3, 5), (33, 17, 20), (512, 12, 64)])
@pytest.mark.parametrize("size", [0.01, 1.0, 5.0])
def test_attention_gradients_equal_their_equation(width: int, length: int, annotation: int, size: float) -> None:
    mask = torch.rand(4, length) > 0.3
    mask[:, 0] = True
    mask[3] = False  # a sentence without words
    inputs = torch.randn(2, 4, width) * size, torch.randn(4, length, width) * size, torch.randn(width), mask
    annotations, by = torch.randn(4, length, annotation), torch.randn(4, annotation)
    ours = attention_gradients(*inputs, annotations, by)
    wide = [each.double() if each.is_floating_point() else each for each in (*inputs, annotations, by)]
    for actual, expected in zip(ours, attention_gradients(*wide), strict=True):
        assert_near(actual, expected, 1e-4)


def test_attention_gradients_hold_for_all_magnitudes() -> None:
    sizes = torch.tensor([0.0, 1e-30, 1.0, 20.0, 43.0, 45.0, 88.0, 1e4, 1e30])
    queries = torch.cat([sizes, -sizes])[None, :, None].expand(2, -1, 3).contiguous()
    keys = torch.tensor([0.0, 1e-30, 0.3, 9.0, 29.9, -0.3, -9.0, -29.9])[None, :, None].expand(18, -1, 3).contiguous()
    inputs = queries, keys, torch.tensor([1.0, -2.0, 3.0]), torch.ones(18, 8, dtype=torch.bool), keys, torch.ones(18, 3)
    wide = [each.double() if each.is_floating_point() else each for each in inputs]
    for actual, expected in zip(attention_gradients(*inputs), attention_gradients(*wide), strict=True):
        assert actual.isfinite().all()
        assert_near(actual, expected, 1e-5)


def test_too_large_keys_are_left_to_pytorch() -> None:
    keys, mask = torch.full((1, 2, 3), 31.0), torch.ones(1, 2, dtype=torch.bool)
    with deferring():
        for _ in range(2):
            assert attend_additively(torch.randn(1, 4, 3), keys, torch.nn.Linear(3, 1), keys, mask) is None


# --- cross-entropy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "vocabulary"), [(1, 1), (65, 300), (64, 256), (0, 5)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_fp32_is_near_the_plain_layer_in_fp64(
    words: int, vocabulary: int, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = compiled(monkeypatch)
    values = tuple(torch.randn(*shape).requires_grad_() for shape in ((words, 8), (vocabulary, 8), (vocabulary,)))
    target = torch.randint(0, vocabulary, (words,))
    actual = chunked_cross_entropy(values[0], values[1], values[2], target, smoothing)
    wide = [value.detach().double().requires_grad_() for value in values]
    expected = plain_loss(wide[0], wide[1], wide[2], target, smoothing)
    assert called == ["softmax_gradient"] * bool(words)
    for part, exact in zip(actual, expected, strict=True):
        assert_near(part, exact.detach(), 1e-5)
    if words:
        gradients = torch.autograd.grad(actual[0], values), torch.autograd.grad(expected[0], wide)
        for gradient, exact in zip(*gradients, strict=True):
            assert_near(gradient, exact, 1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_non_finite_readouts_show_in_the_loss_and_in_their_row_only(bad: float) -> None:
    readouts, weight = torch.randn(5, 8), torch.randn(300, 8)
    readouts[2, 3] = bad
    loss, log_probs = chunked_cross_entropy(readouts, weight, torch.zeros(300), torch.arange(5), 0.1)
    assert not loss.isfinite()
    assert log_probs.isfinite().tolist() == [True, True, False, True, True]


# --- numbers in bf16 -----------------------------------------------------------------------------------------------


def test_bf16_rounding_equals_that_of_pytorch() -> None:
    """By way of GRU steps with z = 1/2 and n = 1, of which (1 - z) n + z s is exact in fp32."""
    hidden = (torch.randn(64, 300) * torch.logspace(-3, 3, 300)).bfloat16()
    hidden[3, 5] = float("nan")
    rows, width = hidden.shape
    nothing = torch.zeros_like(hidden)
    projected, recurrent = torch.cat([nothing, nothing, nothing + 1e30], 1), nothing.repeat(1, 3)
    following = torch.empty_like(hidden)
    gru._step(projected, recurrent, None, hidden, following, hidden.new_empty(rows, 4, width))
    expected = (0.5 + 0.5 * hidden.double()).bfloat16()
    torch.testing.assert_close(following, expected, rtol=0, atol=0, equal_nan=True)
    assert (expected.double() != 0.5 + 0.5 * hidden.double()).any(), "nothing was rounded"


@pytest.mark.parametrize(("first", "second"), list(product([torch.float32, torch.bfloat16, torch.float64], repeat=2)))
def test_kernels_accept_fp32_and_bf16(first: torch.dtype, second: torch.dtype) -> None:
    usable = first == second and first != torch.float64
    assert calls.can_use(torch.ones(2, 2, dtype=first), torch.ones(2, 2, dtype=second)) == usable
    assert not calls.can_use(torch.ones(2, 3, dtype=first).T)
