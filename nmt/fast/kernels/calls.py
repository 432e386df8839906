"""Calls of the C kernels: a table of their arguments, and the one place that checks arguments against it."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CDLL, c_float, c_int64, c_void_p
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

from nmt.fast.kernels.build import library

_DTYPES = {
    "fp32": (torch.float32,),
    "real": (torch.float32, torch.bfloat16),
    "int64": (torch.int64,),
    "int32": (torch.int32,),
    "int8": (torch.int8,),
    "uint8": (torch.uint8,),
    "bool": (torch.bool,),
}
_CONSTANTS: dict[str, Number] = {"4": 4, "64": 64}
"""Sizes that the table writes as numbers."""
_WORK_TO_SHARE = 2**17
"""Operations from which on threads share them."""


Number = int | float
Layout = tuple[torch.dtype, torch.Size, tuple[int, ...], bool, bool]
"""What a kernel must know of a tensor: type, shape, strides, whether it is contiguous, and whether it is on the CPU."""


class Array:
    """A tensor on the CPU, from `TYPE SIZE ...`. `TYPE?` may be absent; `real` is fp32 or bf16, alike for all arrays of a call."""

    def __init__(self, name: str, text: str, numbers: Sequence[str]) -> None:
        dtype, *self.sizes = text.split()
        self.name, self.is_optional, self.dtypes = name, dtype.endswith("?"), _DTYPES[dtype.rstrip("?")]
        stride = f"{name}_stride"
        self.stride = stride if stride in numbers else None
        """The number that says how far apart rows are; without it the array is contiguous."""

    def fits(self, layout: Layout, known: dict[str, Number]) -> bool:
        """Whether a tensor has this type and layout, and the sizes that are known; its other sizes become known."""
        dtype, shape, strides, is_contiguous, is_cpu = layout
        if dtype not in self.dtypes or not is_cpu or len(shape) != len(self.sizes):
            return False
        if len(self.dtypes) > 1 and known.setdefault("narrow", dtype is torch.bfloat16) != (dtype is torch.bfloat16):
            return False
        if self.stride is not None:
            known[self.stride] = strides[0]
            is_contiguous = strides[1] == 1
        sizes = zip(self.sizes, shape, strict=True)
        return is_contiguous and all(known.setdefault(name, size) == size for name, size in sizes)

    def __str__(self) -> str:
        layout = "contiguous" if self.stride is None else "with the numbers of a row side by side"
        return f"{' or '.join(map(str, self.dtypes))} [{', '.join(self.sizes)}] on the CPU, {layout}"


class Kernel:
    """The arguments of a C function, in its order: arrays, whole numbers, and floating-point numbers."""

    def __init__(self, whole: str, floats: str = "", **arrays: str) -> None:
        self.numbers = [*whole.split(), *floats.split()]
        self.arrays = [Array(name, text, self.numbers) for name, text in arrays.items()]
        optional = [array for array in self.arrays if array.is_optional]
        self.absent: dict[str, Number] = {
            name: 0 for array in optional for name in (*array.sizes, array.stride) if name
        }
        """Sizes and strides of absent arrays."""
        self.types = [c_void_p] * len(arrays) + [c_int64] * len(whole.split()) + [c_float] * len(floats.split())


KERNELS = {
    "additive_attention": Kernel(
        "threads rows length width annotation window",
        queries="fp32 rows width",
        exp_keys="fp32 sentences length width",
        v="fp32 width",
        mask="bool sentences length",
        annotations="fp32 sentences length annotation",
        segment_ids="int64 rows",
        starts="int64? rows",
        factors="fp32? rows window",
        exp_queries="fp32 rows width",
        weights="fp32 rows length",
        contexts="fp32 rows annotation",
    ),
    "most_probable": Kernel(
        "threads rows width size forbidden_count",
        all_logits="fp32 rows width",
        all_tokens="int64? segments width",
        segment_ids="int64? rows",
        forbidden="int64 forbidden_count",
        all_log_probs="fp32 rows size",
        all_ids="int64 rows size",
    ),
    "best_continuations": Kernel(
        "count per_row segments size",
        floats="prune",
        totals="fp32 count",
        log_probs="fp32 count per_row",
        ids="int64 count per_row",
        segment_ids="int64 count",
        best="fp32 segments size",
        rows="int64 segments size",
        tokens="int64 segments size",
        best_log_probs="fp32 segments size",
    ),
    "update_finished": Kernel(
        "sentences width places lengths all_scores_stride all_nodes_stride first length horizon eos",
        totals="fp32 sentences width",
        tokens="int64 sentences width",
        max_lengths="int64 sentences",
        penalties="fp32 lengths",
        all_scores="fp32 sentences places",
        all_nodes="int64 sentences places",
        live_totals="fp32 sentences width",
    ),
    "exp_of_keys": Kernel("threads count", keys="fp32 count", exp_keys="fp32 count"),
    "quantize_rows": Kernel(
        "threads rows width values_stride max_level",
        values="fp32 rows width",
        bytes="uint8 rows width",
        scales="fp32 rows",
    ),
    "int8_product": Kernel(
        "threads rows inputs outputs values_stride product_stride",
        values="fp32 rows inputs",
        panels="int8 panels quads 64 4",
        shifts="int32 panels 64",
        scales="fp32 panels 64",
        bias="fp32 panels 64",
        bytes="uint8 rows quads 4",
        row_scales="fp32 rows",
        product="fp32 rows outputs",
    ),
    "int8_products_of_segments": Kernel(
        "threads rows inputs outputs values_stride product_stride",
        values="fp32 rows inputs",
        panels="int8 panels quads 64 4",
        shifts="int32 panels 64",
        scales="fp32 panels 64",
        bias="fp32 panels 64",
        bytes="uint8 rows quads 4",
        row_scales="fp32 rows",
        segment_ids="int64 rows",
        first="int64 segments",
        panel_count="int64 segments",
        product="fp32 rows outputs",
    ),
    "int8_gru_step": Kernel(
        "threads rows inputs width projected_stride values_stride hidden_stride",
        projected="fp32? rows gates",
        table="fp32? vocabulary gates",
        ids="int64? rows",
        values="fp32? rows inputs",
        panels="int8? panels quads 64 4",
        shifts="int32? panels 64",
        scales="fp32? panels 64",
        bias="fp32? panels 64",
        bytes="uint8? rows quads 4",
        row_scales="fp32? rows",
        hidden="fp32 rows width",
        recurrent_panels="int8 panels hidden_quads 64 4",
        recurrent_shifts="int32 panels 64",
        recurrent_scales="fp32 panels 64",
        recurrent_bias="fp32 panels 64",
        hidden_bytes="uint8 rows hidden_quads 4",
        hidden_scales="fp32 rows",
        next="fp32 rows width",
    ),
    "softmax_gradient": Kernel(
        "threads rows real width narrow",
        floats="gold_share",
        logits="real rows width",
        bias="fp32 width",
        gold="int64 rows",
        log_sums="fp32 rows",
        gold_logits="fp32 rows",
        sums="fp32 threads width",
        scratch="fp32 threads width",
    ),
    "gru_step": Kernel(
        "threads rows width projected_stride recurrent_stride hidden_stride narrow",
        projected="real rows gates",
        recurrent="real rows gates",
        bias="fp32? gates",
        hidden="real rows width",
        next="real rows width",
        saved="real rows 4 width",
    ),
    "gru_step_back": Kernel(
        "threads rows width upstream_stride hidden_stride d_projected_stride narrow",
        upstream="real rows width",
        carried="real? rows width",
        saved="real rows 4 width",
        hidden="real rows width",
        d_projected="real rows gates",
        d_recurrent="real rows gates",
        d_hidden="real rows width",
    ),
    "additive_attention_back": Kernel(
        "threads rows length width annotation window",
        d_contexts="fp32 rows annotation",
        d_weights="fp32 rows length",
        exp_queries="fp32 rows width",
        exp_keys="fp32 rows length width",
        v="fp32 width",
        annotations="fp32 rows length annotation",
        weights="fp32 rows length",
        starts="int64? rows",
        factors="fp32? rows window",
        d_scores="fp32 rows length",
        d_queries="fp32 rows width",
        d_factors="fp32? rows window",
    ),
    "additive_keys_back": Kernel(
        "threads steps rows length width",
        exp_queries="fp32 steps rows width",
        d_scores="fp32 steps rows length",
        exp_keys="fp32 rows length width",
        v="fp32 width",
        d_keys="fp32 rows length width",
        d_v="fp32 threads width",
    ),
}


def call(name: str, *arrays: Tensor | None, **numbers: Number) -> None:
    """Call a kernel.

    Args:
        name: its name in the table.
        arrays: its arrays, in the order of the table.
        numbers: those that do not follow from the arrays, and sizes that the arrays must have.

    Raises:
        TypeError: an array is not what the table says.
    """
    kernels = library()
    assert kernels is not None
    layouts = [
        None if array is None else (array.dtype, array.shape, array.stride(), array.is_contiguous(), array.is_cpu)
        for array in arrays
    ]
    values = checked(name, tuple(layouts), tuple(numbers.items()))
    _function(kernels, name)(*[None if array is None else array.data_ptr() for array in arrays], *values)


@cache
def _function(kernels: CDLL, name: str) -> Any:
    function = kernels[name]
    function.argtypes, function.restype = KERNELS[name].types, None
    return function


@lru_cache(maxsize=4096)  # a check takes longer than many a kernel
def checked(
    name: str, layouts: tuple[Layout | None, ...], numbers: tuple[tuple[str, Number], ...]
) -> tuple[Number, ...]:
    """The numbers that C reads. Raises TypeError."""
    kernel = KERNELS[name]
    known = _CONSTANTS | dict(numbers)
    for array, layout in zip(kernel.arrays, layouts, strict=True):
        if not (array.is_optional if layout is None else array.fits(layout, known)):
            raise TypeError(f"{name}: {array.name} must be {array}, but is {layout}, with {known}.")
    known = kernel.absent | known
    return tuple(known[number] for number in kernel.numbers)


def threads_for(work: int) -> int:
    """How many threads to share so many operations: to wake a thread takes as long as some ten thousand of them."""
    return torch.get_num_threads() if work > _WORK_TO_SHARE else 1
