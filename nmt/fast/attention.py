"""Attention in training, with deferred gradients: those of keys, annotations and v are formed once, not at every step.

Additive attention is one kernel per step, which holds no [N S D] numbers and computes v^T tanh(q + k) from e^(2q) e^(2k).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from nmt.fast.deferred import DeferredGradient, current_deferral, deferring
from nmt.fast.kernels import decoding as decoding_kernels
from nmt.fast.kernels import training as training_kernels
from nmt.fast.local_attention import windows_of
from nmt.model.attention import Attention, AttentionMemory, AttentionOutput
from nmt.model.decoder import AttendThenUpdate, AttentionalDecoder, Decoded, RecurrentState, UpdateThenAttend, stacked
from nmt.model.precision import at_least_fp32
from nmt.model.scores import AdditiveScore, ConcatScore


class DeferredDecoder(AttentionalDecoder):
    """A decoder of either order with deferred gradients."""

    def forward(self, embedded: Float[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        with deferring(torch.is_grad_enabled()):
            return super().forward(embedded, state, memory)


class DeferredAttendThenUpdate(DeferredDecoder, AttendThenUpdate):
    """Bahdanau's order."""


class DeferredUpdateThenAttend(DeferredDecoder, UpdateThenAttend):
    """Luong's order."""


class DeferredAdditiveScore(AdditiveScore):
    """Computes the steps one by one, so that no [N T S D] numbers are in memory."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        keys: Float[Tensor, "N S D"],
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> Float[Tensor, "N T S"]:
        steps = self.query(queries).unbind(1)
        if self.coverage is None or coverage is None:
            return torch.stack([additive_scores(query, keys, self.v) for query in steps], 1)
        covered = [keys + self.coverage(each.unsqueeze(-1).to(keys.dtype)) for each in coverage.unbind(1)]
        return torch.stack([additive_scores(*each, self.v) for each in zip(steps, covered, strict=True)], 1)


class DeferredConcatScore(DeferredAdditiveScore, ConcatScore):
    """The same for the concat score."""


_FUSED = (DeferredAdditiveScore, DeferredConcatScore)
"""The scores of the kernel, by exact type: a subclass may compute something else."""


class DeferredAttention(Attention):
    """Fuses a step of additive attention into one kernel."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        score = self.score
        if type(score) not in _FUSED or self.has_coverage or not can_attend_additively(memory.keys):
            return super().forward(queries, positions, memory, coverage)
        assert isinstance(score, AdditiveScore)
        memory = memory.by_row()
        centers, *bounds = windows_of(self.window, queries, positions, memory)
        projected = score.query(queries)
        attended = attend_additively(projected, memory.keys, score.v, memory.annotations, memory.mask, *bounds)
        if attended is None:
            return super().forward(queries, positions, memory, coverage)
        return AttentionOutput(*attended, centers)


# --- the additive score -----------------------------------------------------------------------------------------------


def additive_scores(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"], v: nn.Linear) -> Float[Tensor, "N S"]:
    """v^T tanh(q + k_j) = sum v - 2 v^T sigma(-2 (q + k_j)): on a CPU sigma is four (bf16) to ten times (fp32) as fast as tanh."""
    current = current_deferral()
    if current is None:
        return _scores_of(_complement(query, keys), v.weight)
    (shared, weight), gradient = current.share(AdditiveScoreGradient, keys, v.weight)
    return _AdditiveScores.apply(query.to(shared.dtype), shared, weight, gradient)  # type: ignore[no-any-return, no-untyped-call]


def _complement(query: Float[Tensor, "N D"], keys: Float[Tensor, "N S D"]) -> Float[Tensor, "N S D"]:
    """sigma(-2 (q + k_j)) = (1 - tanh(q + k_j)) / 2."""
    return torch.sub((-2 * query).unsqueeze(1), keys, alpha=2).sigmoid_()


def _scores_of(complement: Float[Tensor, "N S D"], v: Float[Tensor, "1 D"]) -> Float[Tensor, "N S"]:
    """v^T tanh(q + k_j) from (1 - tanh(q + k_j)) / 2."""
    return v.sum() - 2 * functional.linear(complement, v).squeeze(-1)


class AdditiveScoreGradient(DeferredGradient):
    """dk and dv, summed at every step: to save their [N S D] numbers per step would take more memory than time."""

    def save(self, *tensors: Tensor) -> None:
        if not self.saved:
            self.saved.append(tuple(at_least_fp32(tensor).clone() for tensor in tensors))
            return
        for total, tensor in zip(self.saved[0], tensors, strict=True):
            total.add_(tensor)

    def form(self) -> tuple[Tensor, ...]:
        keys, v = self.take()  # [1 N S D], [1 1 D]
        return keys[0], v[0]


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, gradient: DeferredGradient) -> Tensor:
        complement = _complement(query, keys)
        ctx.save_for_backward(complement, v)
        ctx.gradient = gradient
        return _scores_of(complement, v)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        complement, v = ctx.saved_tensors
        before_tanh = torch.ops.aten.sigmoid_backward(upstream[0].unsqueeze(-1) * (4 * v), complement)
        if ctx.needs_input_grad[1]:
            d_v = upstream[0].sum() - 2 * (upstream[0].reshape(1, -1) @ complement.flatten(0, 1))
            ctx.gradient.save(before_tanh, d_v)
        return before_tanh.sum(1), None, None, None


# --- additive attention as one kernel ---------------------------------------------------------------------------------


def can_attend_additively(keys: Float[Tensor, "N S D"]) -> bool:
    """Whether `attend_additively` may be called: inside `deferring()`, with kernels for such keys."""
    return current_deferral() is not None and training_kernels.can_use(keys)


def attend_additively(
    queries: Float[Tensor, "N T D"],
    keys: Float[Tensor, "N S D"],
    v: nn.Linear,
    annotations: Float[Tensor, "N S A"],
    mask: Bool[Tensor, "N S"],
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
        for of_step in zip(*map(_steps_of, (queries, starts, factors)), strict=False)
    ]
    contexts, weights = (stacked(parts) for parts in zip(*steps, strict=True))
    return contexts, weights


def _steps_of(values: Tensor | None) -> Iterable[Tensor | None]:
    """Values [N T ...] of each step; without values, None for any step."""
    return repeat(None) if values is None else values.unbind(1)


class AttentionGradient(DeferredGradient):
    """e^(2 q_t), alpha_t and the gradients of scores and context -> dk, dv, and dh_j = sum_t alpha_tj g_t."""

    compute_type = torch.float32

    def __init__(
        self, keys: Float[Tensor, "N S D"], v: Float[Tensor, "1 D"], annotations: Float[Tensor, "N S A"]
    ) -> None:
        super().__init__()
        self.v = v.detach().float().flatten()
        self.exp_keys = decoding_kernels.exp_of_keys(keys.detach().float())
        """e^(2 k_j); None if a key is too large."""

    def form(self) -> tuple[Tensor, ...]:
        assert self.exp_keys is not None
        exp_queries, weights, d_scores, d_contexts = self.take()  # [T N D], [T N S], [T N S], [T N A]
        d_keys, d_v = training_kernels.additive_keys_back(exp_queries, d_scores, self.exp_keys, self.v)
        return d_keys, d_v.unsqueeze(0), torch.bmm(weights.permute(1, 2, 0), d_contexts.transpose(0, 1))


class _AdditiveAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        starts: Tensor | None,
        factors: Tensor | None,
        mask: Tensor,
        gradient: AttentionGradient,
        *shared: Tensor,
    ) -> tuple[Tensor, Tensor]:
        _, _, annotations = shared
        rows = torch.arange(len(projected))
        assert gradient.exp_keys is not None
        contexts, weights, exp_queries = decoding_kernels.additive_attention(
            projected.float(), gradient.exp_keys, gradient.v, mask, annotations, rows, starts, factors
        )
        ctx.save_for_backward(exp_queries, weights, annotations, starts, factors)
        ctx.gradient, ctx.dtype = gradient, projected.dtype
        return contexts.to(projected.dtype), weights

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        exp_queries, weights, annotations, *bounds = ctx.saved_tensors
        gradient, (d_contexts, d_weights) = ctx.gradient, (each.float() for each in upstream)
        d_scores, d_queries, d_factors = training_kernels.additive_attention_back(
            d_contexts, d_weights, exp_queries, gradient.exp_keys, gradient.v, annotations, weights, *bounds
        )
        gradient.save(exp_queries, weights, d_scores, d_contexts)
        return d_queries.to(ctx.dtype), None, d_factors, *[None] * 5
