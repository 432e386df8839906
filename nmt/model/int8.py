"""Products with a matrix of eight-bit integers, for decoding on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int, Int8, UInt8
from torch import Tensor, nn

from nmt.evened import with_even_rows
from nmt.native import kernels

_MOST = 127
"""The largest integer in a matrix; the smallest is as far from 0."""


class Int8Linear(nn.Linear):
    """y_g = s s_g (x' - z) . A'_g + b_g for y = x A^T + b, by oneDNN: integers are multiplied and summed in 32 bits.

    Each row of A is rounded to multiples of s_g = max |A_g| / 127, once. All of x is rounded to multiples of s = max |x| / 127 at
    every call, and shifted by z = 128 as the kernels want no sign: a row of y so depends a little on the others.
    """

    dtype = torch.int8

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = linear.weight, linear.bias
        weight = linear.weight.detach()
        steps = weight.abs().amax(1).div_(_MOST).clamp_(min=torch.finfo(weight.dtype).tiny)
        self._hold((weight / steps.unsqueeze(1)).round_().to(torch.int8), steps)

    def of_rows(self, rows: Int[Tensor, " C"]) -> Int8Linear:
        """The layer that gives some outputs of this one alone."""
        few = Int8Linear.__new__(Int8Linear)
        nn.Module.__init__(few)
        few.bias = None if self.bias is None else nn.Parameter(self.bias[rows], requires_grad=False)
        few._hold(self._rounded[rows], self._steps[rows])
        return few

    def _hold(self, rounded: Int8[Tensor, "G D"], steps: Float[Tensor, " G"]) -> None:
        """Lay A' out for the kernels."""
        self.out_features, self.in_features = rounded.shape
        self._rounded, self._steps = rounded, steps
        self._packed = torch.ops.onednn.qlinear_prepack(rounded, None)
        self._zeros = torch.zeros(len(rounded), dtype=torch.long)
        # Without VNNI pairs of products are summed in 16 bits, for which x' must have a bit less.
        self._most = _MOST if torch.cpu._is_vnni_supported() else _MOST // 2

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        return with_even_rows(self._product, values)

    def _product(self, values: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        shifted, step = round_to_bytes(values, self._most)
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(shifted, step, self._most + 1, self._packed, self._steps, self._zeros, self.bias),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        return product

    if TYPE_CHECKING:
        __call__ = forward


def round_to_bytes(values: Float[Tensor, "N D"], most: int) -> tuple[UInt8[Tensor, "N D"], float]:
    """x' = x / s + z, rounded, and s = max |x| / most, or 1; z = most + 1."""
    if kernels.can_use(values):
        return kernels.round_to_bytes(values, most)
    low, high = values.aminmax()
    step = max(-float(low), float(high)) / most or 1.0
    shift = torch.tensor(most + 1.5)  # cut to an integer, x / s + z + 1/2 is rounded
    return torch.add(shift, values, alpha=1 / step).to(torch.uint8), step


def can_multiply_int8() -> bool:
    """Whether oneDNN multiplies eight-bit integers on this processor, and fast: on others than x86 it may take seconds."""
    mkldnn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return mkldnn and torch.backends.cpu.get_cpu_capability().startswith("AVX")
