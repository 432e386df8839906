"""Attention: score, mask, window and softmax give weights, and weights give the context.

    alpha_ij = softmax_j(e_ij) [x window factor]        (Bahdanau et al. 2015, eq. 6; Luong et al. 2015, eq. 7, 10)
    c_i = sum_j alpha_ij h_j                            (Bahdanau et al. 2015, eq. 5)

Padding never receives weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt import recipe
from nmt.model.precision import at_least_fp32
from nmt.model.scores import Score, build_score
from nmt.model.windows import Window, build_window


@dataclass(frozen=True)
class AttentionMemory:
    """What attention reads: the annotations h_j with their keys, one row per sentence. Heads, if any, are the second dimension."""

    annotations: Float[Tensor, "B *heads S A"]
    keys: Float[Tensor, "B *heads S D"]
    mask: Bool[Tensor, "B S"]
    summary: Float[Tensor, "B C"]
    """The fixed-length context of a decoder without attention (Cho et al. 2014)."""

    def select(self, rows: Int[Tensor, " M"]) -> AttentionMemory:
        """The memory of the given sentences, in their order."""
        annotations = self.annotations[rows]
        keys = annotations if self.keys is self.annotations else self.keys[rows]
        return replace(self, annotations=annotations, keys=keys, mask=self.mask[rows], summary=self.summary[rows])


@dataclass(frozen=True)
class AttentionOutput:
    """Contexts c_i and weights alpha_ij of T queries per sentence."""

    contexts: Float[Tensor, "N T A"]
    weights: Float[Tensor, "N T S"]
    centers: Float[Tensor, "N T K"] | None = None
    """Center p_t of the window of each of K heads; None for global attention."""


class Attention(nn.Module):
    """Attention with any score and any window; one head."""

    def __init__(self, score: Score | None, window: Window | None) -> None:
        super().__init__()
        self.score, self.window = score, window

    @property
    def has_coverage(self) -> bool:
        """Whether a step depends on the weights of the steps before."""
        return self.score is not None and self.score.has_coverage

    def build_memory(
        self, annotations: Float[Tensor, "B S A"], mask: Bool[Tensor, "B S"], summary: Float[Tensor, "B C"]
    ) -> AttentionMemory:
        """The annotations with what can be computed from them once per sentence."""
        keys = annotations if self.score is None else self.score.keys(annotations)
        return AttentionMemory(annotations, keys, mask, summary)

    def forward(
        self,
        queries: Float[Tensor, "N T H"],
        positions: Int[Tensor, "N T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
    ) -> AttentionOutput:
        """Contexts and weights of T decoder states per sentence; `positions` are the numbers of their steps, from 0."""
        if self.score is None:
            return without_attention(queries, memory)
        scores = at_least_fp32(self.score(queries, memory.keys, coverage))
        allowed = memory.mask.unsqueeze(1)
        if self.window is None:
            weights = masked_softmax(scores, allowed)
            return AttentionOutput(self.weighted_sum(weights, memory.annotations), weights)
        center = self.window.center(queries, positions, memory.mask)
        factor = self.window.factor(center, memory.mask.shape[1])
        weights = masked_softmax(scores, allowed & (factor > 0)) * factor
        return AttentionOutput(self.weighted_sum(weights, memory.annotations), weights, center.unsqueeze(-1))

    def weighted_sum(
        self, weights: Float[Tensor, "N T S"], annotations: Float[Tensor, "N S A"]
    ) -> Float[Tensor, "N T A"]:
        """c_i = sum_j alpha_ij h_j   (Bahdanau et al. 2015, eq. 5)."""
        return weights.to(annotations.dtype) @ annotations

    def position_contexts(self, memory: AttentionMemory) -> Float[Tensor, "B S A"]:
        """The context of each source position if it alone were attended to: c = h_j."""
        return memory.annotations

    if TYPE_CHECKING:
        __call__ = forward


class MultiHeadAttention(nn.Module):
    """K heads: head k queries with the k-th part of W s and reads the k-th part of U h_j (Vaswani et al. 2017, 3.2.2).

    All heads have the same kind of score and window. Their contexts are concatenated. The weights that are returned, and that
    coverage sums, are the mean over the heads.
    """

    def __init__(self, config: recipe.AttentionConfig, *, query: int, annotation: int) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(query, query, bias=False)
        self.annotation = nn.Linear(annotation, annotation, bias=False)
        head = config.model_copy(update={"score": _share(config.score, config.heads)})
        self.head_attention = _one_head(head, query=query // config.heads, annotation=annotation // config.heads)

    @property
    def has_coverage(self) -> bool:
        """Whether a step depends on the weights of the steps before."""
        return self.head_attention.has_coverage

    def build_memory(
        self, annotations: Float[Tensor, "B S A"], mask: Bool[Tensor, "B S"], summary: Float[Tensor, "B C"]
    ) -> AttentionMemory:
        """The annotations with what can be computed from them once per sentence, for each head."""
        projected = self._by_head(self.annotation(annotations))
        memory = self.head_attention.build_memory(
            projected, *(part.repeat_interleave(self.heads, 0) for part in (mask, summary))
        )
        annotations, keys = self._heads(memory.annotations), self._heads(memory.keys)
        return AttentionMemory(annotations, keys, mask, summary)

    def forward(
        self,
        queries: Float[Tensor, "B T H"],
        positions: Int[Tensor, "B T"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "B T S"] | None = None,
    ) -> AttentionOutput:
        """The concatenated contexts of all heads, and the mean of their weights."""
        annotations, keys = memory.annotations.flatten(0, 1), memory.keys.flatten(0, 1)
        shared = (part.repeat_interleave(self.heads, 0) for part in (memory.mask, memory.summary))
        positions = positions.repeat_interleave(self.heads, 0)
        coverage = None if coverage is None else coverage.repeat_interleave(self.heads, 0)
        queries = self._by_head(self.query(queries))
        heads = self.head_attention(queries, positions, AttentionMemory(annotations, keys, *shared), coverage)
        contexts, weights = (self._heads(part) for part in (heads.contexts, heads.weights))
        centers = None if heads.centers is None else self._heads(heads.centers).squeeze(-1).transpose(1, 2)
        return AttentionOutput(contexts.transpose(1, 2).flatten(2), weights.mean(1), centers)

    def position_contexts(self, memory: AttentionMemory) -> Float[Tensor, "B S A"]:
        """The context of each source position if every head attended to it alone."""
        return memory.annotations.transpose(1, 2).flatten(2)

    def _by_head(self, values: Float[Tensor, "B T D"]) -> Float[Tensor, "N T d"]:
        """[B T K*d] -> [B*K T d]: the part of each head, as a row of its own."""
        return torch.unflatten(values, -1, (self.heads, -1)).transpose(1, 2).flatten(0, 1)

    def _heads(self, values: Float[Tensor, "N T D"]) -> Float[Tensor, "B K T D"]:
        """[B*K T D] -> [B K T D]: the heads in a dimension of their own."""
        return torch.unflatten(values, 0, (-1, self.heads))

    if TYPE_CHECKING:
        __call__ = forward


def without_attention(queries: Float[Tensor, "N T H"], memory: AttentionMemory) -> AttentionOutput:
    """The same summary of the source at every step, and no weights (Cho et al. 2014)."""
    batch, steps = queries.shape[:2]
    weights = at_least_fp32(memory.summary).new_zeros(batch, steps, memory.mask.shape[1])
    return AttentionOutput(memory.summary.unsqueeze(1).expand(-1, steps, -1), weights)


def masked_softmax(scores: Float[Tensor, "*N S"], allowed: Bool[Tensor, "*#N S"]) -> Float[Tensor, "*N S"]:
    """alpha_ij = exp(e_ij) / sum_k exp(e_ik)   (Bahdanau et al. 2015, eq. 6; Luong et al. 2015, eq. 7).

    j and k are allowed positions; all others get exactly 0. A row without an allowed position is all 0.
    """
    allowed = allowed & (scores != float("-inf"))
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) * allowed


def _share(score: recipe.ScoreConfig, heads: int) -> recipe.ScoreConfig:
    """The score of one head, with an equal part of the hidden layer."""
    match score:
        case recipe.AdditiveScoreConfig() | recipe.ConcatScoreConfig():
            return score.model_copy(update={"size": score.size // heads})
        case _:
            return score


def build_attention(config: recipe.AttentionConfig, *, query: int, annotation: int) -> Attention | MultiHeadAttention:
    """The attention of a recipe, for queries [N T query] and annotations [N S annotation]."""
    if config.heads == 1:
        return _one_head(config, query=query, annotation=annotation)
    return MultiHeadAttention(config, query=query, annotation=annotation)


def _one_head(config: recipe.AttentionConfig, *, query: int, annotation: int) -> Attention:
    score = build_score(config.score, query=query, annotation=annotation)
    return Attention(score, build_window(config.window, query=query))
