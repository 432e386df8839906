"""The GRU in training: all steps of a layer as one node of the graph, with gradients written out.

Autograd would run a dozen small operations per step, each a pass over memory. Here a step is one product and one kernel, forwards and
backwards, and the gradient of U is one product at the end. With a = W x + U s of r and z, b = W x + r * (U s) of n, and g = dL/ds':

    db = g (1 - z) (1 - n^2);  da = [db (U s), g (s - n)] r z (1 - r z);  dx = [da, db];  dU s = [da, db r];  ds = g z
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from nmt.fast.kernels.calls import call, can_use, threads_for
from nmt.fast.linear import PackedWeight
from nmt.model.cells import GruCell, dropped
from nmt.model.decoder import Recurrence, RecurrentState

GATES = GruCell.gates
_GATE_COST = 4
"""Operations of `threads_for` that a gate takes."""


class FastGruCell(GruCell):
    """One step as one node of the graph."""

    def forward(
        self,
        projected: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B H"],
        cell: Tensor | None = None,
        mask: Float[Tensor, "B H"] | None = None,
    ) -> tuple[Float[Tensor, "B H"], None]:
        recurrent = self.norm_recurrent(self.recurrent(dropped(hidden, mask)))
        return gru_gates(self.norm_input(projected), recurrent, hidden.to(recurrent.dtype)), None

    @property
    def is_plain(self) -> bool:
        """Whether there is no layer normalization, which `gru_states` does not compute."""
        return isinstance(self.norm_recurrent, nn.Identity)

    if TYPE_CHECKING:
        __call__ = forward


class FastRecurrence(Recurrence):
    """Computes all steps of a single GRU layer in one node of the graph."""

    def all_steps(
        self, tokens: Float[Tensor, "B T G"], state: RecurrentState
    ) -> tuple[Float[Tensor, "B T H"], RecurrentState]:
        cell = self.cells[0]
        if self.layers > 1 or state.masks is not None or not _trains_with_kernels(tokens):
            return super().all_steps(tokens, state)
        if not isinstance(cell, FastGruCell) or not cell.is_plain:
            return super().all_steps(tokens, state)
        states = gru_states(tokens, cell.recurrent.weight, cell.recurrent.bias, state.hidden[:, 0])
        return states, replace(state, hidden=states[:, -1:])


class FastGru(nn.GRU):
    """The layer step by step in training, where the backward pass of PyTorch's own layer is slower."""

    def forward(self, values: Float[Tensor, "B S D"], hx: Tensor | None = None) -> tuple[Tensor, Tensor]:  # type: ignore[override] # no packed sequences
        weight, recurrent, bias, recurrent_bias = self.all_weights[0]
        if hx is not None or not _trains_with_kernels(recurrent):
            states, final = super().forward(values, hx)
            return states, final
        start = recurrent.new_zeros(len(values), self.hidden_size)
        states = gru_states(functional.linear(values, weight, bias), recurrent, recurrent_bias, start)
        return states, states[:, -1:].transpose(0, 1)


def _trains_with_kernels(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and can_use(*tensors)


def gru_gates(
    projected: Float[Tensor, "B G"], recurrent: Float[Tensor, "B G"], hidden: Float[Tensor, "B H"]
) -> Float[Tensor, "B H"]:
    """s' from W x, U s and s."""
    if _trains_with_kernels(projected, recurrent, hidden):
        return _Gates.apply(projected, recurrent, hidden)  # type: ignore[no-any-return, no-untyped-call]
    width = hidden.shape[1]
    reset, update = torch.sigmoid(projected[:, : 2 * width] + recurrent[:, : 2 * width]).chunk(2, dim=1)
    new = torch.tanh(projected[:, 2 * width :] + reset * recurrent[:, 2 * width :])
    return torch.lerp(new, hidden, update)


def gru_states(
    projected: Float[Tensor, "B S G"],
    weight: Float[Tensor, "G H"],
    bias: Float[Tensor, " G"],
    start: Float[Tensor, "B H"],
) -> Float[Tensor, "B S H"]:
    """s_1 to s_S from W x, U, b and s_0, if there are kernels."""
    return _States.apply(projected, weight, bias, start.to(projected.dtype))  # type: ignore[no-any-return, no-untyped-call]


def _step(
    projected: Float[Tensor, "B G"],
    recurrent: Float[Tensor, "B G"],
    bias: Float[Tensor, " G"] | None,
    hidden: Float[Tensor, "B H"],
    following: Float[Tensor, "B H"],
    saved: Float[Tensor, "B 4 H"],
) -> None:
    """Write s' from W x, U s and s to `following`, and r, z, n and U s + b of n for the backward pass to `saved`."""
    threads, gates = threads_for(_GATE_COST * projected.numel()), 3 * hidden.shape[1]
    call("gru_step", projected, recurrent, bias, hidden, following, saved, threads=threads, gates=gates)


def _step_back(
    upstream: Float[Tensor, "B H"],
    carried: Float[Tensor, "B H"] | None,
    saved: Float[Tensor, "B 4 H"],
    hidden: Float[Tensor, "B H"],
    d_projected: Float[Tensor, "B G"],
    d_recurrent: Float[Tensor, "B G"],
    d_hidden: Float[Tensor, "B H"],
) -> None:
    """Write the gradients of W x, of U s + b and, through z alone, of s.

    The gradient of s' is `upstream` + `carried`. `d_hidden` and `carried` may be the same tensor.
    """
    tensors = upstream, carried, saved, hidden, d_projected, d_recurrent, d_hidden
    call("gru_step_back", *tensors, threads=threads_for(_GATE_COST * hidden.numel()), gates=3 * hidden.shape[1])


class _Gates(torch.autograd.Function):
    """One step."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
        following, saved = hidden.new_empty(hidden.shape), hidden.new_empty(len(hidden), 4, hidden.shape[1])
        _step(projected, recurrent, None, hidden, following, saved)
        ctx.save_for_backward(saved, hidden)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        saved, hidden = ctx.saved_tensors
        batch, width = hidden.shape
        d_projected, d_recurrent = hidden.new_empty(2, batch, GATES * width)
        d_hidden = hidden.new_empty(batch, width)
        _step_back(upstream.contiguous(), None, saved, hidden, d_projected, d_recurrent, d_hidden)
        return d_projected, d_recurrent, d_hidden


class _States(torch.autograd.Function):
    """All steps: one product and one kernel each, in the backward pass too. The gradient of U is one product at the end.

    Saved tensors have the steps first, so that the rows of this product are contiguous.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, bias: Tensor, start: Tensor) -> Tensor:
        (batch, steps, _), width = projected.shape, start.shape[1]
        hidden = projected.new_empty(steps + 1, batch, width)
        saved = projected.new_empty(steps, batch, 4, width)
        packed, bias = PackedWeight(weight, projected.dtype), bias.float()
        hidden[0] = start
        for step in range(steps):
            recurrent = packed.product(hidden[step])
            _step(projected[:, step], recurrent, bias, hidden[step], hidden[step + 1], saved[step])
        ctx.save_for_backward(saved, hidden)
        ctx.weight = packed
        return hidden[1:].transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        saved, hidden = ctx.saved_tensors
        steps, batch, _, width = saved.shape
        gates = GATES * width
        upstream = upstream if upstream.stride(-1) == 1 else upstream.contiguous()
        d_projected, d_recurrent = hidden.new_empty(batch, steps, gates), hidden.new_empty(steps, batch, gates)
        d_hidden = hidden.new_zeros(batch, width)
        for step in reversed(range(steps)):
            arrays = upstream[:, step], d_hidden, saved[step], hidden[step]
            _step_back(*arrays, d_projected[:, step], d_recurrent[step], d_hidden)
            d_hidden += ctx.weight.product_back(d_recurrent[step])
        d_recurrents = d_recurrent.flatten(0, 1)
        return d_projected, d_recurrents.T @ hidden[:-1].flatten(0, 1), d_recurrents.sum(0), d_hidden
