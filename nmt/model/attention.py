"""Attention: score + mask + window + softmax -> weights and context.

    alpha_ij = softmax_j(e_ij) [x window factor]        c_i = sum_j alpha_ij h_j

(Bahdanau et al. 2015, eq. 5 and 6; Luong et al. 2015, eq. 7 and 10.) Padding never receives weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt import recipe
from nmt.model.encoder import take
from nmt.model.gathering import StepLinear, weighted_sum
from nmt.model.precision import at_least_fp32
from nmt.model.scores import build_score
from nmt.model.windows import build_window
from nmt.ragged import Ragged


@dataclass(frozen=True)
class Memory:
    """What a decoder reads: the annotations h_j, their projection for the score, which are real, and the fixed-length summary.

    With several heads, N is batch x heads: each head reads a memory of its own.
    """

    annotations: Float[Tensor, "N S A"]
    keys: Float[Tensor, "N S D"]
    mask: Bool[Tensor, "N S"]
    summary: Float[Tensor, "B C"]
    positions: Int[Tensor, "N S"]
    """Where in the sentence each annotation stands, from 0."""
    coverage: Float[Tensor, "N *T S"] | None = None
    """The weight that each position has had in the steps before, for scores that look at it; for several steps that of each."""
    heads: int = 1
    asking: Ragged | None = None
    """Which of the sentences each hypothesis of a beam asks about; None where row i asks about sentence i."""
    odds: Float[Tensor, "N S D"] | None = None
    """e^(2 k_j), where the compiled kernels make the additive score of it."""

    def select(self, rows: Int[Tensor, " M"]) -> Memory:
        """The memory of the given sentences, in their order."""
        each = rows
        if self.heads > 1:
            each = (rows.unsqueeze(1) * self.heads + torch.arange(self.heads, device=rows.device)).flatten()
        return replace(
            self,
            annotations=self.annotations[each],
            keys=self.keys[each],
            mask=self.mask[each],
            summary=self.summary[rows],
            positions=self.positions[each],
            odds=None if self.odds is None else self.odds[each],
        )

    def contexts(self) -> Float[Tensor, "B S C"]:
        """The context that each position would be if it alone were attended to: h_j, those of all heads side by side."""
        if self.heads == 1:
            return self.annotations
        _, length, width = self.annotations.shape
        return self.annotations.view(-1, self.heads, length, width).transpose(1, 2).flatten(2)

    def near(self, first: Int[Tensor, " N"], width: int) -> Memory:
        """The memory of `width` neighbouring positions, from `first` on: all that a local window has to look at."""
        if width == self.mask.shape[1]:
            return self
        positions = first.unsqueeze(1) + torch.arange(width, device=first.device)
        annotations = take(self.annotations, positions)
        keys = annotations if self.keys is self.annotations else take(self.keys, positions)
        coverage = None if self.coverage is None else self.coverage.gather(1, positions)
        return Memory(annotations, keys, self.mask.gather(1, positions), self.summary, positions, coverage, self.heads)


class Attention(nn.Module):
    """Weights alpha_ij and context c_i of one decoder step."""

    def __init__(self, chosen: recipe.AttentionConfig, *, query: int, annotation: int) -> None:
        super().__init__()
        self.score = build_score(chosen.score, query=query, annotation=annotation)
        self.window = build_window(chosen.window, query=query)
        self.covers = self.score is not None and self.score.covers

    def remember(
        self, annotations: Float[Tensor, "N S A"], mask: Bool[Tensor, "N S"], summary: Float[Tensor, "B C"]
    ) -> Memory:
        """Annotations with what can be computed from them once a sentence."""
        keys = annotations if self.score is None else self.score.keys(annotations)
        positions = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
        return Memory(annotations, keys, mask, summary, positions)

    def forward(
        self, query: Float[Tensor, "N H"], position: Int[Tensor, " N"], memory: Memory
    ) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N S"]]:
        """Context c_i and weights alpha_ij for the state that asks at step `position` (0-based).

        Without a score the context is the same summary of the source at every step (Cho et al. 2014) and nothing is attended.
        """
        if self.score is None:
            return memory.summary, at_least_fp32(memory.summary.new_zeros(memory.mask.shape))
        if self.window is None:
            if self.score.can_attend(memory) and (found := self.score.attend(query, memory)) is not None:
                return found
            weights = masked_softmax(at_least_fp32(self.score(query, memory)), memory.mask)
            return weighted_sum(weights, memory.annotations), weights
        center = self.window.center(query, position, memory.mask)
        seen = memory.near(*self.window.span(center, memory.mask.shape[1]))
        factor = self.window.factor(seen.positions, center)
        weights = masked_softmax(at_least_fp32(self.score(query, seen)), seen.mask & (factor > 0)) * factor
        everywhere = weights.new_zeros(memory.mask.shape).scatter(1, seen.positions, weights)
        return weighted_sum(weights, seen.annotations), everywhere

    def of_steps(
        self, queries: Float[Tensor, "N T H"], positions: Int[Tensor, "N T"], memory: Memory
    ) -> tuple[Float[Tensor, "N T A"], Float[Tensor, "N T S"]]:
        """The same for T states that ask about the same sentence: at once, if they all look everywhere and at nothing else.

        Those of the steps of a target that is known beforehand. A kernel that attends is faster one after the other.
        """
        if (
            self.score is None
            or self.window is not None
            or memory.coverage is not None
            or self.score.can_attend(memory)
        ):
            return step_by_step(self, queries, positions, memory)
        scores = at_least_fp32(self.score.of_steps(queries, memory))
        weights = masked_softmax(scores, memory.mask.unsqueeze(1))
        return torch.bmm(weights.to(memory.annotations.dtype), memory.annotations), weights

    def of_hypotheses(
        self, queries: Float[Tensor, "M H"], positions: Int[Tensor, " M"], asking: Ragged, memory: Memory
    ) -> tuple[Float[Tensor, "M A"], Float[Tensor, "M S"]]:
        """The same for M hypotheses, of which several may ask about the same sentence."""
        if self.score is None or self.window is not None or memory.coverage is not None:
            return on_grid(self, queries, positions, asking, memory)
        weights = masked_softmax(
            at_least_fp32(self.score.of_hypotheses(queries, asking, memory)), memory.mask[asking.group]
        )
        spread = asking.spread(weights.to(memory.annotations.dtype))
        return asking.collect(torch.bmm(spread, memory.annotations)), weights

    if TYPE_CHECKING:
        __call__ = forward


class MultiHeadAttention(nn.Module):
    """Attentions side by side: head k asks with its share of W s and reads its share of U h_j (Vaswani et al. 2017, 3.2.2).

    Any score and window can be the attention of a head. The contexts are laid side by side, and the weights that are shown,
    and that coverage counts, are their mean over the heads.
    """

    def __init__(self, chosen: recipe.AttentionConfig, *, query: int, annotation: int) -> None:
        super().__init__()
        self.heads = chosen.heads
        self.query = StepLinear(query, query, bias=False)
        self.annotation = nn.Linear(annotation, annotation, bias=False)
        one = chosen.model_copy(update={"score": _share(chosen.score, chosen.heads)})
        self.each = Attention(one, query=query // chosen.heads, annotation=annotation // chosen.heads)
        self.covers = self.each.covers

    def remember(
        self, annotations: Float[Tensor, "B S A"], mask: Bool[Tensor, "B S"], summary: Float[Tensor, "B C"]
    ) -> Memory:
        """Annotations with what can be computed from them once a sentence, a memory a head."""
        projected = self.annotation(annotations).unflatten(-1, (self.heads, -1)).transpose(1, 2).flatten(0, 1)
        memory = self.each.remember(projected, mask.repeat_interleave(self.heads, 0), summary)
        return replace(memory, heads=self.heads)

    def forward(
        self, query: Float[Tensor, "B H"], position: Int[Tensor, " B"], memory: Memory
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B S"]]:
        """Contexts of all heads side by side, and the mean of their weights."""
        batch = len(query)
        queries = self.query(query).reshape(batch * self.heads, -1)
        contexts, weights = self.each(queries, position.repeat_interleave(self.heads), memory)
        return contexts.reshape(batch, -1), weights.reshape(batch, self.heads, -1).mean(1)

    def of_steps(
        self, queries: Float[Tensor, "B T H"], positions: Int[Tensor, "B T"], memory: Memory
    ) -> tuple[Float[Tensor, "B T A"], Float[Tensor, "B T S"]]:
        """The same for T states that ask about the same sentence."""
        batch, steps, _ = queries.shape
        asked = self.query(queries).view(batch, steps, self.heads, -1).transpose(1, 2).flatten(0, 1)
        contexts, weights = self.each.of_steps(asked, positions.repeat_interleave(self.heads, 0), memory)
        each = batch, self.heads, steps, -1
        return contexts.view(each).transpose(1, 2).flatten(2), weights.view(each).mean(1)

    def of_hypotheses(
        self, queries: Float[Tensor, "M H"], positions: Int[Tensor, " M"], asking: Ragged, memory: Memory
    ) -> tuple[Float[Tensor, "M A"], Float[Tensor, "M S"]]:
        """The same for M hypotheses, of which several may ask about the same sentence."""
        return on_grid(self, queries, positions, asking, memory)

    if TYPE_CHECKING:
        __call__ = forward


def _share(score: recipe.ScoreConfig, heads: int) -> recipe.ScoreConfig:
    """The score of one of several heads, which share the width of its hidden layer."""
    if isinstance(score, recipe.AdditiveScoreConfig | recipe.ConcatScoreConfig):
        return score.model_copy(update={"size": score.size // heads})
    return score


def step_by_step(
    attention: Attention | MultiHeadAttention,
    queries: Float[Tensor, "N T H"],
    positions: Int[Tensor, "N T"],
    memory: Memory,
) -> tuple[Float[Tensor, "N T A"], Float[Tensor, "N T S"]]:
    """Contexts and weights of several steps, one after the other: what `of_steps` comes to for any attention."""
    memories = [memory] * queries.shape[1]
    if memory.coverage is not None:
        memories = [replace(memory, coverage=coverage) for coverage in memory.coverage.unbind(1)]
    asked = zip(queries.unbind(1), positions.unbind(1), memories, strict=True)
    contexts, weights = zip(*(attention(*each) for each in asked), strict=True)
    return torch.stack(contexts, 1), torch.stack(weights, 1)


def on_grid(
    attention: Attention | MultiHeadAttention,
    queries: Float[Tensor, "M H"],
    positions: Int[Tensor, " M"],
    asking: Ragged,
    memory: Memory,
) -> tuple[Float[Tensor, "M A"], Float[Tensor, "M S"]]:
    """Contexts and weights of hypotheses, as if those of a sentence were steps: what `of_hypotheses` comes to for any attention."""
    contexts, weights = attention.of_steps(asking.spread(queries), asking.spread(positions), memory)
    return asking.collect(contexts), asking.collect(weights)


def masked_softmax(scores: Float[Tensor, "*N S"], allowed: Bool[Tensor, "*#N S"]) -> Float[Tensor, "*N S"]:
    """Softmax over the allowed positions, exactly 0 elsewhere; a row that allows none is all 0."""
    allowed = allowed & (scores != float("-inf"))
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) * allowed


def build_attention(chosen: recipe.AttentionConfig, *, query: int, annotation: int) -> Attention | MultiHeadAttention:
    """The attention of a recipe, for queries [B query] and annotations [B S annotation]."""
    kind = Attention if chosen.heads == 1 else MultiHeadAttention
    return kind(chosen, query=query, annotation=annotation)
