"""Packed weights: a matrix is laid out for the processor once, while `nn.Linear` lays it out at every call.

In fp32 this bypasses the BLAS library, which on some processors is less than half as fast. Where a layer reads only embedded tokens, a
table of its products replaces it.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from nmt.fast.bucketing import with_bucketed_rows
from nmt.fast.int8 import Int8Linear, can_multiply_int8
from nmt.model.embedding import TokenEmbedding


class PackedLinear(nn.Linear):
    """y = x A^T + b in search, in fp32 or bf16."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        self.weight, self.bias, self.dtype = linear.weight, linear.bias, dtype
        self._weight = _packed(linear.weight.detach().to(dtype))
        self._bias = None if linear.bias is None else linear.bias.detach().to(dtype)

    def forward(self, values: Float[Tensor, "... D"]) -> Float[Tensor, "... G"]:
        return with_bucketed_rows(self._product, values.to(self.dtype))

    def _product(self, values: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        return _product(values, self._weight, self._bias)

    if TYPE_CHECKING:
        __call__ = forward


class PackedWeight:
    """A matrix W that all steps of an update multiply by, forwards and backwards; packed at the first step, if it can be.

    Args:
        weight: W, in the type of the parameters.
        dtype: the type to multiply in.
    """

    def __init__(self, weight: Float[Tensor, "G D"], dtype: torch.dtype) -> None:
        self._weight = weight.detach().to(dtype)
        self._is_packable = can_pack(weight, dtype) and min(weight.shape) > 1

    def product(
        self, values: Float[Tensor, "... D"], bias: Float[Tensor, " G"] | None = None
    ) -> Float[Tensor, "... G"]:
        """x W^T + b."""
        if not self._is_packable:
            return functional.linear(values, self._weight, bias)
        return _product(values, self._forwards, bias)

    def product_back(self, upstream: Float[Tensor, "... G"]) -> Float[Tensor, "... D"]:
        """g W, the gradient of x."""
        return _product(upstream, self._backwards) if self._is_packable else upstream @ self._weight

    @cached_property
    def _forwards(self) -> Tensor:
        return _packed(self._weight)

    @cached_property
    def _backwards(self) -> Tensor:
        return _packed(self._weight.T.contiguous())


def _packed(weight: Float[Tensor, "G D"]) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
    return packed


def _product(values: Float[Tensor, "... D"], packed: Tensor, bias: Tensor | None = None) -> Float[Tensor, "... G"]:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(values, packed, bias, "none", [], "")
    return product


def packed_linear(linear: nn.Linear, dtype: torch.dtype) -> nn.Linear:
    """The same layer with packed weights, multiplying in a type; a layer with a single row or column stays as it is."""
    if min(linear.in_features, linear.out_features) == 1:
        return linear
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


# --- tables of tokens --------------------------------------------------------------------------------------------------


class TokenTable(nn.Module):
    """W g E y + b of every token y, computed when the token is first read. Threads may share the table."""

    def __init__(self, embedding: TokenEmbedding, linear: nn.Linear) -> None:
        super().__init__()
        self.embedding, self.linear = embedding, linear
        self.out_features = linear.out_features
        self.table: Tensor | None = None
        self.is_known = torch.zeros(embedding.num_embeddings, dtype=torch.bool)
        self.filling = threading.Lock()

    def forward(self, ids: Int[Tensor, "... 1"]) -> Float[Tensor, "... G"]:
        ids = ids.squeeze(-1)
        if self.table is None or not self.is_known.take(ids).all():
            with self.filling:
                new = torch.unique(ids[~self.is_known[ids]])
                products: Tensor = self.linear(self.embedding(new))
                if self.table is None:
                    with torch.inference_mode(mode=False):  # else no row could be added outside of it
                        self.table = products.new_empty(len(self.is_known), self.out_features)
                self.table[new] = products
                self.is_known[new] = True  # last, so that no thread reads a row before it is there
        return functional.embedding(ids, self.table)

    if TYPE_CHECKING:
        __call__ = forward


class TokenIds(nn.Module):
    """Replaces an embedding that only tables read: passes the ids on."""

    def forward(self, ids: Int[Tensor, "*ids"]) -> Int[Tensor, "*ids 1"]:
        return ids.unsqueeze(-1)

    if TYPE_CHECKING:
        __call__ = forward
