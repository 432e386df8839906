"""Products with a matrix of eight-bit integers, for decoding on a CPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import torch
from jaxtyping import Float, Int, Int8, Int32, UInt8
from torch import Tensor, nn

from nmt.bucketing import with_bucketed_rows
from nmt.fast.kernels import decoding as kernels
from nmt.segments import Segments

_MOST = 127
"""The largest integer in a matrix; the smallest is as far from 0."""


class _Product(Protocol):
    """y for the rows of x, written into a matrix if one is given."""

    def __call__(
        self,
        values: Float[Tensor, "N D"],
        into: Float[Tensor, "N G"] | None = None,
    ) -> Float[Tensor, "N G"]: ...


class Int8Linear(nn.Linear):
    """y_ig = s_i s_g (x'_i - z) . A'_g + b_g for y = x A^T + b: integers are multiplied and summed in 32 bits.

    Each row of A is rounded to multiples of s_g = max |A_g| / 127, once, and each row of x to multiples of s_i = max |x_i| / 127
    at every call. They are shifted by z = 128, as processors multiply what has no sign with what has one. A compiled kernel does
    all of that at once, where it is faster than oneDNN.
    """

    dtype = torch.int8

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = linear.weight, linear.bias
        weight = linear.weight.detach()
        steps = weight.abs().amax(1).div_(_MOST).clamp_(min=torch.finfo(weight.dtype).tiny)
        rounded = (weight / steps.unsqueeze(1)).round_().to(torch.int8)
        self._hold(rounded, rounded.sum(1, dtype=torch.int32), steps)

    def of_rows(self, rows: Int[Tensor, " C"]) -> Int8Linear:
        """The layer that gives some outputs of this one alone."""
        few = Int8Linear.__new__(Int8Linear)
        nn.Module.__init__(few)
        few.bias = None if self.bias is None else nn.Parameter(self.bias[rows], requires_grad=False)
        few._hold(self._rounded.index_select(0, rows), self._sums[rows], self._steps[rows])
        return few

    def panels_of(self, rows: Int[Tensor, " M"], groups: Segments) -> kernels.GroupPanels:
        """Some outputs for each group, for `kernels.int8_products_of_groups`."""
        return kernels.panels_of_groups(self._rounded, self._sums, self._steps, self.bias, rows, groups)

    def panels_of_parts(self, parts: int) -> kernels.Panels:
        """All of it, as so many matrices of equal height, for `kernels.int8_gru_step`."""
        return kernels.panels_of(self._rounded, self._sums, self._steps, self.bias, parts)

    def _hold(self, rounded: Int8[Tensor, "G D"], sums: Int32[Tensor, " G"], steps: Float[Tensor, " G"]) -> None:
        """Lay A', of which these are the sums of the rows, out for the kernel, or for oneDNN."""
        self.out_features, self.in_features = rounded.shape
        self._rounded, self._sums, self._steps = rounded, sums, steps
        if has_int8_kernel():
            panels = kernels.panels_of(rounded, sums, steps, self.bias)
            self._product: _Product = partial(kernels.int8_product, panels)
        else:
            self._product = _OneDnn(rounded, steps, self.bias)

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        if values.dim() == 2:
            return self._product(values)
        return self._product(values.reshape(-1, self.in_features)).view(*values.shape[:-1], self.out_features)

    def write(self, values: Float[Tensor, "N D"], into: Float[Tensor, "N G"]) -> None:
        """W x + b, written to some columns of a matrix."""
        self._product(values, into)

    if TYPE_CHECKING:
        __call__ = forward


def has_int8_kernel() -> bool:
    """Whether ours is the fastest product: with AMX, eight times as many a cycle, oneDNN's is."""
    return kernels.multiplies_int8() and not torch.cpu._is_amx_tile_supported()


class _OneDnn:
    """The product by oneDNN, whose own step for x is one for all rows: it is told 1, and the rows' steps come after."""

    def __init__(self, rounded: Int8[Tensor, "G D"], steps: Float[Tensor, " G"], bias: Tensor | None) -> None:
        self.packed = torch.ops.onednn.qlinear_prepack(rounded, None)
        self.steps, self.bias = steps, bias
        self.zeros = torch.zeros(len(rounded), dtype=torch.long)
        # Without VNNI pairs of products are summed in 16 bits, for which x' must have a bit less.
        self.most = _MOST if torch.cpu._is_vnni_supported() else _MOST // 2

    def __call__(
        self,
        values: Float[Tensor, "N D"],
        into: Float[Tensor, "N G"] | None = None,
    ) -> Float[Tensor, "N G"]:
        product = with_bucketed_rows(self.multiply, values)
        return product if into is None else into.copy_(product)

    def multiply(self, values: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        shifted, steps = round_rows(values, self.most)
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(shifted, 1.0, self.most + 1, self.packed, self.steps, self.zeros, None),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        steps = steps.unsqueeze(1)
        return product * steps if self.bias is None else torch.addcmul(self.bias, product, steps)


def round_rows(values: Float[Tensor, "N D"], most: int) -> tuple[UInt8[Tensor, "N D"], Float[Tensor, " N"]]:
    """x' = x / s + z, rounded, and s = max |x| / most of each row, or 1; z = most + 1."""
    if kernels.can_use(values):
        return kernels.round_rows(values, most)
    steps = values.abs().amax(1).div_(most)
    steps.masked_fill_(steps == 0, 1.0)
    # Cut to an integer, x / s + z + 1/2 is rounded.
    return (values / steps.unsqueeze(1)).add_(most + 1.5).to(torch.uint8), steps


def can_multiply_int8() -> bool:
    """Whether oneDNN multiplies eight-bit integers on this processor, and fast: on others than x86 it may take seconds."""
    mkldnn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return mkldnn and torch.backends.cpu.get_cpu_capability().startswith("AVX")
