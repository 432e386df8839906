"""The gated recurrent unit (Cho et al. 2014): one step, all steps of what is known beforehand, and their gradients.

    r, z = sigmoid(W x + U s);  n = tanh(W x + r * (U s));  s' = (1 - z) * n + z * s

r multiplies after U, as in cuDNN. With a = W x + U s of r and z, b = W x + r * (U s) of n, and g = dL/ds':

    db = g (1 - z) (1 - n^2);  da = [db (U s), g (s - n)] r z (1 - r z);  dx = [da, db];  dU s = [da, db r];  ds = g z
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.model.gathering import is_gathering, step_linear
from nmt.native import gradients, kernels

GATES_OF_GRU = 3


def gru_gates(
    projected: Float[Tensor, "B G"], recurrent: Float[Tensor, "B G"], hidden: Float[Tensor, "B H"]
) -> Float[Tensor, "B H"]:
    """s' of W x, U s and s; in a loop that gathers gradients as one node of the graph."""
    if is_gathering():
        node = _CompiledGates if gradients.can_use(projected, recurrent, hidden) else _Gates
        return node.apply(projected, recurrent, hidden)  # type: ignore[no-any-return, no-untyped-call]
    if kernels.can_use(projected, recurrent, hidden):
        return kernels.gru_gates(projected, recurrent, hidden)
    width = hidden.shape[1]
    reset, update = torch.sigmoid(projected[:, : 2 * width] + recurrent[:, : 2 * width]).chunk(2, dim=1)
    new = torch.tanh(projected[:, 2 * width :] + reset * recurrent[:, 2 * width :])
    return torch.lerp(new, hidden, update)


def gru_states(
    projected: Float[Tensor, "B S G"],
    step: Callable[[Float[Tensor, "B G"], Float[Tensor, "B H"]], Float[Tensor, "B H"]],
    start: Float[Tensor, "B H"],
) -> Float[Tensor, "B S H"]:
    """s_1 to s_S of W x, a step and s_0."""
    hidden, states = start.to(projected.dtype), []
    for reads in projected.unbind(1):
        hidden = step(reads, hidden)
        states.append(hidden)
    return torch.stack(states, 1)


def learn_gru_states(
    projected: Float[Tensor, "B S G"],
    weight: Float[Tensor, "G H"],
    bias: Float[Tensor, " G"],
    start: Float[Tensor, "B H"],
) -> Float[Tensor, "B S H"]:
    """The same of U and b, within `gathering`: as one node of the graph, if there are kernels for it."""
    start = start.to(projected.dtype)
    if gradients.can_use(projected, start):
        return _CompiledStates.apply(projected, weight, bias, start)  # type: ignore[no-any-return, no-untyped-call]
    return gru_states(
        projected, lambda reads, hidden: gru_gates(reads, step_linear(hidden, weight, bias), hidden), start
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
        following, kept = hidden.new_empty(hidden.shape), hidden.new_empty(len(hidden), 4, hidden.shape[1])
        gradients.gru_step(projected, recurrent, None, hidden, following, kept)
        ctx.save_for_backward(kept, hidden)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        kept, hidden = ctx.saved_tensors
        batch, width = hidden.shape
        d_projected, d_recurrent = hidden.new_empty(2, batch, GATES_OF_GRU * width)
        d_hidden = hidden.new_empty(batch, width)
        gradients.gru_step_back(upstream.contiguous(), None, kept, hidden, d_projected, d_recurrent, d_hidden)
        return d_projected, d_recurrent, d_hidden


class _CompiledStates(torch.autograd.Function):
    """All steps: a product and a kernel each, on the way back too; the gradient of U is one product of what all steps leave.

    Steps come first in what is kept, so that this product has its rows one after the other.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, bias: Tensor, start: Tensor) -> Tensor:
        (batch, steps, gates), width = projected.shape, start.shape[1]
        hidden = projected.new_empty(steps + 1, batch, width)
        kept, recurrent = projected.new_empty(steps, batch, 4, width), projected.new_empty(batch, gates)
        narrow, bias = weight.to(projected.dtype), bias.float()
        hidden[0] = start
        for step in range(steps):
            torch.mm(hidden[step], narrow.T, out=recurrent)
            gradients.gru_step(projected[:, step], recurrent, bias, hidden[step], hidden[step + 1], kept[step])
        ctx.save_for_backward(kept, hidden, narrow)
        return hidden[1:].transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        kept, hidden, weight = ctx.saved_tensors
        (steps, batch, _, width), gates = kept.shape, len(weight)
        upstream = upstream if upstream.stride(-1) == 1 else upstream.contiguous()
        d_projected, d_recurrent = hidden.new_empty(batch, steps, gates), hidden.new_empty(steps, batch, gates)
        d_hidden = hidden.new_zeros(batch, width)
        for step in reversed(range(steps)):
            gradients.gru_step_back(
                upstream[:, step], d_hidden, kept[step], hidden[step], d_projected[:, step], d_recurrent[step], d_hidden
            )
            d_hidden.addmm_(d_recurrent[step], weight)
        of_all = d_recurrent.flatten(0, 1)
        return d_projected, of_all.T @ hidden[:-1].flatten(0, 1), of_all.sum(0), d_hidden
