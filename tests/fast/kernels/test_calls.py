"""The table of the kernels' arguments: it is that of the C sources, and a call which does not fit is refused."""

from __future__ import annotations

import re
from ctypes import c_float, c_int64, c_void_p

import pytest
import torch
from torch import Tensor

from nmt.fast import gru
from nmt.fast.kernels import build
from nmt.fast.kernels.calls import KERNELS, Array, Number, checked
from tests.machine import needs_compiler

SIZES = {"gates": 18, "width": 6, "rows": 5, "64": 64, "4": 4}
"""Sizes of the arrays; others are 2."""
C_TYPES = {
    torch.float32: "float",
    torch.int64: "int64_t",
    torch.int32: "int32_t",
    torch.int8: "int8_t",
    torch.uint8: "uint8_t",
    torch.bool: "bool",
}


def test_the_table_is_that_of_the_sources() -> None:
    sources = "\n".join((build.FOLDER / name).read_text(encoding="utf-8") for name in build.SOURCES)
    prototypes = dict(re.findall(r"^void (\w+)\(([^)]*)\) \{", sources, re.MULTILINE))
    assert prototypes.keys() == KERNELS.keys()
    types = {"float": c_float, "int64_t": c_int64}
    for name, kernel in KERNELS.items():
        arguments = re.findall(r"(\w+) (\*?)(\w+)(?:,|$)", prototypes[name])
        assert [argument for *_, argument in arguments] == [array.name for array in kernel.arrays] + kernel.numbers
        assert [c_void_p if pointer else types[c_type] for c_type, pointer, _ in arguments] == kernel.types
        for array, (c_type, *_) in zip(kernel.arrays, arguments, strict=False):
            assert c_type == ("void" if len(array.dtypes) > 1 else C_TYPES[array.dtypes[0]])


class Arguments:
    """Tensors that fit a kernel."""

    def __init__(self, name: str, dtype: torch.dtype = torch.float32) -> None:
        self.name, self.kernel = name, KERNELS[name]
        self.tensors: dict[str, Tensor | None] = {
            array.name: torch.zeros(
                [SIZES.get(size, 2) for size in array.sizes],
                dtype=dtype if len(array.dtypes) > 1 else array.dtypes[0],
            )
            for array in self.kernel.arrays
        }

    def check(self, **changed: Tensor | None) -> dict[str, Number]:
        """The numbers for C, if some tensors are changed."""
        tensors = (self.tensors | changed).values()
        layouts = tuple(
            None if each is None else (each.dtype, each.shape, each.stride(), each.is_contiguous(), each.is_cpu)
            for each in tensors
        )
        sizes = {size for array in self.kernel.arrays for size in array.sizes}
        strides = {array.stride for array in self.kernel.arrays}
        free = tuple((number, 2) for number in self.kernel.numbers if number not in sizes | strides | {"narrow"})
        return dict(zip(self.kernel.numbers, checked(self.name, layouts, free), strict=True))

    def refuses(self, array: Array, tensor: Tensor | None) -> None:
        with pytest.raises(TypeError, match=f"^{self.name}: "):
            self.check(**{array.name: tensor})


@pytest.mark.parametrize("name", KERNELS)
def test_arguments_that_do_not_fit_are_refused(name: str) -> None:
    fitting = Arguments(name)
    numbers = fitting.check()
    assert all(
        numbers[size] == SIZES.get(size, 2)
        for array in fitting.kernel.arrays
        for size in array.sizes
        if size in numbers
    )
    for array in fitting.kernel.arrays:
        tensor = fitting.tensors[array.name]
        assert tensor is not None
        fitting.refuses(array, tensor.to("meta"))
        fitting.refuses(array, tensor.double())
        fitting.refuses(array, tensor.unsqueeze(0))
        fitting.refuses(array, torch.stack([tensor, tensor], -1)[..., 0])  # numbers of a row apart
        apart = torch.cat([tensor, tensor], -1)[..., : tensor.shape[-1]]
        if array.stride is not None:
            assert fitting.check(**{array.name: apart})[array.stride] == 2 * tensor.shape[1]
        elif tensor.dim() > 1:
            fitting.refuses(array, apart)
        for dim, size in enumerate(array.sizes):
            if size in {"4", "64"} or sum(size in other.sizes for other in fitting.kernel.arrays) > 1:
                fitting.refuses(array, tensor.narrow(dim, 0, tensor.shape[dim] - 1).contiguous())
        if array.is_optional:
            fitting.check(**{array.name: None})
        else:
            fitting.refuses(array, None)


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if "narrow" in kernel.numbers])
def test_numbers_in_fp32_and_bf16_are_told_apart_and_not_mixed(name: str) -> None:
    wide, narrow = Arguments(name), Arguments(name, torch.bfloat16)
    assert [wide.check()["narrow"], narrow.check()["narrow"]] == [False, True]
    both = [array for array in narrow.kernel.arrays if len(array.dtypes) > 1]
    for array in both if len(both) > 1 else ():
        narrow.refuses(array, wide.tensors[array.name])


@needs_compiler
def test_a_call_names_the_array_that_does_not_fit() -> None:
    steps, hidden = torch.zeros(2, 9), torch.zeros(2, 3)
    with pytest.raises(TypeError, match=r"gru_step: bias has a wrong type.*torch.bfloat16"):
        gru._step(steps, steps, torch.zeros(9).bfloat16(), hidden, hidden.clone(), torch.zeros(2, 4, 3))


@needs_compiler
def test_states_of_a_gru_with_bf16_weights() -> None:
    torch.manual_seed(3)
    layer = torch.nn.GRU(5, 5, batch_first=True).bfloat16().requires_grad_(requires_grad=False)
    weight, recurrent, bias, recurrent_bias = layer.all_weights[0]
    values = torch.randn(2, 4, 5).bfloat16()
    projected = torch.nn.functional.linear(values, weight, bias)
    states = gru.gru_states(projected, recurrent, recurrent_bias, torch.zeros(2, 5))
    torch.testing.assert_close(states.float(), layer.float()(values.float())[0], atol=0.05, rtol=0)
