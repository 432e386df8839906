"""The compiled kernels of training, as functions of tensors in fp32 or bf16.

Each makes one pass over memory where PyTorch makes several with a temporary tensor each, forwards and backwards. Tests compare them
with the equivalent PyTorch, which stands where they are used.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
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


def softmax_gradient_(
    logits: Float[Tensor, "N V"], bias: Float[Tensor, " V"], gold: Int[Tensor, " N"], gold_share: float, real: int
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"], Float[Tensor, " V"]]:
    """log sum_v e^(x_v), x_gold, and the sum over rows of the gradient p - gold_share onehot(gold), which replaces the logits.

    x are the logits with the bias. From row `real` on all is 0.
    """
    threads = torch.get_num_threads()
    log_sums, gold_logits = bias.new_empty(len(gold)), bias.new_empty(len(gold))
    sums, scratch = bias.new_empty(2, threads, len(bias))
    tensors = logits, bias.contiguous(), gold, log_sums, gold_logits, sums, scratch
    call("softmax_gradient", *tensors, threads=threads, real=real, gold_share=gold_share)
    return log_sums, gold_logits, sums.sum(0)


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


def additive_attention_back(
    d_contexts: Float[Tensor, "N A"],
    d_weights: Float[Tensor, "N S"],
    exp_queries: Float[Tensor, "N D"],
    exp_keys: Float[Tensor, "N S D"],
    v: Float[Tensor, " D"],
    annotations: Float[Tensor, "N S A"],
    weights: Float[Tensor, "N S"],
    starts: Int[Tensor, " N"] | None = None,
    factors: Float[Tensor, "N W"] | None = None,
) -> tuple[Float[Tensor, "N S"], Float[Tensor, "N D"], Float[Tensor, "N W"] | None]:
    """The gradients of scores, queries and factors of `additive_attention`, in fp32, for one query per sentence.

    With x = e^(2q) e^(2k):  1 - tanh^2 (q + k) = 4 x / (1 + x)^2.
    """
    d_scores, d_queries = torch.empty_like(weights), torch.empty_like(exp_queries)
    given = d_contexts, d_weights, exp_queries, exp_keys, v, annotations, weights, starts, factors
    inputs = (None if tensor is None else tensor.contiguous() for tensor in given)
    d_factors = None if factors is None else torch.empty_like(factors, memory_format=torch.contiguous_format)
    window = 0 if factors is None else factors.shape[1]
    threads = threads_for(len(v) * (weights.numel() if factors is None else factors.numel()))
    call("additive_attention_back", *inputs, d_scores, d_queries, d_factors, threads=threads, window=window)
    return d_scores, d_queries, d_factors


def additive_keys_back(
    exp_queries: Float[Tensor, "T N D"],
    d_scores: Float[Tensor, "T N S"],
    exp_keys: Float[Tensor, "N S D"],
    v: Float[Tensor, " D"],
) -> tuple[Float[Tensor, "N S D"], Float[Tensor, " D"]]:
    """The gradients of the keys and of v, summed over all steps in one pass:

    d k_j = sum_t g_tj v (1 - tanh^2 (q_t + k_j));  d v = sum_tj g_tj tanh(q_t + k_j).
    """
    threads = torch.get_num_threads()
    d_keys, d_v = torch.empty_like(exp_keys), v.new_empty(threads, len(v))
    call("additive_keys_back", exp_queries, d_scores, exp_keys, v, d_keys, d_v, threads=threads)
    return d_keys, d_v.sum(0)
