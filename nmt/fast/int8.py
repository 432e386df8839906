"""Products in int8, for decoding on a CPU: a quarter of the memory traffic of fp32, and four times the products per instruction.

A row of values is quantized with a scale of its own, so a line of text does not depend on the lines it is batched with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt.fast.bucketing import with_bucketed_rows
from nmt.fast.kernels import decoding as kernels

_MAX_LEVEL = 127
"""The largest integer of a quantized matrix; the smallest is its negative."""


class Int8Linear(nn.Linear):
    """y_ig = s_i s_g (x'_i - z) . A'_g + b_g for y = x A^T + b: integers are multiplied and summed in 32 bits.

    Each row of A is rounded to multiples of s_g = max |A_g| / 127, once, and each row of x to multiples of s_i = max |x_i| / 127 at
    every call. x' is shifted by z = 128, since processors multiply unsigned with signed bytes. One kernel call does all of that with
    AVX-512 VNNI; elsewhere oneDNN multiplies.
    """

    dtype = torch.int8

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        weight = linear.weight.detach()
        scales = weight.abs().amax(1).div_(_MAX_LEVEL).clamp_(min=torch.finfo(weight.dtype).tiny)
        quantized = (weight / scales.unsqueeze(1)).round_().to(torch.int8)
        self.matrix = kernels.Int8Matrix(quantized, scales, self.bias)
        self.panels = self.matrix.panels() if kernels.multiplies_int8() else None
        self._product: Callable[..., Tensor] = (
            _OneDnn(self.matrix) if self.panels is None else partial(kernels.int8_product, self.panels)
        )

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        if values.dim() == 2:
            return self._product(values)
        return self._product(values.reshape(-1, self.in_features)).view(*values.shape[:-1], self.out_features)

    if TYPE_CHECKING:
        __call__ = forward


class _OneDnn:
    """The product by oneDNN. It has one scale for all rows of x, which is set to 1; the scales of the rows follow after it."""

    def __init__(self, matrix: kernels.Int8Matrix) -> None:
        self.packed = torch.ops.onednn.qlinear_prepack(matrix.quantized, None)
        self.scales, self.bias = matrix.scales, matrix.bias
        self.zeros = torch.zeros(len(matrix.scales), dtype=torch.long)
        # Without VNNI pairs of products are summed in 16 bits, for which x' must have one bit less.
        self.max_level = _MAX_LEVEL if torch.cpu._is_vnni_supported() else _MAX_LEVEL // 2

    def __call__(self, values: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        return with_bucketed_rows(self.multiply, values)

    def multiply(self, values: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        scales = values.abs().amax(1).div_(self.max_level)
        scales.masked_fill_(scales == 0, 1.0)
        # Truncating x / s + z + 1/2 rounds x / s + z.
        shifted = (values / scales.unsqueeze(1)).add_(self.max_level + 1.5).to(torch.uint8)
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(shifted, 1.0, self.max_level + 1, self.packed, self.scales, self.zeros, None),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        scales = scales.unsqueeze(1)
        return product * scales if self.bias is None else torch.addcmul(self.bias, product, scales)


def can_multiply_int8() -> bool:
    """Whether oneDNN has fast int8 products on this processor: on others than x86 they may take seconds."""
    mkldnn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return mkldnn and torch.backends.cpu.get_cpu_capability().startswith("AVX")
