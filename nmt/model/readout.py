"""Readouts: what the output layer reads, made of the decoder state, the word before and the context."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt import recipe
from nmt.model.gathering import StepLinear


class Readout(nn.Module):
    """U_o s + V_o E y_{i-1} + C_o c: the sum that the maxout and the tanh readout pass through their nonlinearity."""

    def __init__(self, *, hidden: int, embedding: int, context: int, size: int) -> None:
        super().__init__()
        self.state = StepLinear(hidden, size)
        self.word = StepLinear(embedding, size, bias=False)
        self.context = StepLinear(context, size, bias=False)

    def total(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return self.context.added_to(self.state.added_to(self.word(embedded), hidden), context)

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Float[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        return torch.tanh(self.total(hidden, embedded, context))

    if TYPE_CHECKING:
        __call__ = forward


class MaxoutReadout(Readout):
    """t_i,k = max(t~_i,2k-1, t~_i,2k) with t~_i = U_o s_i + V_o E y_{i-1} + C_o c_i (Bahdanau et al. 2015, A.2.2).

    The paper prints s_{i-1} in t~_i but conditions p(y_i) on s_i (its eq. 4); this reads s_i.
    """

    def __init__(self, *, hidden: int, embedding: int, context: int, size: int) -> None:
        super().__init__(hidden=hidden, embedding=embedding, context=context, size=2 * size)

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Float[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        pairs = self.total(hidden, embedded, context)
        return torch.maximum(pairs[..., ::2], pairs[..., 1::2])


class AttentionalReadout(nn.Module):
    """h~_t = tanh(W_c [c_t; h_t]) (Luong et al. 2015, eq. 5)."""

    def __init__(self, *, hidden: int, context: int, size: int) -> None:
        super().__init__()
        self.reads = context, hidden
        self.combine = StepLinear(context + hidden, size, bias=False)

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Float[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        return torch.tanh(self.combine(torch.cat([context, hidden], dim=-1)))

    if TYPE_CHECKING:
        __call__ = forward


def build_readout(
    chosen: recipe.ReadoutConfig, *, hidden: int, embedding: int, context: int
) -> Readout | AttentionalReadout:
    """The readout of a recipe, for states, words and contexts of the given widths."""
    match chosen:
        case recipe.MaxoutReadoutConfig():
            return MaxoutReadout(hidden=hidden, embedding=embedding, context=context, size=chosen.size)
        case recipe.TanhReadoutConfig():
            return Readout(hidden=hidden, embedding=embedding, context=context, size=chosen.size)
        case recipe.AttentionalReadoutConfig():
            return AttentionalReadout(hidden=hidden, context=context, size=chosen.size)
        case _:
            assert_never(chosen)
