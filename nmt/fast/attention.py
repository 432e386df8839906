"""Attention in training: additive attention is one kernel per step, whose gradients of keys, annotations and v are deferred.

The kernel holds no [N S D] numbers, and computes v^T tanh(q + k) from e^(2q) e^(2k).
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.fast.deferred import DeferredGradient, current_deferral, deferring
from nmt.fast.kernels.calls import call, can_use, threads_for
from nmt.fast.kernels.decoding import additive_attention, exp_of_keys
from nmt.model.attention import Attention, AttentionMemory, AttentionOutput
from nmt.model.decoder import AttendThenUpdate, AttentionalDecoder, Decoded, RecurrentState, UpdateThenAttend, stacked
from nmt.model.normalizers import masked_softmax
from nmt.model.scores import AdditiveScore, ConcatScore
from nmt.model.windows import Window


class DeferredDecoder(AttentionalDecoder):
    """A decoder of either order with deferred gradients."""

    def forward(self, embedded: Float[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        with deferring(torch.is_grad_enabled()):
            return super().forward(embedded, state, memory)


class DeferredAttendThenUpdate(DeferredDecoder, AttendThenUpdate):
    """Bahdanau's order."""


class DeferredUpdateThenAttend(DeferredDecoder, UpdateThenAttend):
    """Luong's order."""


def can_fuse(attention: Attention) -> bool:
    """Whether the kernels compute such an attention: scores by exact type, as a subclass may compute something else."""
    is_additive = type(attention.score) in (AdditiveScore, ConcatScore)
    return is_additive and attention.normalize is masked_softmax


class DeferredAttention(Attention):
    """Fuses a step of additive attention with a softmax into one kernel."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        score = self.score
        if not can_fuse(self) or not can_attend_additively(memory.keys):
            return super().forward(queries, positions, memory, coverage)
        assert isinstance(score, AdditiveScore)
        memory = memory.by_row()
        centers, *bounds = windows_of(self.window, queries, positions, memory)
        projected, addends = score.query(queries), None if coverage is None else self.weigh_coverage(queries, coverage)
        attended = attend_additively(projected, memory.keys, score.v, memory.annotations, memory.mask, addends, *bounds)
        if attended is None:
            return super().forward(queries, positions, memory, coverage)
        return AttentionOutput(*attended, centers)


# --- additive attention as one kernel ---------------------------------------------------------------------------------


def can_attend_additively(keys: Float[Tensor, "N S D"]) -> bool:
    """Whether `attend_additively` may be called: inside `deferring()`, with kernels for such keys."""
    return current_deferral() is not None and can_use(keys)


def attend_additively(
    queries: Float[Tensor, "N T D"],
    keys: Float[Tensor, "N S D"],
    v: nn.Linear,
    annotations: Float[Tensor, "N S A"],
    mask: Bool[Tensor, "N S"],
    addends: Float[Tensor, "N T S"] | None = None,
    starts: Int[Tensor, "N T"] | None = None,
    factors: Float[Tensor, "N T W"] | None = None,
) -> tuple[Float[Tensor, "N T A"], Float[Tensor, "N T S"]] | None:
    """Contexts and weights of T steps with an additive score, by one kernel each; None if a key is too large for it."""
    current = current_deferral()
    assert current is not None
    shared, gradient = current.share(AttentionGradient, keys, v.weight, annotations)
    if gradient.exp_keys is None:
        return None
    steps = [
        _AdditiveAttention.apply(*of_step, mask, gradient, *shared)  # type: ignore[no-untyped-call]
        for of_step in zip(
            queries.unbind(1),
            *(repeat(None) if part is None else part.unbind(1) for part in (addends, starts, factors)),
            strict=False,
        )
    ]
    contexts, weights = (stacked(results) for results in zip(*steps, strict=True))
    return contexts, weights


class AttentionGradient(DeferredGradient):
    """e^(2 q_t), alpha_t and the gradients of scores and contexts -> dk, dv, and dh_j = sum_t alpha_tj g_t.

    dk_j = sum_t g_tj v (1 - tanh^2 (q_t + k_j));  dv = sum_tj g_tj tanh(q_t + k_j), both in one pass.
    """

    compute_type = torch.float32

    def __init__(
        self, keys: Float[Tensor, "N S D"], v: Float[Tensor, "1 D"], annotations: Float[Tensor, "N S A"]
    ) -> None:
        super().__init__()
        self.v = v.detach().float().flatten()
        self.exp_keys = exp_of_keys(keys.detach().float())
        """e^(2 k_j); None if a key is too large."""

    def form(self) -> tuple[Tensor, ...]:
        assert self.exp_keys is not None
        exp_queries, weights, d_scores, d_contexts = self.take()  # [T N D], [T N S], [T N S], [T N A]
        threads = torch.get_num_threads()
        d_keys, d_v = torch.empty_like(self.exp_keys), self.v.new_empty(threads, len(self.v))  # dv: of each thread
        call("additive_keys_back", exp_queries, d_scores, self.exp_keys, self.v, d_keys, d_v, threads=threads)
        return d_keys, d_v.sum(0, keepdim=True), torch.bmm(weights.permute(1, 2, 0), d_contexts.transpose(0, 1))


class _AdditiveAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        addends: Tensor | None,
        starts: Tensor | None,
        factors: Tensor | None,
        mask: Tensor,
        gradient: AttentionGradient,
        *shared: Tensor,
    ) -> tuple[Tensor, Tensor]:
        _, _, annotations = shared
        rows = torch.arange(len(projected))
        assert gradient.exp_keys is not None
        contexts, weights, exp_queries = additive_attention(
            projected.float(), gradient.exp_keys, gradient.v, mask, annotations, rows, addends, starts, factors
        )
        ctx.save_for_backward(exp_queries, weights, annotations, starts, factors)
        ctx.gradient, ctx.dtype = gradient, projected.dtype
        return contexts.to(projected.dtype), weights

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        exp_queries, weights, annotations, starts, factors = ctx.saved_tensors
        gradient, (d_contexts, d_weights) = ctx.gradient, (d_output.float().contiguous() for d_output in upstream)
        d_scores, d_queries = torch.empty_like(weights), torch.empty_like(exp_queries)
        d_factors = None if factors is None else torch.empty_like(factors, memory_format=torch.contiguous_format)
        starts, factors = (None if bound is None else bound.contiguous() for bound in (starts, factors))
        call(
            "additive_attention_back",
            *(d_contexts, d_weights, exp_queries, gradient.exp_keys, gradient.v, annotations.contiguous(), weights),
            *(starts, factors, d_scores, d_queries, d_factors),
            threads=threads_for(len(gradient.v) * (weights.numel() if factors is None else factors.numel())),
            window=0 if factors is None else factors.shape[1],
        )
        gradient.save(exp_queries, weights, d_scores, d_contexts)
        return d_queries.to(ctx.dtype), d_scores if ctx.needs_input_grad[1] else None, None, d_factors, *[None] * 5


def windows_of(
    window: Window | None, queries: Float[Tensor, "N T H"], positions: Int[Tensor, "N T"], memory: AttentionMemory
) -> tuple[Float[Tensor, "N T 1"] | None, Int[Tensor, "N T"] | None, Float[Tensor, "N T W"] | None]:
    """Local windows (Luong et al. 2015, 3.2) as the kernels of additive attention read them.

    Returns:
        The centers of T queries per row, the first position that each reads, and the factors of W positions from there on; without
        a window all are None.
    """
    if window is None:
        return None, None, None
    center = window.center(queries, positions, memory.row_mask)
    length = memory.mask.shape[1]
    near = window.positions(center, window.size(length), length)
    return center.unsqueeze(-1), near[..., 0], window.factor(center, near)
