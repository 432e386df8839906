"""A copy of a model for decoding, each matrix laid out once for the kernels of the processor it runs on."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.device import DTYPES, DecodingPrecision
from nmt.errors import UsageError
from nmt.model.cells import gru_states
from nmt.model.int8 import Int8Linear, can_multiply_int8
from nmt.model.seq2seq import Seq2Seq


class PackedLinear(nn.Linear):
    """y = x A^T + b through oneDNN, for inference: `nn.Linear` lays A out anew at every call.

    In fp32 it also passes by the BLAS library, which on some processors is less than half as fast.
    """

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias, self.dtype = linear.weight, linear.bias, dtype
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype))
        self._bias = None if linear.bias is None else linear.bias.detach().to(dtype)

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        values = values.to(self.dtype)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(values, self._weight, self._bias, "none", [], "")
        return product

    if TYPE_CHECKING:
        __call__ = forward


def packed_linear(linear: nn.Linear, dtype: torch.dtype) -> PackedLinear | Int8Linear:
    """A layer that multiplies in the given type."""
    return Int8Linear(linear) if dtype == torch.int8 else PackedLinear(linear, dtype)


class PackedGru(nn.Module):
    """The states of a GRU layer, each step of it through packed matrices."""

    def __init__(self, layer: nn.GRU, dtype: torch.dtype) -> None:
        super().__init__()
        reading, recurring, read_bias, recurrent_bias = layer.all_weights[0]
        self.read = packed_linear(_linear(reading, read_bias), dtype)
        self.recurrent = packed_linear(_linear(recurring, recurrent_bias), dtype)

    def forward(self, values: Float[Tensor, "B S D"]) -> tuple[Float[Tensor, "B S N"], None]:
        """The states of all steps, and nothing."""
        return gru_states(self.read(values), self.recurrent), None

    if TYPE_CHECKING:
        __call__ = forward


def _linear(weight: Float[Tensor, "G D"], bias: Float[Tensor, " G"] | None) -> nn.Linear:
    """A layer of given weights."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(weight.detach(), requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return linear


def packed(model: Seq2Seq, precision: DecodingPrecision) -> Seq2Seq:
    """A copy of the model as it is now, on the same device, in evaluation mode and without gradients.

    On a CPU its linear layers are `PackedLinear` and compute in the given precision, as they would under autocast, or in int8
    `Int8Linear`; an LSTM that reads the source stays in fp32 then.

    Raises:
        UsageError: int8 is asked for where torch has no kernels for it.
    """
    copied = deepcopy(model).eval().requires_grad_(False)
    dtype = DTYPES[precision]
    if _can_pack(copied.output.weight, dtype):
        _pack(copied, dtype)
    elif precision == "int8":
        raise UsageError("Decoding in int8 needs a model in fp32 on a CPU that oneDNN knows: use fp32 or bf16 instead.")
    return copied


def _can_pack(weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether oneDNN computes with such weights in this type, on this processor."""
    mkldnn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not mkldnn or weight.dtype != torch.float32 or weight.device.type != "cpu":
        return False
    if dtype == torch.int8:
        return can_multiply_int8()
    return dtype == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _pack(module: nn.Module, dtype: torch.dtype) -> None:
    """Put packed layers in the place of all linear ones within; a product with a vector gains nothing by it."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and min(child.in_features, child.out_features) > 1:
            setattr(module, name, packed_linear(child, dtype))
        elif isinstance(child, nn.GRU):
            setattr(module, name, PackedGru(child, dtype))
        else:
            _pack(child, dtype)


def restricted(linear: nn.Linear, rows: Int[Tensor, " C"]) -> nn.Linear:
    """A layer that gives some outputs of another one alone, packed if that is."""
    few = _linear(linear.weight[rows], None if linear.bias is None else linear.bias[rows])
    return packed_linear(few, linear.dtype) if isinstance(linear, PackedLinear | Int8Linear) else few
