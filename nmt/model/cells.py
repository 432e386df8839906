"""Recurrent cells of the decoder, split so that what does not depend on the step before is computed for all steps at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt.model.gathering import StepLinear, is_gathering
from nmt.native import kernels


class GruCell(nn.Module):
    """r, z = sigmoid(W x + U s); n = tanh(W x + r * (U s)); s' = (1 - z) * n + z * s (Cho et al. 2014; r after U as in cuDNN).

    W x comes in from outside, ready for the three gates. Dropout, as a mask over s, touches U s alone: on the way that s itself
    takes it would grow or fade with every step (Semeniuta et al. 2016). Layer normalisation acts on W x and on U s, over all
    gates together (Ba et al. 2016, eq. 20).
    """

    gates = 3

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


def gru_gates(
    projected: Float[Tensor, "B G"], recurrent: Float[Tensor, "B G"], hidden: Float[Tensor, "B H"]
) -> Float[Tensor, "B H"]:
    """s' of W x, U s and s; in a loop that gathers gradients as one node of the graph."""
    if is_gathering():
        return _GruGates.apply(projected, recurrent, hidden)  # type: ignore[no-any-return, no-untyped-call]
    if kernels.can_use(projected, recurrent, hidden):
        return kernels.gru_gates(projected, recurrent, hidden)
    width = hidden.shape[1]
    reset, update = torch.sigmoid(projected[:, : 2 * width] + recurrent[:, : 2 * width]).chunk(2, dim=1)
    new = torch.tanh(projected[:, 2 * width :] + reset * recurrent[:, 2 * width :])
    return torch.lerp(new, hidden, update)


class _GruGates(torch.autograd.Function):
    """With a = W x + U s of r and z, b = W x + r * (U s) of n, and g = dL/ds':

    db = g (1 - z) (1 - n^2);  da = [db (U s), g (s - n)] r z (1 - r z);  dx = [da, db];  dU s = [da, db r];  ds = g z.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
        width = hidden.shape[1]
        gates = torch.add(projected[:, : 2 * width], recurrent[:, : 2 * width]).sigmoid_()
        reset, update = gates.chunk(2, dim=1)
        new = torch.addcmul(projected[:, 2 * width :], reset, recurrent[:, 2 * width :]).tanh_()
        ctx.save_for_backward(gates, new, recurrent, hidden)
        return torch.lerp(new, hidden, update)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, ...]:
        gates, new, recurrent, hidden = ctx.saved_tensors
        width, (reset, update) = hidden.shape[1], gates.chunk(2, dim=1)
        d_hidden = upstream[0] * update
        # Filled in place: a copy would take as long as the arithmetic.
        d_projected = torch.empty_like(recurrent, dtype=new.dtype)
        d_gates, d_new = d_projected[:, : 2 * width], d_projected[:, 2 * width :]
        torch.ops.aten.tanh_backward.grad_input(upstream[0] - d_hidden, new, grad_input=d_new)
        torch.mul(d_new, recurrent[:, 2 * width :], out=d_gates[:, :width])
        torch.mul(upstream[0], hidden - new, out=d_gates[:, width:])
        torch.ops.aten.sigmoid_backward.grad_input(d_gates, gates, grad_input=d_gates)
        d_recurrent = d_projected.clone()
        d_recurrent[:, 2 * width :] *= reset
        return d_projected, d_recurrent, d_hidden


def gru_states(
    projected: Float[Tensor, "B S G"], recurrent: Callable[[Float[Tensor, "B H"]], Float[Tensor, "B G"]]
) -> Float[Tensor, "B S H"]:
    """s_1 to s_S of W x and of the product U s, from s_0 = 0."""
    hidden = projected.new_zeros(len(projected), projected.shape[2] // GruCell.gates)
    states = []
    for step in projected.unbind(1):
        hidden = gru_gates(step, recurrent(hidden), hidden)
        states.append(hidden)
    return torch.stack(states, 1)


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
        return values * self.mask(values)

    def mask(self, values: Tensor) -> Tensor:
        """What to multiply values [B ... D] with: 0 or 1 / (1 - rate), [B ... D], or `variational` [B 1... D]."""
        inner = [1] * (values.dim() - 2) if self.variational else values.shape[1:-1]
        shape = (values.shape[0], *inner, values.shape[-1])
        count, choices = math.prod(shape), self.CHOICES
        keeping = min(max(round((1 - self.rate) * choices), 1), choices - 1)
        drawn = torch.empty(-(-count // 4), dtype=torch.int64, device=values.device).random_(-(2**63), None)
        kept = drawn.view(torch.int16)[:count].view(shape) < keeping - choices // 2
        return kept.to(values.dtype).mul_(choices / keeping)


class WordDropout(nn.Module):
    """Dropout of whole words: an embedding [B T E] is kept, scaled by 1 / (1 - rate), or all zero (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, embedded: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        if not self.training or self.rate == 0:
            return embedded
        return embedded * nn.functional.dropout(embedded.new_ones(*embedded.shape[:2], 1), self.rate)
