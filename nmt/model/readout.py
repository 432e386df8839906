"""Readouts: the vector that the output layer reads, computed from decoder state, previous token and context."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from nmt import recipe


class Readout(nn.Module):
    """What the output layer reads of a step."""

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        """The readout of decoder states, the embedded tokens before them and their contexts."""
        raise NotImplementedError

    if TYPE_CHECKING:
        __call__ = forward


class TanhReadout(Readout):
    """tanh(U_o s_i + V_o E y_{i-1} + C_o c_i): the sum of Bahdanau et al. (2015, A.2.2) through tanh, not maxout (Pascanu et al. 2014)."""

    def __init__(self, *, hidden: int, embedding: int, context: int, size: int) -> None:
        super().__init__()
        self.state = nn.Linear(hidden, size)
        self.word = nn.Linear(embedding, size, bias=False)
        self.context = nn.Linear(context, size, bias=False)

    def total(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """U_o s_i + V_o E y_{i-1} + C_o c_i."""
        total: Tensor = self.state(hidden) + self.word(embedded) + self.context(context)
        return total

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        return torch.tanh(self.total(hidden, embedded, context))


class MaxoutReadout(TanhReadout):
    """t_i,k = max(t~_i,2k-1, t~_i,2k) with t~_i = U_o s_i + V_o E y_{i-1} + C_o c_i   (Bahdanau et al. 2015, A.2.2).

    A.2.2 prints s_{i-1} in t~_i, but eq. 4 of the paper conditions p(y_i) on s_i; this reads s_i.
    """

    def __init__(self, *, hidden: int, embedding: int, context: int, size: int) -> None:
        super().__init__(hidden=hidden, embedding=embedding, context=context, size=2 * size)

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        total = self.total(hidden, embedded, context)
        return torch.maximum(total[..., ::2], total[..., 1::2])


class AttentionalReadout(Readout):
    """h~_t = tanh(W_c [c_t; h_t])   (Luong et al. 2015, eq. 5)."""

    def __init__(self, *, hidden: int, context: int, size: int) -> None:
        super().__init__()
        self.context_size = context
        self.combine = nn.Linear(context + hidden, size, bias=False)

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        return torch.tanh(self.combine(torch.cat([context, hidden], dim=-1)))


class StateReadout(Readout):
    """h_t itself: the output layer reads nothing else (Sutskever et al. 2014; base system of Luong et al. 2015)."""

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... H"]:
        return hidden


class LexicalReadout(Readout):
    """t_i + W_l tanh(l_i), where l_i = sum_j alpha_ij x_j, the end of c_i, are the attended tokens   (after Nguyen and Chiang 2018).

    There l_i has a residual layer and an output layer of its own; here W_l, initially I / 10, leads to the common one.
    """

    def __init__(self, readout: Readout, *, embedding: int, size: int) -> None:
        super().__init__()
        self.inner, self.width = readout, embedding
        self.lexical = nn.Linear(embedding, size, bias=False)
        with torch.no_grad():
            nn.init.eye_(self.lexical.weight).div_(10)

    def forward(
        self, hidden: Float[Tensor, "... H"], embedded: Num[Tensor, "... E"], context: Float[Tensor, "... A"]
    ) -> Float[Tensor, "... R"]:
        lexical: Tensor = self.lexical(torch.tanh(context[..., -self.width :]))
        return self.inner(hidden, embedded, context) + lexical


def build_readout(config: recipe.ReadoutConfig, *, hidden: int, embedding: int, context: int) -> Readout:
    """The readout of a recipe, for states, embedded tokens and contexts of the given widths."""
    match config:
        case recipe.MaxoutReadoutConfig():
            return MaxoutReadout(hidden=hidden, embedding=embedding, context=context, size=config.size)
        case recipe.TanhReadoutConfig():
            return TanhReadout(hidden=hidden, embedding=embedding, context=context, size=config.size)
        case recipe.AttentionalReadoutConfig():
            return AttentionalReadout(hidden=hidden, context=context, size=config.size)
        case recipe.StateReadoutConfig():
            return StateReadout()
        case _:
            assert_never(config)
