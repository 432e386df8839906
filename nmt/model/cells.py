"""Recurrent cells of the decoder, split so that what does not depend on the step before is computed for all steps at once."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from jaxtyping import Float, Int16
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.model.gathering import StepLinear, is_gathering
from nmt.model.gru import GATES_OF_GRU, gru_gates, gru_states, learn_gru_states
from nmt.native import gradients


class GruCell(nn.Module):
    """The GRU of `gru.py`.

    W x comes in from outside, ready for the three gates. Dropout, as a mask over s, touches U s alone: on the way that s itself
    takes it would grow or fade with every step (Semeniuta et al. 2016). Layer normalisation acts on W x and on U s, over all
    gates together (Ba et al. 2016, eq. 20).
    """

    gates = GATES_OF_GRU

    def __init__(self, hidden: int, *, layer_norm: bool = False) -> None:
        super().__init__()
        self.recurrent = StepLinear(hidden, 3 * hidden)
        self.norm_input = build_norm(3 * hidden, layer_norm=layer_norm)
        self.norm_recurrent = build_norm(3 * hidden, layer_norm=layer_norm)
        orthogonal_per_gate_(self.recurrent.weight)

    def forward(
        self,
        projected: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B H"],
        cell: Tensor | None,
        mask: Tensor | None = None,
    ) -> tuple[Float[Tensor, "B H"], None]:
        projected = self.norm_input(projected)
        recurrent = self.norm_recurrent(self.recurrent(dropped(hidden, mask)))
        return gru_gates(projected, recurrent, hidden.to(recurrent.dtype)), None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is normalised, so that `states` has all steps at once."""
        return isinstance(self.norm_recurrent, nn.Identity)

    def states(self, projected: Float[Tensor, "B T G"], start: Float[Tensor, "B H"]) -> Float[Tensor, "B T H"]:
        """Those of all steps, the first after `start`."""
        if is_gathering():
            return learn_gru_states(projected, self.recurrent.weight, self.recurrent.bias, start)
        return gru_states(projected, lambda reads, hidden: gru_gates(reads, self.recurrent(hidden), hidden), start)


class LstmCell(nn.Module):
    """i, f, o = sigmoid(W x + U s); g = tanh(W x + U s); c' = f * c + i * g; s' = o * tanh(c') (Hochreiter and Schmidhuber 1997).

    Layer normalisation acts on W x, on U s, and on c' where s' is made of it (Ba et al. 2016, eq. 20 to 22).
    """

    gates = 4

    def __init__(self, hidden: int, *, layer_norm: bool = False) -> None:
        super().__init__()
        self.recurrent = StepLinear(hidden, 4 * hidden)
        self.norm_input = build_norm(4 * hidden, layer_norm=layer_norm)
        self.norm_recurrent = build_norm(4 * hidden, layer_norm=layer_norm)
        self.norm_cell = build_norm(hidden, layer_norm=layer_norm)
        orthogonal_per_gate_(self.recurrent.weight)

    def forward(
        self,
        projected: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B H"],
        cell: Tensor | None,
        mask: Tensor | None = None,
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
        assert cell is not None
        recurrent = self.norm_recurrent(self.recurrent(dropped(hidden, mask)))
        keep_in, forget, candidate, out = (self.norm_input(projected) + recurrent).chunk(4, dim=1)
        new_cell = torch.sigmoid(forget) * cell + torch.sigmoid(keep_in) * torch.tanh(candidate)
        return torch.sigmoid(out) * torch.tanh(self.norm_cell(new_cell)), new_cell


def dropped(hidden: Float[Tensor, "B H"], mask: Tensor | None) -> Float[Tensor, "B H"]:
    """A state as the recurrent matrix sees it in training."""
    return hidden if mask is None else hidden * mask


GATES = {"gru": GruCell.gates, "lstm": LstmCell.gates}
"""How many gates W x must be computed for."""


def build_cell(kind: Literal["gru", "lstm"], hidden: int, *, layer_norm: bool = False) -> GruCell | LstmCell:
    return GruCell(hidden, layer_norm=layer_norm) if kind == "gru" else LstmCell(hidden, layer_norm=layer_norm)


def build_norm(width: int, *, layer_norm: bool) -> nn.Module:
    return nn.LayerNorm(width) if layer_norm else nn.Identity()


def orthogonal_per_gate_(weight: Tensor) -> None:
    """Initialise each gate's square block of a recurrent matrix [G*H H] as an orthogonal matrix (Bahdanau et al. 2015, B.1)."""
    for block in torch.split(weight.detach(), weight.shape[1]):
        nn.init.orthogonal_(block)


class Dropout(nn.Module):
    """Dropout over [B ... D]: a fresh mask a position, or `variational` one a sentence (Gal and Ghahramani 2016).

    What is kept is decided by 16 random bits a number, so the rate is rounded to a 65,536th. PyTorch draws 64 for each, which takes
    a tenth of the time of training on a CPU.
    """

    CHOICES = 2**16

    def __init__(self, rate: float, *, variational: bool) -> None:
        super().__init__()
        self.rate = rate
        self.variational = variational

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return values
        if not self.variational and gradients.can_use(values):
            return _Dropped.apply(values, *self._drawn(values.numel(), values.device))  # type: ignore[no-any-return, no-untyped-call]
        return values * self.mask(values)

    def mask(self, values: Tensor) -> Tensor:
        """What to multiply values [B ... D] with: 0 or 1 / (1 - rate), [B ... D], or `variational` [B 1... D]."""
        inner = [1] * (values.dim() - 2) if self.variational else values.shape[1:-1]
        shape = (values.shape[0], *inner, values.shape[-1])
        drawn, below, scale = self._drawn(math.prod(shape), values.device)
        return (drawn.view(shape) < below).to(values.dtype).mul_(scale)

    def _drawn(self, count: int, device: torch.device) -> tuple[Int16[Tensor, " n"], int, float]:
        """Random bits, below what they keep a number, and what it is then multiplied with."""
        choices = self.CHOICES
        keeping = min(max(round((1 - self.rate) * choices), 1), choices - 1)
        return _random_bits(count, device), keeping - choices // 2, choices / keeping


def _random_bits(count: int, device: torch.device) -> Int16[Tensor, " n"]:
    """16 random bits each, four from one draw of 64 where the device can draw as many: Metal cannot."""
    if device.type == "mps":
        return torch.randint(-(2**15), 2**15, (count,), dtype=torch.int16, device=device)
    drawn = torch.empty(-(-count // 4), dtype=torch.int64, device=device).random_(-(2**63), None)
    return drawn.view(torch.int16)[:count]


class _Dropped(torch.autograd.Function):
    """Values times their mask, by a kernel."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, drawn: Tensor, below: int, scale: float) -> Tensor:
        ctx.save_for_backward(drawn)
        ctx.rule = below, scale
        return gradients.dropped(values, drawn, below, scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return gradients.dropped(upstream, ctx.saved_tensors[0], *ctx.rule), None, None, None


class WordDropout(nn.Module):
    """Dropout of whole words: an embedding [B T E] is kept, scaled by 1 / (1 - rate), or all zero (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, embedded: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        if not self.training or self.rate == 0:
            return embedded
        return embedded * nn.functional.dropout(embedded.new_ones(*embedded.shape[:2], 1), self.rate)
