"""Gradients that are formed once for all steps are those that autograd adds up step by step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.fast import accelerate
from nmt.fast.accelerate import TRAINING_TWINS
from nmt.fast.deferred import DeferredLinear, additive_scores, deferring, dot_scores, is_deferring, step_sum
from nmt.fast.gru import FastGru, FastGruCell
from nmt.model.cells import GruCell
from nmt.model.decoder import AttendThenUpdate, UpdateThenAttend
from nmt.model.recurrent import RecurrentModel
from tests.fast.models import assert_near, assert_same, batch, learned, random_model
from tests.machine import needs_fast
from tests.reference.settings import ORDERS, READOUTS, small

Step = Callable[..., Tensor]


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def seen_while_running(model: nn.Module) -> list[bool]:
    """Whether the decoder's recurrence runs inside `deferring()`, of each of its steps from here on."""
    seen: list[bool] = []
    recurrence = model.get_submodule("decoder.recurrence")
    recurrence.register_forward_hook(lambda *_: seen.append(is_deferring()))
    return seen


# --- single functions ---------------------------------------------------------------------------------------------


FUNCTIONS: dict[str, tuple[Step, Step, tuple[int, ...], tuple[int, ...]]] = {
    "dot_scores": (dot_scores, lambda query, keys: torch.einsum("nd,nsd->ns", query, keys), (3, 4), (3, 5, 4)),
    "step_sum": (step_sum, lambda weights, values: torch.einsum("ns,nsa->na", weights, values), (3, 5), (3, 5, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_step_functions_equal_their_equations(name: str) -> None:
    fast, plain, of_step, shared_shape = FUNCTIONS[name]
    torch.manual_seed(1)
    steps, shared = [random(*of_step) for _ in range(4)], random(*shared_shape)
    by = torch.randn(4, *plain(steps[0], shared).shape, dtype=torch.float64)

    def results(function: Step, on: bool) -> tuple[Tensor, ...]:
        with deferring(on):
            values = torch.stack([function(step, shared) for step in steps])
        return (values.detach(), *torch.autograd.grad((values * by).sum(), [*steps, shared]))

    exact = results(plain, False)
    for on in (False, True):
        for ours, expected in zip(results(fast, on), exact, strict=True):
            torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


def test_additive_scores_equal_their_equation() -> None:
    torch.manual_seed(1)
    queries, keys, v = [random(3, 4) for _ in range(4)], random(3, 5, 4), nn.Linear(4, 1, bias=False).double()
    by = torch.randn(4, 3, 5, dtype=torch.float64)

    def results(score: Step, on: bool) -> tuple[Tensor, ...]:
        with deferring(on):
            values = torch.stack([score(query, keys, v) for query in queries])
        return (values.detach(), *torch.autograd.grad((values * by).sum(), [*queries, keys, v.weight]))

    exact = results(lambda query, keys, v: v(torch.tanh(query.unsqueeze(1) + keys)).squeeze(-1), False)
    for on in (False, True):
        for ours, expected in zip(results(additive_scores, on), exact, strict=True):
            torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


def test_steps_without_a_loss_are_left_out() -> None:
    layer = DeferredLinear(3, 2).double()
    first, second = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    with deferring():
        layer(first)
        used = layer(second)
    torch.autograd.backward(used.sum())
    torch.testing.assert_close(layer.weight.grad, second.sum(0).expand(2, 3))


def test_layer_without_a_loss_has_no_gradient() -> None:
    layer = DeferredLinear(3, 2)
    values = torch.randn(4, 3, requires_grad=True)
    with deferring():
        layer(values)
    torch.autograd.backward(values.sum())
    assert layer.weight.grad is None


def test_layers_that_share_a_weight_keep_their_own_biases() -> None:
    """Two with different biases, the third without one."""
    layers = [DeferredLinear(3, 3, bias=bias).double() for bias in (True, True, False)]
    for layer in layers[1:]:
        layer.weight = layers[0].weight
    parameters = [layers[0].weight, layers[0].bias, layers[1].bias]
    values = torch.randn(2, 3, dtype=torch.float64)

    def loss() -> Tensor:
        states = values
        for layer in layers * 2:
            states = torch.tanh(layer(states))
        return states.square().sum()

    expected = loss()
    with deferring():
        actual = loss()
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(torch.autograd.grad(actual, parameters), torch.autograd.grad(expected, parameters))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_fast_gates_equal_plain_gates(layer_norm: bool) -> None:
    torch.manual_seed(2)
    cell, fast = (kind(5, layer_norm=layer_norm).double() for kind in (GruCell, FastGruCell))
    fast.load_state_dict(cell.state_dict())
    inputs, by = [random(4, 15), random(4, 5)], torch.randn(4, 5, dtype=torch.float64)
    plain, _ = cell(*inputs)
    expected = torch.autograd.grad((plain * by).sum(), [*inputs, *cell.parameters()])
    for on in (False, True):
        with deferring(on):
            ours, _ = fast(*inputs)
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12)
        for actual, other in zip(
            torch.autograd.grad((ours * by).sum(), [*inputs, *fast.parameters()]), expected, strict=True
        ):
            torch.testing.assert_close(actual, other, rtol=0, atol=1e-9)


def test_fast_gru_equals_that_of_pytorch() -> None:
    torch.manual_seed(1)
    plain, fast = (kind(3, 5, batch_first=True).double() for kind in (nn.GRU, FastGru))
    fast.load_state_dict(plain.state_dict())
    values, upstream = random(4, 6, 3), torch.randn(4, 6, 5, dtype=torch.float64)
    (ours, last), (expected, final) = fast(values), plain(values)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(last, final, rtol=0, atol=1e-12)
    for actual, other in zip(
        torch.autograd.grad(ours, [values, *fast.parameters()], upstream),
        torch.autograd.grad(expected, [values, *plain.parameters()], upstream),
        strict=True,
    ):
        torch.testing.assert_close(actual, other, rtol=0, atol=1e-9)
    with torch.no_grad():
        torch.testing.assert_close(fast(values)[0], expected, rtol=0, atol=1e-12)


# --- whole models; `test_twins.py` has every setting ----------------------------------------------------------------


def accelerated(**settings: Any) -> tuple[RecurrentModel, RecurrentModel]:
    """A model and its twin."""
    model = random_model(small(**settings))
    return model, accelerate(model)


@needs_fast
@pytest.mark.parametrize(("readout", "order"), list(product(READOUTS, ORDERS)))
def test_every_readout_in_every_order(readout: str, order: str) -> None:
    model, fast = accelerated(readout=readout, order=order, layers=2)
    assert_same(learned(fast), learned(model), 1e-9)


@needs_fast
@pytest.mark.parametrize("order", ORDERS)
def test_with_dropout_everywhere(order: str) -> None:
    """The twin against itself without deferring: both draw the same masks, which those of the plain model are not."""
    dropout = {"embedding": 0.2, "word": 0.2, "annotations": 0.2, "layers": 0.2, "recurrent": 0.3, "readout": 0.2}
    _, fast = accelerated(order=order, layers=2, dropout=dropout)
    fast.train()
    ours = learned(fast)
    order_type = AttendThenUpdate if isinstance(fast.decoder, AttendThenUpdate) else UpdateThenAttend
    fast.decoder.__class__ = order_type
    assert_same(ours, learned(fast), 1e-9)


@needs_fast
@pytest.mark.parametrize("order", ORDERS)
def test_two_backward_passes_give_twice_the_gradient(order: str) -> None:
    _, model = accelerated(order=order)
    loss = model(batch()).loss
    torch.autograd.backward(loss, retain_graph=True)
    once = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    assert once
    torch.autograd.backward(loss)
    for name, gradient in once.items():
        assert_near(model.get_parameter(name).grad, 2 * gradient, 1e-9, name)  # type: ignore[arg-type]


@needs_fast
def test_frozen_weights_have_no_gradient_and_change_no_other() -> None:
    model, fast = accelerated()
    expected = learned(model)
    frozen = [name for name, _ in model.named_parameters() if "recurrence" in name or "score" in name]
    assert frozen
    model.zero_grad()
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    assert_same(learned(fast), {name: value for name, value in expected.items() if name not in frozen}, 1e-9)


@needs_fast
def test_autocast_gradients_are_near() -> None:
    model, fast = accelerated(annotation=16, hidden=17, embedding=8)
    exact = learned(model)
    model.float()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = learned(fast)
    for name, value in exact.items():
        assert rounded[name].dtype == torch.float32
        assert (rounded[name] - value).norm() <= 0.1 * value.norm(), name


@needs_fast
def test_search_defers_nothing() -> None:
    _, fast = accelerated()
    seen = seen_while_running(fast)
    sample, rows = batch(), torch.arange(len(batch().source))
    with torch.no_grad():
        memory = fast.encode(sample.source, sample.source_mask)
        fast.step(sample.target_in[:, 0], fast.start(memory), memory, rows)
        fast(sample)
    assert len(seen) == 1 + sample.target_in.shape[1]
    assert not any(seen)


@needs_fast
@pytest.mark.parametrize("order", ["bahdanau", "bahdanau-conditional", "luong-feeding"])
def test_recurrent_steps_defer_in_training(order: str) -> None:
    _, fast = accelerated(order=order, score="general")
    seen = seen_while_running(fast)
    learned(fast)
    assert seen == [True] * batch().target_in.shape[1]


@needs_fast
def test_attention_without_kernels_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """In fp32, where there are kernels, `DeferredAttention` takes one; in all types it can do without."""
    model, fast = accelerated()
    exact = learned(model)
    model.float()
    monkeypatch.setattr("nmt.fast.kernels.training.can_use", lambda *_: False)
    assert_same(learned(fast), exact, 2e-5)


def test_every_training_twin_is_a_subclass_of_its_type() -> None:
    for plain, fast in TRAINING_TWINS.items():
        assert issubclass(fast, plain)
        assert fast is not plain
