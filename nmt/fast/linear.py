"""Packed weights: a matrix is laid out for the processor once, while `nn.Linear` lays it out at every call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.fast.bucketing import with_bucketed_rows
from nmt.fast.int8 import Int8Linear, can_multiply_int8


class PackedLinear(nn.Linear):
    """y = x A^T + b through oneDNN, in fp32 or bf16.

    In fp32 it bypasses the BLAS library, which on some processors is less than half as fast.
    """

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        self.weight, self.bias, self.dtype = linear.weight, linear.bias, dtype
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype))
        self._bias = None if linear.bias is None else linear.bias.detach().to(dtype)

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        return with_bucketed_rows(self._product, values.to(self.dtype))

    def _product(self, values: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(values, self._weight, self._bias, "none", [], "")
        return product

    if TYPE_CHECKING:
        __call__ = forward


def packed_linear(linear: nn.Linear, dtype: torch.dtype) -> PackedLinear | Int8Linear:
    """The same layer with packed weights, multiplying in a type."""
    return Int8Linear(linear) if dtype == torch.int8 else PackedLinear(linear, dtype)


def plain_linear(weight: Float[Tensor, "G D"], bias: Float[Tensor, " G"] | None) -> nn.Linear:
    """A layer with these weights, frozen."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(weight.detach(), requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return linear


def restricted(linear: nn.Linear, outputs: Int[Tensor, " C"]) -> nn.Linear:
    """A layer with some of the outputs of another one, packed if that is."""
    subset = plain_linear(linear.weight[outputs], None if linear.bias is None else linear.bias[outputs])
    return packed_linear(subset, linear.dtype) if isinstance(linear, PackedLinear | Int8Linear) else subset


def can_pack(weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether oneDNN can pack such weights in this type on this processor."""
    mkldnn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not mkldnn or weight.dtype != torch.float32 or weight.device.type != "cpu":
        return False
    if dtype == torch.int8:
        return can_multiply_int8()
    return dtype == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
