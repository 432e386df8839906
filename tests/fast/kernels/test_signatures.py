"""The declared signatures of the kernels: against the prototypes in C, and that a call which does not fit is refused."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.fast.gru import gru_states
from nmt.fast.kernels import decoding as kernels
from nmt.fast.kernels import training as training_kernels
from nmt.fast.kernels.calls import Kernel
from nmt.fast.kernels.signatures import DECLARATIONS, DTYPES, SIGNATURES, Array, Rule
from nmt.search.finished import FinishedHypotheses
from nmt.search.options import SearchOptions
from tests.machine import needs_compiler

SIZES = {
    "count": 64,
    "per_row": 5,
    "width": 6,
    "gates": 18,
    "rows": 4,
    "inputs": 5,
    "outputs": 60,
    "length": 3,
    "lengths": 9,
    "panel_count": 3,
    "64": 64,
    "4": 4,
}
"""Sizes with which all rules hold; others are 2."""


def test_types_are_those_of_c_and_sizes_those_of_the_table() -> None:
    step = SIGNATURES["gru_step"]
    assert step.arrays[0] == Array(
        "projected", DTYPES["void"], ("rows", "gates"), is_written=False, has_strided_rows=True
    )
    assert step.arrays[2] == Array("bias", (torch.float32,), ("gates",), is_written=False, has_strided_rows=False)
    assert step.arrays[5] == Array(
        "saved", DTYPES["void"], ("rows", "4", "width"), is_written=True, has_strided_rows=False
    )
    assert (step.numbers[:2], step.free_numbers, step.returns_number) == (("threads", "rows"), ("threads",), False)
    assert SIGNATURES["exp_of_keys"].returns_number
    assert SIGNATURES.keys() == DECLARATIONS.keys()


def test_kernels_of_both_types_read_narrow() -> None:
    for signature in SIGNATURES.values():
        takes_both = any(array.dtypes == DTYPES["void"] for array in signature.arrays)
        assert ("narrow" in signature.numbers) == takes_both
        assert not signature.sizes & {array.name for array in signature.arrays}


# --- calls that do not fit ----------------------------------------------------------------------------------------


class SilentKernel:
    """A kernel that does nothing, with arguments that fit; records what reaches C."""

    def __init__(self, name: str, dtype: torch.dtype = torch.float32) -> None:
        self.signature = SIGNATURES[name]
        self.received: list[tuple[int | None, ...]] = []
        self.kernel = Kernel(self.signature, lambda *arguments: self.received.append(arguments))
        self.tensors = {array.name: zeros(array, dtype) for array in self.signature.arrays}

    def call(self, **changed: Tensor | None) -> None:
        """Call it, with some arguments changed."""
        self.kernel([*(self.tensors | changed).values()], [2] * len(self.signature.free_numbers))


def zeros(array: Array, dtype: torch.dtype) -> Tensor:
    shape = [SIZES.get(size, 2) for size in array.sizes]
    return torch.zeros(shape, dtype=dtype if array.dtypes == DTYPES["void"] else array.dtypes[0])


EVERY = pytest.mark.parametrize("name", SIGNATURES)


@EVERY
def test_fitting_arguments_reach_the_kernel_with_their_sizes(name: str) -> None:
    kernel = SilentKernel(name)
    kernel.call()
    ((*addresses,), count) = kernel.received[0], len(kernel.tensors)
    assert addresses[:count] == [tensor.data_ptr() for tensor in kernel.tensors.values()]
    sizes = dict.fromkeys(kernel.signature.numbers, 2) | {"narrow": False} | SIZES
    strides = {f"{key}_stride": value.stride(0) for key, value in kernel.tensors.items() if value.dim()}
    free = dict.fromkeys(kernel.signature.free_numbers, 2)
    expected = [(sizes | strides | free)[number] for number in kernel.signature.numbers]
    assert addresses[count:] == expected


@EVERY
def test_wrong_type_is_refused(name: str) -> None:
    kernel = SilentKernel(name)
    for array in kernel.signature.arrays:
        for dtype in {torch.float64, torch.bfloat16, torch.int64, torch.int32} - set(array.dtypes):
            with pytest.raises(TypeError, match=rf"^{name}: {array.name} must be .*, but is {dtype} "):
                kernel.call(**{array.name: kernel.tensors[array.name].to(dtype)})
    assert kernel.received == []


@EVERY
def test_mixed_fp32_and_bf16_is_refused(name: str) -> None:
    kernel = SilentKernel(name, torch.bfloat16)
    kernel.call()
    free = [array for array in kernel.signature.arrays if array.dtypes == DTYPES["void"]]
    for array in free if len(free) > 1 else ():
        with pytest.raises(TypeError, match=rf"^{name}: "):
            kernel.call(**{array.name: kernel.tensors[array.name].float()})
    assert len(kernel.received) == 1


@EVERY
def test_wrong_size_is_refused(name: str) -> None:
    """Unless no other array depends on it."""
    kernel = SilentKernel(name)
    for array in kernel.signature.arrays:
        elsewhere = {size for other in kernel.signature.arrays if other is not array for size in other.sizes}
        tensor = kernel.tensors[array.name]
        wrong = [tensor.unsqueeze(0)]
        for dim, size in enumerate(array.sizes):
            if size in {*elsewhere, "64", "4", "gates", "quads"}:
                wrong.append(tensor.narrow(dim, 0, tensor.shape[dim] - 1).contiguous())
                wrong.append(torch.cat([tensor, tensor.narrow(dim, 0, 1)], dim))
        for each in wrong:
            with pytest.raises(ValueError, match=rf"^{name}: "):
                kernel.call(**{array.name: each})
    assert kernel.received == []


@EVERY
def test_wrong_strides_are_refused(name: str) -> None:
    kernel = SilentKernel(name)
    for array in kernel.signature.arrays:
        tensor = kernel.tensors[array.name]
        wrong = [torch.stack([tensor, tensor], -1)[..., 0]] if tensor.dim() else []
        if array.has_strided_rows:
            kernel.call(**{array.name: torch.cat([tensor, tensor], 1)[:, : tensor.shape[1]]})
            if array.is_written:
                with pytest.raises(ValueError, match=rf"^{name}: this must hold.*: {array.stride_name} >= "):
                    kernel.call(**{array.name: tensor[:1].expand_as(tensor)})
        for each in wrong:
            with pytest.raises(ValueError, match=rf"^{name}: {array.name} must be .* with strides"):
                kernel.call(**{array.name: each})
    assert len(kernel.received) == sum(array.has_strided_rows for array in kernel.signature.arrays)


@EVERY
def test_missing_array_is_refused(name: str) -> None:
    kernel = SilentKernel(name)
    groups = kernel.signature.optional
    for missing in kernel.tensors.keys() - {group[0] for group in groups if len(group) == 1}:
        with pytest.raises((TypeError, ValueError), match=rf"^{name}: .*\b{missing}\b"):
            kernel.call(**{missing: None})
    kernel.call(**dict.fromkeys(each for group in groups for each in group))
    assert len(kernel.received) == 1


def test_wrong_device_is_refused() -> None:
    kernel = SilentKernel("gru_step_back")
    with pytest.raises(
        TypeError, match=r"gru_step_back: hidden must be .* in the memory of the CPU, but is .* on meta"
    ):
        kernel.call(hidden=kernel.tensors["hidden"].to("meta"))
    assert kernel.received == []


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("quantize_rows", [1, 128]), ("quantize_rows", [0, 63]), ("exp_of_keys", [0]), ("update_finished", [0, 9, 1, 3])],
)
def test_wrong_number_is_refused(name: str, numbers: list[int]) -> None:
    kernel = SilentKernel(name)
    with pytest.raises(ValueError, match=f"^{name}: this must hold"):
        kernel.kernel([*kernel.tensors.values()], numbers)


def empty_of(name: str, size: str) -> dict[str, Tensor]:
    """The arrays of a kernel that have a size, without any of it."""
    arrays = [array for array in SIGNATURES[name].arrays if size in array.sizes]
    tensors = SilentKernel(name).tensors
    return {array.name: tensors[array.name].narrow(array.sizes.index(size), 0, 0) for array in arrays}


@pytest.mark.parametrize(
    ("name", "changed", "rule"),
    [
        ("most_probable", empty_of("most_probable", "size"), "size > 0"),
        ("update_finished", empty_of("update_finished", "places"), "places > 0"),
        ("best_continuations", empty_of("best_continuations", "per_row"), "per_row > 0"),
        ("int8_product", {"values": torch.zeros(4, 9)}, r"quads == \(inputs \+ 3\) // 4"),
        ("int8_product", {"product": torch.zeros(4, 193)}, "outputs <= 64"),
        ("int8_gru_step", {"values": torch.zeros(4, 9)}, r"quads == \(inputs \+ 3\) // 4"),
    ],
)
def test_sizes_against_a_rule_are_refused(name: str, changed: dict[str, Tensor], rule: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: .*{rule}"):
        SilentKernel(name).call(**changed)


# --- callers that passed what does not fit ------------------------------------------------------------------------


@needs_compiler
def test_states_of_a_gru_with_bf16_weights() -> None:
    torch.manual_seed(3)
    layer = torch.nn.GRU(5, 5, batch_first=True).bfloat16().requires_grad_(requires_grad=False)
    weight, recurrent, bias, recurrent_bias = layer.all_weights[0]
    values = torch.randn(2, 4, 5).bfloat16()
    projected = torch.nn.functional.linear(values, weight, bias)
    states = gru_states(projected, recurrent, recurrent_bias, torch.zeros(2, 5))
    torch.testing.assert_close(states.float(), layer.float()(values.float())[0], atol=0.05, rtol=0)


@needs_compiler
def test_bf16_bias_is_refused_by_a_kernel_that_reads_fp32() -> None:
    steps, hidden = torch.zeros(2, 9), torch.zeros(2, 3)
    with pytest.raises(TypeError, match=r"gru_step: bias must be torch.float32 \[gates\], .*, but is torch.bfloat16"):
        training_kernels.gru_step(steps, steps, torch.zeros(9).bfloat16(), hidden, hidden.clone(), torch.zeros(2, 4, 3))


@needs_compiler
def test_finished_hypotheses_in_strided_memory_are_updated_in_place() -> None:
    """`FinishedHypotheses.insert` leaves the first columns of wider matrices."""
    scores = torch.tensor([[-1.0, -4.0], [-2.0, -3.0]])
    finished = FinishedHypotheses(SearchOptions(beam_size=2, n_best=2), torch.full((2,), 9))
    ended, is_last_step = torch.ones(2, 2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool)
    finished.insert(scores, first_node=0, ended=ended, is_last_step=is_last_step)
    assert not finished.scores.is_contiguous()
    kernels.update_finished(
        *(torch.tensor([[-2.0], [-1.0]]), torch.tensor([[3], [3]]), finished.scores, finished.nodes),
        *(torch.full((2,), 9), torch.ones(10)),
        first=10,
        length=1,
        horizon=None,
        eos=3,
    )
    assert finished.scores.tolist() == [[-1.0, -2.0], [-1.0, -2.0]]
    assert finished.nodes.tolist() == [[0, 10], [11, 2]]


RULES = {rule.text: rule for signature in SIGNATURES.values() for rule in signature.rules}


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_reads_as_it_holds(rule: Rule) -> None:
    for values in product((-1, 0, 1, 2, 3, 6, 64, 127, 128, 200), repeat=len(rule.names)):
        assert rule.holds(*values) == eval(rule.text, dict(zip(rule.names, values, strict=True)))
