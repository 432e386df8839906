"""Attention: score, mask, window and normalizer give weights, and weights give the context.

    alpha_ij = softmax_j(e_ij) [x window factor]        (Bahdanau et al. 2015, eq. 6; Luong et al. 2015, eq. 7, 10)
    e_ij + (w^T s_{i-1} + b) sum_{k<i} alpha_kj         with coverage, which is inside the tanh in Tu et al. (2016, eq. 6 and 7)
    c_i = sum_j alpha_ij h_j                            (Bahdanau et al. 2015, eq. 5)

Sparsemax or entmax may replace the softmax. Padding never receives weight. With a window, each query reads a memory of its own, the
2D + 1 positions around its center.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int, Num, Shaped
from torch import Tensor, nn

from nmt import recipe
from nmt.model.normalizers import Normalizer, build_normalizer, masked_softmax
from nmt.model.precision import at_least_fp32
from nmt.model.scores import Score, build_score
from nmt.model.windows import Window, build_window


@dataclass(frozen=True)
class AttentionMemory:
    """What attention reads: the annotations h_j with their keys, one row per sentence. Heads, if any, are the second dimension."""

    annotations: Float[Tensor, "B *heads S A"]
    keys: Num[Tensor, "B *heads S D"]
    mask: Bool[Tensor, "B S"]
    summary: Float[Tensor, "B C"]
    """The fixed-length context of a decoder without attention (Cho et al. 2014)."""
    rows: Int[Tensor, " N"] | None = None
    """The sentence that each row of queries reads; None where row i reads sentence i."""

    @property
    def row_mask(self) -> Bool[Tensor, "N S"]:
        """The mask of each row of queries."""
        return self.mask if self.rows is None else self.mask[self.rows]

    def read_by(self, rows: Int[Tensor, " N"]) -> AttentionMemory:
        """The same memory, read by N rows of queries."""
        return replace(self, rows=rows)

    def by_row(self) -> AttentionMemory:
        """A memory of which row i reads sentence i."""
        return self if self.rows is None else replace(self, rows=None).select(self.rows)

    def select(self, rows: Int[Tensor, " M"]) -> AttentionMemory:
        """The memory of the given sentences, in their order."""
        annotations = self.annotations[rows]
        keys = annotations if self.keys is self.annotations else self.keys[rows]
        return replace(self, annotations=annotations, keys=keys, mask=self.mask[rows], summary=self.summary[rows])

    def near(self, positions: Int[Tensor, "N T W"]) -> AttentionMemory:
        """A memory of W positions for each of T queries per row, those of the first row first; for one head."""
        count, steps, size = positions.shape
        rows = torch.arange(count, device=positions.device) if self.rows is None else self.rows
        flat = (self.mask.shape[1] * rows.view(-1, 1, 1) + positions).flatten()
        annotations = _at(flat, self.annotations).view(count * steps, size, -1)
        keys = annotations if self.keys is self.annotations else _at(flat, self.keys).view(count * steps, size, -1)
        mask = _at(flat, self.mask).view(count * steps, size)
        return AttentionMemory(annotations, keys, mask, self.summary[rows.repeat_interleave(steps)])


@dataclass(frozen=True)
class AttentionOutput:
    """Contexts c_i and weights alpha_ij of T queries per sentence."""

    contexts: Float[Tensor, "N T A"]
    weights: Float[Tensor, "N T S"]
    centers: Float[Tensor, "N T K"] | None = None
    """Center p_t of the window of each of K heads; None for global attention."""


class Attention(nn.Module):
    """Attention with any score, any window and any normalizer; one head. `coverage` makes w^T s_{i-1} + b of a query."""

    def __init__(
        self,
        score: Score | None,
        window: Window | None,
        normalize: Normalizer = masked_softmax,
        coverage: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        self.score, self.window, self.normalize, self.coverage = score, window, normalize, coverage

    @property
    def has_coverage(self) -> bool:
        """Whether a step depends on the weights of the steps before."""
        return self.coverage is not None

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
            return without_attention(queries, memory.by_row())
        if self.window is None:
            return AttentionOutput(*self.attend(queries, memory.by_row(), coverage))
        length = memory.mask.shape[1]
        center = self.window.center(queries, positions, memory.row_mask)
        near = self.window.positions(center, self.positions_read(queries.shape[1], length), length)
        factor = self.window.factor(center, near)
        if near.shape[2] == length:
            contexts, weights = self.attend(queries, memory.by_row(), coverage, factor)
        else:
            contexts, weights = self.attend_near(near, queries, memory, coverage, factor)
        return AttentionOutput(contexts, weights, center.unsqueeze(-1))

    def positions_read(self, steps: int, length: int) -> int:
        """How many source positions each query reads: its window, or all of a source hardly longer than the windows together.

        One product with all positions is faster than to gather those of each query.
        """
        assert self.window is not None
        size = self.window.size(length)
        return size if 2 * steps * size <= length else length

    def attend_near(
        self,
        near: Int[Tensor, "N T W"],
        queries: Float[Tensor, "N T H"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None,
        factor: Float[Tensor, "N T W"],
    ) -> tuple[Float[Tensor, "N T A"], Float[Tensor, "N T S"]]:
        """Contexts and weights of queries that each read the W positions near their center."""
        covered = None if coverage is None else _row_each(coverage.gather(2, near))
        contexts, weights = self.attend(_row_each(queries), memory.near(near), covered, _row_each(factor))
        everywhere = weights.new_zeros(*near.shape[:2], memory.mask.shape[1])
        return contexts.view(*near.shape[:2], -1), everywhere.scatter(2, near, weights.view(near.shape))

    def attend(
        self,
        queries: Float[Tensor, "N T H"],
        memory: AttentionMemory,
        coverage: Float[Tensor, "N T S"] | None = None,
        factor: Float[Tensor, "N T S"] | None = None,
    ) -> tuple[Float[Tensor, "N T A"], Float[Tensor, "N T S"]]:
        """Contexts and weights of queries that read every position of the memory whose factor is positive."""
        assert self.score is not None
        scores = at_least_fp32(self.score(queries, memory.keys))
        if coverage is not None:
            scores = scores + self.weigh_coverage(queries, coverage)
        allowed = memory.mask.unsqueeze(1)
        weights = self.normalize(scores, allowed if factor is None else allowed & (factor > 0))
        if factor is not None:
            weights = weights * factor  # eq. 10
        contexts = weights.to(memory.annotations.dtype) @ memory.annotations  # c_i, eq. 5
        return contexts, weights

    def weigh_coverage(
        self, queries: Float[Tensor, "N T H"], coverage: Float[Tensor, "N T S"]
    ) -> Float[Tensor, "N T S"]:
        """(w^T s_{i-1} + b) sum_{k<i} alpha_kj, which is added to the scores."""
        assert self.coverage is not None
        return at_least_fp32(self.coverage(queries)) * coverage

    def position_contexts(self, memory: AttentionMemory) -> Float[Tensor, "B S A"]:
        """The context of each source position if it alone were attended to: c = h_j."""
        return memory.annotations

    if TYPE_CHECKING:
        __call__ = forward


class MultiHeadAttention(nn.Module):
    """K heads: head k queries with the k-th part of W s and reads the k-th part of U h_j (Vaswani et al. 2017, 3.2.2).

    All heads have the same kind of score, window and normalizer. Their contexts are concatenated. The weights that are returned,
    and that coverage sums, are the mean over the heads.
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
        memory = memory.by_row()
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

    def _heads(self, values: Num[Tensor, "N T D"]) -> Num[Tensor, "B K T D"]:
        """[B*K T D] -> [B K T D]: the heads in a dimension of their own."""
        return torch.unflatten(values, 0, (-1, self.heads))

    if TYPE_CHECKING:
        __call__ = forward


def _row_each(values: Float[Tensor, "N T D"]) -> Float[Tensor, "M 1 D"]:
    """[N T D] -> [N*T 1 D]: each query in a row of its own."""
    return values.flatten(0, 1).unsqueeze(1)


def _at(flat: Int[Tensor, " M"], values: Shaped[Tensor, "B S *D"]) -> Shaped[Tensor, "M *D"]:
    """The values at these of the B * S positions."""
    return values.flatten(0, 1).index_select(0, flat)


def without_attention(queries: Float[Tensor, "N T H"], memory: AttentionMemory) -> AttentionOutput:
    """The same summary of the source at every step, and no weights (Cho et al. 2014)."""
    batch, steps = queries.shape[:2]
    weights = at_least_fp32(memory.summary).new_zeros(batch, steps, memory.mask.shape[1])
    return AttentionOutput(memory.summary.unsqueeze(1).expand(-1, steps, -1), weights)


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
    window, coverage = build_window(config.window, query=query), nn.Linear(query, 1) if config.coverage else None
    return Attention(score, window, build_normalizer(config.normalizer), coverage)
