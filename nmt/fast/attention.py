"""Attention in training, with deferred gradients: those of keys, annotations and v are formed once, not at every step.

Global additive attention is one kernel per step, which holds no [N S D] numbers and computes v^T tanh(q + k) from e^(2q) e^(2k).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt.fast.deferred import (
    additive_scores,
    attend_additively,
    can_attend_additively,
    deferring,
    dot_scores,
    step_sum,
)
from nmt.model.attention import Attention, AttentionMemory, AttentionOutput
from nmt.model.decoder import AttendThenUpdate, Decoded, RecurrentState, UpdateThenAttend, concatenated
from nmt.model.scores import AdditiveScore, ConcatScore, DotScore, GeneralScore


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


class DeferredDotScore(DotScore):
    """Defers the gradient of the keys of a single step; several steps at once are one product anyway."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        keys: Float[Tensor, "N S D"],
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> Float[Tensor, "N T S"]:
        if queries.shape[1] > 1:
            return super().forward(queries, keys, coverage)
        return dot_scores(queries.squeeze(1), keys).unsqueeze(1)


class DeferredGeneralScore(DeferredDotScore, GeneralScore):
    """The same for keys W_a h_s."""


_KERNEL_SCORES = (AdditiveScore, ConcatScore, DeferredAdditiveScore, DeferredConcatScore)
"""The scores of the kernel, by exact type: a subclass may compute something else."""


class DeferredAttention(Attention):
    """Fuses a step of global additive attention into one kernel; else defers the gradient of the weighted sum."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        if self._can_fuse(memory) and (steps := self._fused(queries, memory)) is not None:
            return steps
        return super().forward(queries, positions, memory, coverage)

    def _can_fuse(self, memory: AttentionMemory) -> bool:
        is_additive = type(self.score) in _KERNEL_SCORES and not self.has_coverage
        return is_additive and self.window is None and can_attend_additively(memory.keys)

    def _fused(self, queries: Float[Tensor, "N T H"], memory: AttentionMemory) -> AttentionOutput | None:
        """None if a key is too large for the kernel."""
        score, steps = self.score, []
        assert isinstance(score, AdditiveScore)
        for query in queries.unbind(1):
            step = attend_additively(query, score.query, memory.keys, score.v, memory.annotations, memory.mask)
            if step is None:
                return None
            steps.append(AttentionOutput(step[0].unsqueeze(1), step[1].unsqueeze(1)))
        return concatenated(steps)

    def weighted_sum(
        self, weights: Float[Tensor, "N T S"], annotations: Float[Tensor, "N S A"]
    ) -> Float[Tensor, "N T A"]:
        if weights.shape[1] > 1:
            return super().weighted_sum(weights, annotations)
        return step_sum(weights.squeeze(1), annotations).unsqueeze(1)


class DeferredAttendThenUpdate(AttendThenUpdate):
    """Bahdanau's order with deferred gradients."""

    def forward(self, embedded: Float[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        with deferring(torch.is_grad_enabled()):
            return super().forward(embedded, state, memory)


class DeferredUpdateThenAttend(UpdateThenAttend):
    """Luong's order with deferred gradients."""

    def forward(self, embedded: Float[Tensor, "B T E"], state: RecurrentState, memory: AttentionMemory) -> Decoded:
        with deferring(torch.is_grad_enabled()):
            return super().forward(embedded, state, memory)
