"""The compiled kernels of a GRU in training, as functions of tensors in fp32 or bf16.

`loss.py` and `attention.py` call those of the softmax and of attention. Each makes one pass over memory where PyTorch makes several
with a temporary tensor each. Tests compare them with the equivalent PyTorch, which stands where they are used.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.fast.kernels.build import library
from nmt.fast.kernels.calls import call, threads_for

_GATE_COST = 4
"""Operations of `threads_for` that a gate takes."""


def can_use(*tensors: Tensor) -> bool:
    """Whether there are kernels for these tensors: all fp32 or all bf16, on a CPU, the numbers of a row side by side."""
    first = tensors[0].dtype
    return (
        first in (torch.float32, torch.bfloat16)
        and all(tensor.dtype == first and tensor.is_cpu and tensor.stride(-1) == 1 for tensor in tensors)
        and library() is not None
    )


def gru_step(
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


def gru_step_back(
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
