"""The GRU in training: all steps of a layer as one node of the graph, with gradients written out.

Autograd would run a dozen small operations per step, each a pass over memory. Here a step is one product and one kernel, forwards and
backwards, and the gradient of U is one product at the end. With a = W x + U s of r and z, b = W x + r * (U s) of n, and g = dL/ds':

    db = g (1 - z) (1 - n^2);  da = [db (U s), g (s - n)] r z (1 - r z);  dx = [da, db];  dU s = [da, db r];  ds = g z
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from nmt.fast.deferred import deferring, is_deferring, step_linear
from nmt.fast.kernels import training as training_kernels
from nmt.model.cells import GruCell, dropped
from nmt.model.decoder import Recurrence, RecurrentState

GATES = GruCell.gates


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
        """Whether there is no layer normalization, which `states` does not compute."""
        return isinstance(self.norm_recurrent, nn.Identity)

    def states(self, projected: Float[Tensor, "B T G"], start: Float[Tensor, "B H"]) -> Float[Tensor, "B T H"]:
        """The states of all steps after `start`."""
        return gru_states(projected, self.recurrent.weight, self.recurrent.bias, start)

    if TYPE_CHECKING:
        __call__ = forward


class FastRecurrence(Recurrence):
    """Computes all steps of a single GRU layer in one node of the graph."""

    def all_steps(
        self, tokens: Float[Tensor, "B T G"], state: RecurrentState
    ) -> tuple[Float[Tensor, "B T H"], RecurrentState]:
        cell = self.cells[0]
        if self.layers > 1 or state.masks is not None or not is_deferring():
            return super().all_steps(tokens, state)
        if not isinstance(cell, FastGruCell) or not cell.is_plain:
            return super().all_steps(tokens, state)
        states = cell.states(tokens, state.hidden[:, 0])
        return states, replace(state, hidden=states[:, -1:])


class FastGru(nn.GRU):
    """The layer step by step in training on a CPU, where the backward pass of PyTorch's own layer is slower."""

    def forward(self, values: Float[Tensor, "B S D"], hx: Tensor | None = None) -> tuple[Tensor, Tensor]:  # type: ignore[override] # no packed sequences
        weight, recurrent, bias, recurrent_bias = self.all_weights[0]
        if hx is not None or not torch.is_grad_enabled():
            states, final = super().forward(values, hx)
            return states, final
        projected = functional.linear(values, weight, bias)
        with deferring():
            start = projected.new_zeros(len(values), self.hidden_size)
            states = gru_states(projected, recurrent, recurrent_bias, start)
        return states, states[:, -1:].transpose(0, 1)


def gru_gates(
    projected: Float[Tensor, "B G"], recurrent: Float[Tensor, "B G"], hidden: Float[Tensor, "B H"]
) -> Float[Tensor, "B H"]:
    """s' from W x, U s and s."""
    if is_deferring():
        node = _CompiledGates if training_kernels.can_use(projected, recurrent, hidden) else _Gates
        return node.apply(projected, recurrent, hidden)  # type: ignore[no-any-return, no-untyped-call]
    width = hidden.shape[1]
    reset, update = torch.sigmoid(projected[:, : 2 * width] + recurrent[:, : 2 * width]).chunk(2, dim=1)
    new = torch.tanh(projected[:, 2 * width :] + reset * recurrent[:, 2 * width :])
    return torch.lerp(new, hidden, update)


def unrolled(
    projected: Float[Tensor, "B S G"],
    step: Callable[[Float[Tensor, "B G"], Float[Tensor, "B H"]], Float[Tensor, "B H"]],
    start: Float[Tensor, "B H"],
) -> Float[Tensor, "B S H"]:
    """s_1 to s_S from W x, a step and s_0."""
    hidden, states = start.to(projected.dtype), []
    for inputs in projected.unbind(1):
        hidden = step(inputs, hidden)
        states.append(hidden)
    return torch.stack(states, 1)


def gru_states(
    projected: Float[Tensor, "B S G"],
    weight: Float[Tensor, "G H"],
    bias: Float[Tensor, " G"],
    start: Float[Tensor, "B H"],
) -> Float[Tensor, "B S H"]:
    """s_1 to s_S from W x, U, b and s_0, inside `deferring()`: one node of the graph if there are kernels."""
    start = start.to(projected.dtype)
    if training_kernels.can_use(projected, start):
        return _CompiledStates.apply(projected, weight, bias, start)  # type: ignore[no-any-return, no-untyped-call]
    return unrolled(
        projected, lambda inputs, hidden: gru_gates(inputs, step_linear(hidden, weight, bias), hidden), start
    )


class _Gates(torch.autograd.Function):
    """One step, in PyTorch."""

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


class _CompiledGates(torch.autograd.Function):
    """One step, by a kernel."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
        following, saved = hidden.new_empty(hidden.shape), hidden.new_empty(len(hidden), 4, hidden.shape[1])
        training_kernels.gru_step(projected, recurrent, None, hidden, following, saved)
        ctx.save_for_backward(saved, hidden)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        saved, hidden = ctx.saved_tensors
        batch, width = hidden.shape
        d_projected, d_recurrent = hidden.new_empty(2, batch, GATES * width)
        d_hidden = hidden.new_empty(batch, width)
        training_kernels.gru_step_back(upstream.contiguous(), None, saved, hidden, d_projected, d_recurrent, d_hidden)
        return d_projected, d_recurrent, d_hidden


class _CompiledStates(torch.autograd.Function):
    """All steps: one product and one kernel each, in the backward pass too. The gradient of U is one product at the end.

    Saved tensors have the steps first, so that the rows of this product are contiguous.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, bias: Tensor, start: Tensor) -> Tensor:
        (batch, steps, gates), width = projected.shape, start.shape[1]
        hidden = projected.new_empty(steps + 1, batch, width)
        saved, recurrent = projected.new_empty(steps, batch, 4, width), projected.new_empty(batch, gates)
        narrow, bias = weight.to(projected.dtype), bias.float()
        hidden[0] = start
        for step in range(steps):
            torch.mm(hidden[step], narrow.T, out=recurrent)
            training_kernels.gru_step(projected[:, step], recurrent, bias, hidden[step], hidden[step + 1], saved[step])
        ctx.save_for_backward(saved, hidden, narrow)
        return hidden[1:].transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        saved, hidden, weight = ctx.saved_tensors
        (steps, batch, _, width), gates = saved.shape, len(weight)
        upstream = upstream if upstream.stride(-1) == 1 else upstream.contiguous()
        d_projected, d_recurrent = hidden.new_empty(batch, steps, gates), hidden.new_empty(steps, batch, gates)
        d_hidden = hidden.new_zeros(batch, width)
        for step in reversed(range(steps)):
            training_kernels.gru_step_back(
                upstream[:, step],
                d_hidden,
                saved[step],
                hidden[step],
                d_projected[:, step],
                d_recurrent[step],
                d_hidden,
            )
            d_hidden.addmm_(d_recurrent[step], weight)
        d_recurrents = d_recurrent.flatten(0, 1)
        return d_projected, d_recurrents.T @ hidden[:-1].flatten(0, 1), d_recurrents.sum(0), d_hidden
