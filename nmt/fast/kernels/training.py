"""What the compiled kernels compute in training, as functions of tensors in fp32 or bf16. What they are equal to stands in PyTorch
where they are used, and the tests hold them against that.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.fast.kernels.build import library
from nmt.fast.kernels.calls import call, threads_for

_GATES = 4
"""How many times as long a gate takes as other arithmetic."""


def can_use(*tensors: Tensor) -> bool:
    """Whether there are kernels, and for these: all fp32 or all bf16, in a CPU's memory, the numbers of a row side by side."""
    first = tensors[0].dtype
    return (
        first in (torch.float32, torch.bfloat16)
        and all(each.dtype == first and each.device.type == "cpu" and each.stride(-1) == 1 for each in tensors)
        and library() is not None
    )


def gru_step(
    projected: Float[Tensor, "B G"],
    recurrent: Float[Tensor, "B G"],
    bias: Float[Tensor, " G"] | None,
    hidden: Float[Tensor, "B H"],
    following: Float[Tensor, "B H"],
    kept: Float[Tensor, "B 4 H"],
) -> None:
    """Write s' of W x, U s + b and s, and what its gradient needs: r, z, n and (U s + b) of n."""
    call("gru_step", (projected, recurrent, bias, hidden, following, kept), threads_for(_GATES * projected.numel()))


def gru_step_back(
    upstream: Float[Tensor, "B H"],
    carried: Float[Tensor, "B H"] | None,
    kept: Float[Tensor, "B 4 H"],
    hidden: Float[Tensor, "B H"],
    d_projected: Float[Tensor, "B G"],
    d_recurrent: Float[Tensor, "B G"],
    d_hidden: Float[Tensor, "B H"],
) -> None:
    """Write the gradients of W x, of U s + b and, beside that, of s, for one of s' that is the sum of two; `d_hidden` may be one."""
    tensors = upstream, carried, kept, hidden, d_projected, d_recurrent, d_hidden
    call("gru_step_back", tensors, threads_for(_GATES * hidden.numel()))


def additive_attention_back(
    d_contexts: Float[Tensor, "N A"],
    d_weights: Float[Tensor, "N S"],
    asked: Float[Tensor, "N D"],
    odds: Float[Tensor, "N S D"],
    v: Float[Tensor, " D"],
    annotations: Float[Tensor, "N S A"],
    weights: Float[Tensor, "N S"],
) -> tuple[Float[Tensor, "N S"], Float[Tensor, "N D"]]:
    """The gradients of the scores and of the queries of `kernels.additive_attention`, in fp32, of one query a sentence.

    With x = e^(2 q) e^(2 k):  1 - tanh^2 (q + k) = 4 x / (1 + x)^2.
    """
    d_scores, d_queries = torch.empty_like(weights), torch.empty_like(asked)
    read = d_contexts.contiguous(), d_weights.contiguous(), asked, odds, v, annotations.contiguous(), weights
    tensors = *read, d_scores, d_queries
    call("additive_attention_back", tensors, threads_for(odds.numel()))
    return d_scores, d_queries


def additive_keys_back(
    asked: Float[Tensor, "T N D"],
    d_scores: Float[Tensor, "T N S"],
    odds: Float[Tensor, "N S D"],
    v: Float[Tensor, " D"],
) -> tuple[Float[Tensor, "N S D"], Float[Tensor, " D"]]:
    """The gradients of the keys and of v, of all steps at once:

    d k_j = sum_t g_tj v (1 - tanh^2 (q_t + k_j));  d v = sum_tj g_tj tanh(q_t + k_j).
    """
    threads = torch.get_num_threads()
    d_keys, d_v = torch.empty_like(odds), v.new_empty(threads, len(v))
    call("additive_keys_back", (asked, d_scores, odds, v, d_keys, d_v), threads)
    return d_keys, d_v.sum(0)
