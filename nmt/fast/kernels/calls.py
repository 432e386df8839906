"""Calls of the C kernels: a table of their arguments, and the one place that checks arguments against it."""

from __future__ import annotations

import re
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
    """A tensor on the CPU: `TYPE NAME[SIZE, ...]`. `TYPE?` may be absent; `real` is fp32 or bf16, alike for all arrays of a call."""

    def __init__(self, dtype: str, name: str, sizes: str, numbers: Sequence[str]) -> None:
        self.name, self.sizes = name, re.findall(r"\w+", sizes)
        self.dtypes, self.is_optional = _DTYPES[dtype.rstrip("?")], dtype.endswith("?")
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


class Kernel:
    """The arguments of a C function, in its order: arrays, whole numbers, and floating-point numbers."""

    def __init__(self, arrays: str, whole: str, floats: str = "") -> None:
        self.numbers = [*whole.split(), *floats.split()]
        texts = re.findall(r"(\w+\??) (\w+)\[([^]]*)\]", arrays)
        self.arrays = [Array(dtype, name, sizes, self.numbers) for dtype, name, sizes in texts]
        optional = [array for array in self.arrays if array.is_optional]
        self.absent: dict[str, Number] = {
            name: 0 for array in optional for name in (*array.sizes, array.stride) if name
        }
        """Sizes and strides of absent arrays."""
        self.types = [c_void_p] * len(self.arrays) + [c_int64] * len(whole.split()) + [c_float] * len(floats.split())


KERNELS = {
    "additive_attention": Kernel(
        "fp32 queries[rows, width], fp32 exp_keys[sentences, length, width], fp32 v[width], "
        "bool mask[sentences, length], fp32 annotations[sentences, length, annotation], int64 segment_ids[rows], "
        "fp32? addends[rows, length], int64? starts[rows], fp32? factors[rows, window], fp32 exp_queries[rows, width], "
        "fp32 weights[rows, length], fp32 contexts[rows, annotation]",
        "threads rows length width annotation window",
    ),
    "most_probable": Kernel(
        "fp32 all_logits[rows, width], int64? all_tokens[segments, width], int64? segment_ids[rows], "
        "int64 forbidden[forbidden_count], fp32 all_log_probs[rows, size], int64 all_ids[rows, size]",
        "threads rows width size forbidden_count",
    ),
    "best_continuations": Kernel(
        "fp32 totals[count], fp32 log_probs[count, per_row], int64 ids[count, per_row], int64 segment_ids[count], "
        "fp32 best[segments, size], int64 rows[segments, size], int64 tokens[segments, size], "
        "fp32 best_log_probs[segments, size]",
        "count per_row segments size",
        "prune",
    ),
    "update_finished": Kernel(
        "fp32 totals[sentences, width], int64 tokens[sentences, width], int64 max_lengths[sentences], "
        "fp32 penalties[lengths], fp32 all_scores[sentences, places], int64 all_nodes[sentences, places], "
        "fp32 live_totals[sentences, width]",
        "sentences width places lengths all_scores_stride all_nodes_stride first length horizon eos",
    ),
    "int8_product": Kernel(
        "fp32 values[rows, inputs], int8 panels[panels, quads, 64, 4], int32 shifts[panels, 64], "
        "fp32 scales[panels, 64], fp32 bias[panels, 64], uint8 bytes[rows, quads, 4], fp32 row_scales[rows], "
        "fp32 product[rows, outputs]",
        "threads rows inputs outputs values_stride product_stride",
    ),
    "int8_products_of_segments": Kernel(
        "fp32 values[rows, inputs], int8 panels[panels, quads, 64, 4], int32 shifts[panels, 64], "
        "fp32 scales[panels, 64], fp32 bias[panels, 64], uint8 bytes[rows, quads, 4], fp32 row_scales[rows], "
        "int64 segment_ids[rows], int64 first[segments], int64 panel_count[segments], fp32 product[rows, outputs]",
        "threads rows inputs outputs values_stride product_stride",
    ),
    "int8_gru_step": Kernel(
        "fp32 projected[rows, gates], fp32 hidden[rows, width], int8 panels[panels, quads, 64, 4], "
        "int32 shifts[panels, 64], fp32 scales[panels, 64], fp32 bias[panels, 64], uint8 bytes[rows, quads, 4], "
        "fp32 row_scales[rows], fp32 next[rows, width]",
        "threads rows width projected_stride hidden_stride",
    ),
    "softmax_gradient": Kernel(
        "real logits[rows, width], fp32 bias[width], int64 gold[rows], fp32 log_sums[rows], fp32 gold_logits[rows], "
        "fp32 sums[threads, width], fp32 scratch[threads, width]",
        "threads rows real width narrow",
        "gold_share",
    ),
    "gru_step": Kernel(
        "real projected[rows, gates], real recurrent[rows, gates], fp32? bias[gates], real hidden[rows, width], "
        "real next[rows, width], real saved[rows, 4, width]",
        "threads rows width projected_stride recurrent_stride hidden_stride narrow",
    ),
    "gru_step_back": Kernel(
        "real upstream[rows, width], real? carried[rows, width], real saved[rows, 4, width], "
        "real hidden[rows, width], real d_projected[rows, gates], real d_recurrent[rows, gates], "
        "real d_hidden[rows, width]",
        "threads rows width upstream_stride hidden_stride d_projected_stride narrow",
    ),
    "additive_attention_back": Kernel(
        "fp32 d_contexts[rows, annotation], fp32 d_weights[rows, length], fp32 exp_queries[rows, width], "
        "fp32 exp_keys[rows, length, width], fp32 v[width], fp32 annotations[rows, length, annotation], "
        "fp32 weights[rows, length], int64? starts[rows], fp32? factors[rows, window], fp32 d_scores[rows, length], "
        "fp32 d_queries[rows, width], fp32? d_factors[rows, window]",
        "threads rows length width annotation window",
    ),
    "additive_keys_back": Kernel(
        "fp32 exp_queries[steps, rows, width], fp32 d_scores[steps, rows, length], "
        "fp32 exp_keys[rows, length, width], fp32 v[width], fp32 d_keys[rows, length, width], "
        "fp32 d_v[threads, width]",
        "threads steps rows length width",
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
            raise TypeError(f"{name}: {array.name} has a wrong type, size or layout: {layout}, with {known}.")
    known = kernel.absent | known
    return tuple(known[number] for number in kernel.numbers)


def threads_for(work: int) -> int:
    """How many threads to share so many operations: to wake a thread takes as long as some ten thousand of them."""
    return torch.get_num_threads() if work > _WORK_TO_SHARE else 1


def can_use(*tensors: Tensor) -> bool:
    """Whether there are kernels of training for these tensors: all fp32 or all bf16, on a CPU, the numbers of a row side by side."""
    first = tensors[0].dtype
    return (
        first in _DTYPES["real"]
        and all(tensor.dtype == first and tensor.is_cpu and tensor.stride(-1) == 1 for tensor in tensors)
        and library() is not None
    )
