"""Gradients that are formed once for all steps are those that autograd adds up step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.fast import accelerate
from nmt.fast.deferred import DeferredLinear, deferring
from nmt.model.decoder import AttendThenUpdate, UpdateThenAttend
from nmt.model.recurrent import RecurrentModel
from tests.fast.models import assert_near, assert_same, batch, learned, random_model
from tests.machine import needs_bf16, needs_fast, needs_packing
from tests.reference.settings import ORDERS, small

# --- single functions ---------------------------------------------------------------------------------------------


def test_steps_without_a_loss_are_left_out() -> None:
    layer = DeferredLinear(3, 2).double()
    first, second = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    with deferring():
        layer(first)
        used = layer(second)
    torch.autograd.backward(used.sum())
    torch.testing.assert_close(layer.weight.grad, second.sum(0).expand(2, 3))


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        pytest.param(torch.float32, 1e-5, marks=needs_packing),
        pytest.param(torch.bfloat16, 0.05, marks=needs_bf16),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_packed_steps_compute_the_products_and_gradients_of_the_plain_layer(
    dtype: torch.dtype, tolerance: float, bias: bool
) -> None:
    plain, layer = (nn.Linear(6, 5, bias=bias) for _ in range(2))
    layer.load_state_dict(plain.state_dict())
    layer.__class__ = DeferredLinear
    steps = [torch.randn(3, 6), torch.randn(6, 3).T, torch.randn(3, 12)[:, ::2]]
    twins = [[step.clone().requires_grad_() for step in steps] for _ in range(2)]
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32), deferring():
        products = [layer(step) for step in twins[0]]
    assert {product.dtype for product in products} == {dtype}
    torch.autograd.backward(sum(product.sum() for product in products))  # gradients with a stride of 0
    torch.autograd.backward(sum(plain(step).sum() for step in twins[1]))
    for product, step in zip(products, steps, strict=True):
        torch.testing.assert_close(product.float(), plain(step), atol=tolerance, rtol=tolerance)
    pairs = [*zip(*twins, strict=True), *zip(layer.parameters(), plain.parameters(), strict=True)]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.grad, theirs.grad, atol=tolerance, rtol=tolerance)


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


DTYPES = pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
"""Kernels compute in fp32 alone."""


# --- whole models; `test_twins.py` has every setting ----------------------------------------------------------------


def accelerated(**settings: Any) -> tuple[RecurrentModel, RecurrentModel]:
    """A model and its twin."""
    model = random_model(small(**settings))
    return model, accelerate(model)


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
@DTYPES
@pytest.mark.parametrize("order", ["bahdanau", "luong-feeding"])
def test_two_backward_passes_give_twice_the_gradient(order: str, dtype: torch.dtype, within: float) -> None:
    _, model = accelerated(order=order)
    loss = model.to(dtype)(batch()).loss
    torch.autograd.backward(loss, retain_graph=True)
    once = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    assert once
    torch.autograd.backward(loss)
    for name, gradient in once.items():
        assert_near(model.get_parameter(name).grad, 2 * gradient, within, name)  # type: ignore[arg-type]


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
