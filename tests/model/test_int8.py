"""Products in int8 against their definition, number by number, and what they do at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.errors import UsageError
from nmt.model.int8 import Int8Linear
from nmt.model.packed import packed, restricted
from tests.machine import needs_int8, needs_vnni
from tests.model.test_packed import ENOUGH, MODELS, model, outputs
from tests.reference.int8 import int8_product

pytestmark = needs_int8


def layer(inputs: int, size: int, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(3)
    return nn.Linear(inputs, size, bias=bias)


def product(of: nn.Linear, values: Tensor) -> Tensor:
    with torch.inference_mode():
        return of(values)  # type: ignore[no-any-return]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shift", [-3.0, 0.0, 0.2, 3.0])
@pytest.mark.parametrize("vnni", [pytest.param(True, marks=needs_vnni), False])
def test_it_is_its_definition(monkeypatch: pytest.MonkeyPatch, bias: bool, shift: float, vnni: bool) -> None:
    plain = layer(24, 17, bias=bias)
    values = torch.randn(5, 24) + shift
    added = plain.bias if bias else torch.zeros(17)
    arrays = [each.detach().double().numpy() for each in (values, plain.weight, added)]
    wanted, bound = int8_product(*arrays, most=127 if vnni else 63)
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: vnni)
    found = product(Int8Linear(plain), values).double().numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    exact = arrays[0] @ arrays[1].T + arrays[2]
    assert (np.abs(found - exact) <= bound + 1e-5).all()
    assert np.abs(found - exact).max() > 1e-4, "nothing was rounded"


def test_any_shape_and_layout_will_do() -> None:
    made = Int8Linear(layer(8, 6))
    values = torch.randn(3, 4, 8)
    found = product(made, values)
    assert found.shape == (3, 4, 6)
    torch.testing.assert_close(product(made, values.transpose(0, 1)), found.transpose(0, 1))
    torch.testing.assert_close(product(made, torch.cat([values, values], 2)[:, :, :8]), found)
    assert product(made, torch.randn(1, 8)).shape == (1, 6)
    torch.testing.assert_close(product(made, torch.zeros(2, 8)), made.bias.expand(2, -1))


def test_a_row_of_zeros_gives_zero_and_leaves_the_others() -> None:
    plain = layer(8, 6, bias=False)
    with torch.no_grad():
        plain.weight[2] = 0
    values = torch.randn(4, 8)
    found = product(Int8Linear(plain), values)
    assert (found[:, 2] == 0).all()
    torch.testing.assert_close(found, plain(values).detach(), atol=0.05, rtol=0)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_stays_none(wrong: float) -> None:
    plain = layer(8, 6)
    with torch.no_grad():
        plain.weight[2, 1] = wrong
    found = product(Int8Linear(plain), torch.randn(4, 8))
    assert not found[:, 2].isfinite().any()
    assert found[:, :2].isfinite().all()
    values = torch.randn(4, 8)
    values[1, 1] = wrong
    assert not product(Int8Linear(layer(8, 6)), values)[1].isfinite().any()


@pytest.mark.parametrize("name", MODELS)
def test_a_packed_model_computes_nearly_the_same(name: str) -> None:
    plain = model(name)
    made = packed(plain, "int8")
    assert isinstance(made.output, Int8Linear)
    wanted, rows = outputs(plain.eval())
    for _ in range(ENOUGH):
        logits, alignment = outputs(made)
        assert not torch.equal(logits, wanted)
        torch.testing.assert_close(logits, wanted, atol=0.2, rtol=0)
        torch.testing.assert_close(alignment, rows, atol=0.05, rtol=0)


@pytest.mark.parametrize("bias", [True, False])
def test_a_restricted_layer_gives_just_the_outputs_of_the_whole_one(bias: bool) -> None:
    whole, rows = Int8Linear(layer(6, 40, bias=bias)), torch.tensor([3, 17, 30])
    values = torch.randn(4, 6)
    few = restricted(whole, rows)
    assert isinstance(few, Int8Linear)
    torch.testing.assert_close(product(few, values), product(whole, values)[:, rows], atol=1e-6, rtol=1e-6)


def test_where_there_are_no_such_products_it_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="int8 needs a model in fp32 on a CPU"):
        packed(model().double(), "int8")
