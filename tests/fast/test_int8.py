"""Products in int8 against their definition, number by number, and what they do at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.errors import UsageError
from nmt.fast import pack
from nmt.fast.int8 import Int8Linear
from nmt.fast.kernels import decoding as kernels
from nmt.fast.kernels.decoding import int8_gru_step
from tests.fast.models import assert_same, random_model, search_results
from tests.machine import needs_int8, needs_int8_kernel, needs_vnni
from tests.reference.int8 import int8_product
from tests.reference.settings import small

pytestmark = needs_int8

PRODUCTS = [pytest.param("kernel", marks=needs_int8_kernel), pytest.param("vnni", marks=needs_vnni), "plain"]


@pytest.fixture(params=PRODUCTS)
def max_level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The largest integer of a row: products are those of our kernel, of oneDNN with VNNI, or of oneDNN without."""
    kind: str = request.param
    if kind == "kernel":
        return 127
    monkeypatch.setattr(kernels, "multiplies_int8", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: kind == "vnni")
    return 127 if kind == "vnni" else 63


def layer(inputs: int, size: int, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(3)
    return nn.Linear(inputs, size, bias=bias)


def product(of: nn.Linear, values: Tensor) -> Tensor:
    with torch.inference_mode():
        return of(values)  # type: ignore[no-any-return]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shift", [-3.0, 0.2])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(5, 24, 17), (1, 3, 64), (49, 8, 65), (100, 66, 130)])
def test_product_equals_its_definition(
    max_level: int, bias: bool, shift: float, rows: int, inputs: int, outputs: int
) -> None:
    plain = layer(inputs, outputs, bias=bias)
    values = torch.randn(rows, inputs) * torch.linspace(1, 5, rows)[:, None] + shift
    added = plain.bias if bias else torch.zeros(outputs)
    arrays = [array.detach().double().numpy() for array in (values, plain.weight, added)]
    expected, bound = int8_product(*arrays, most=max_level)
    actual = product(Int8Linear(plain), values).double().numpy()
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    exact = arrays[0] @ arrays[1].T + arrays[2]
    assert (np.abs(actual - exact) <= bound + 1e-5).all()
    assert np.abs(actual - exact).max() > 1e-4, "nothing was rounded"


def test_row_does_not_depend_on_other_rows(max_level: int) -> None:
    packed, values = Int8Linear(layer(24, 17)), torch.randn(60, 24)
    values[7] *= 100
    together = product(packed, values)
    for row in range(len(values)):
        assert torch.equal(product(packed, values[row : row + 1])[0], together[row])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_non_finite_values_stay_so(max_level: int, wrong: float) -> None:
    plain = layer(8, 6)
    with torch.no_grad():
        plain.weight[2, 1] = wrong
    actual = product(Int8Linear(plain), torch.randn(4, 8))
    assert not actual[:, 2].isfinite().any()
    assert actual[:, :2].isfinite().all()
    values = torch.randn(4, 8)
    values[1, 1] = wrong
    actual = product(Int8Linear(layer(8, 6)), values)
    assert not actual[1].isfinite().any()
    assert actual[[0, 2, 3]].isfinite().all()


@needs_int8_kernel
@pytest.mark.parametrize("settings", [{}, {"order": "luong-feeding", "layers": 2}, {"cell": "lstm"}])
def test_fused_steps_equal_separate_products(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plain, called = random_model(small(**settings, annotation=64, hidden=64)).float(), 0
    packed = pack(plain, "int8")
    assert isinstance(packed.get_submodule("output.linear"), Int8Linear)

    def step(*arguments: Any) -> Tensor:
        nonlocal called
        called += 1
        return int8_gru_step(*arguments)

    monkeypatch.setattr(kernels, "int8_gru_step", step)
    fused = search_results(packed)
    assert (called > 0) == ("cell" not in settings)
    monkeypatch.setattr("nmt.fast.packed_gru.panels_of_gates", lambda recurrent: None)
    assert_same(fused, search_results(packed), 1e-5)


def test_without_int8_products_there_is_a_clear_error() -> None:
    with pytest.raises(UsageError, match="int8 needs a model in fp32 on a CPU"):
        pack(random_model(small()), "int8")
