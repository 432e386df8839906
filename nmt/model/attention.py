"""Attention: score + mask + window + softmax -> weights and context.

    alpha_ij = softmax_j(e_ij) [x window factor]        c_i = sum_j alpha_ij h_j

(Bahdanau et al. 2015, eq. 5 and 6; Luong et al. 2015, eq. 7 and 10.) Padding never receives weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt import recipe
from nmt.model.scores import build_score
from nmt.model.windows import at_least_fp32, build_window


@dataclass(frozen=True)
class Memory:
    """What a decoder reads: the annotations h_j, their projection for the score, which are real, and the fixed-length summary."""

    annotations: Float[Tensor, "B S A"]
    keys: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    summary: Float[Tensor, "B A"]

    def select(self, rows: Int[Tensor, " N"]) -> Memory:
        """The memory of the given rows, in their order."""
        return Memory(self.annotations[rows], self.keys[rows], self.mask[rows], self.summary[rows])


class Attention(nn.Module):
    """Weights alpha_ij and context c_i of one decoder step."""

    def __init__(self, chosen: recipe.Attention, *, query: int, annotation: int) -> None:
        super().__init__()
        self.score = build_score(chosen.score, query=query, annotation=annotation)
        self.window = build_window(chosen.window, query=query)

    def remember(
        self, annotations: Float[Tensor, "B S A"], mask: Bool[Tensor, "B S"], summary: Float[Tensor, "B A"]
    ) -> Memory:
        """Annotations with what can be computed from them once a sentence."""
        keys = annotations if self.score is None else self.score.keys(annotations)
        return Memory(annotations, keys, mask, summary)

    def forward(
        self, query: Float[Tensor, "B H"], position: Int[Tensor, " B"], memory: Memory
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B S"]]:
        """Context c_i and weights alpha_ij for the state that asks at step `position` (0-based).

        Without a score the context is the same summary of the source at every step (Cho et al. 2014) and nothing is attended.
        """
        if self.score is None:
            return memory.summary, at_least_fp32(memory.summary.new_zeros(memory.mask.shape))
        weights = self.weights(query, position, memory)
        context = torch.bmm(weights.unsqueeze(1).to(memory.annotations.dtype), memory.annotations).squeeze(1)
        return context, weights

    def weights(self, query: Float[Tensor, "B H"], position: Int[Tensor, " B"], memory: Memory) -> Float[Tensor, "B S"]:
        assert self.score is not None
        scores = at_least_fp32(self.score(query, memory))
        if self.window is None:
            return masked_softmax(scores, memory.mask)
        factor = self.window(query, position, memory.mask)
        return masked_softmax(scores, memory.mask & (factor > 0)) * factor

    if TYPE_CHECKING:
        __call__ = forward


def masked_softmax(scores: Float[Tensor, "B S"], allowed: Bool[Tensor, "B S"]) -> Float[Tensor, "B S"]:
    """Softmax over the allowed positions, exactly 0 elsewhere; a row that allows none is all 0."""
    allowed = allowed & (scores != float("-inf"))
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) * allowed
