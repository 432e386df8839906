"""Attention in training: scores whose gradients are deferred, and the additive attention in one kernel."""

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
from nmt.model.attention import Attended, Attention, AttentionMemory
from nmt.model.decoder import AttendThenUpdate, Decoded, RecurrentState, UpdateThenAttend, concatenated
from nmt.model.scores import AdditiveScore, ConcatScore, DotScore, GeneralScore


class DeferredAdditiveScore(AdditiveScore):
    """Step by step, so that no [N T S D] numbers are held."""

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
    """The same without a bias."""


class DeferredDotScore(DotScore):
    """A single step defers the gradient of the keys; several steps at once are one product anyway."""

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
    """The same with keys W_a h_s."""


_KERNEL_SCORES = (AdditiveScore, ConcatScore, DeferredAdditiveScore, DeferredConcatScore)
"""What the kernel computes; a subclass may compute something else."""


class DeferredAttention(Attention):
    """Global additive attention in one kernel per step; else the plain attention with a deferred weighted sum."""

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> Attended:
        if self._has_kernel(memory) and (steps := self._in_one_kernel(queries, memory)) is not None:
            return steps
        return super().forward(queries, positions, memory, coverage)

    def _has_kernel(self, memory: AttentionMemory) -> bool:
        is_additive = type(self.score) in _KERNEL_SCORES and not self.has_coverage
        return is_additive and self.window is None and can_attend_additively(memory.keys)

    def _in_one_kernel(self, queries: Float[Tensor, "N T H"], memory: AttentionMemory) -> Attended | None:
        """None if a key is too large for the kernel."""
        score, steps = self.score, []
        assert isinstance(score, AdditiveScore)
        for query in queries.unbind(1):
            step = attend_additively(query, score.query, memory.keys, score.v, memory.annotations, memory.mask)
            if step is None:
                return None
            steps.append(Attended(step[0].unsqueeze(1), step[1].unsqueeze(1)))
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
