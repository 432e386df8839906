"""Score functions e_ij: how well the decoder state that asks (the query) matches each source annotation.

Each class maps a query [B H] and the `Memory` to scores [B S]; `keys` is what can be computed from the annotations once a
sentence. Masking, window and softmax are shared by all and live in `attention.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt import recipe

if TYPE_CHECKING:
    from nmt.model.attention import Memory


class Score(nn.Module):
    """What all score functions share: by default the annotations themselves are the keys."""

    def keys(self, annotations: Float[Tensor, "B S A"]) -> Float[Tensor, "B S D"]:
        return annotations

    def forward(self, query: Float[Tensor, "B H"], memory: Memory) -> Float[Tensor, "B S"]:
        raise AssertionError(f"{type(self).__name__} does not say how it scores")

    if TYPE_CHECKING:
        __call__ = forward


class AdditiveScore(Score):
    """e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j) (Bahdanau et al. 2015, A.1.2); keys are U_a h_j."""

    def __init__(self, query: int, annotation: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query, size)
        self.key = nn.Linear(annotation, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, annotations: Float[Tensor, "B S A"]) -> Float[Tensor, "B S D"]:
        projected: Tensor = self.key(annotations)
        return projected

    def forward(self, query: Float[Tensor, "B H"], memory: Memory) -> Float[Tensor, "B S"]:
        matched = torch.tanh(memory.keys + self.query(query).unsqueeze(1))
        scores: Tensor = self.v(matched).squeeze(-1)
        return scores


class ConcatScore(AdditiveScore):
    """score(h_t, h_s) = v_a^T tanh(W_a [h_t; h_s]) (Luong et al. 2015, eq. 8).

    W_a [h_t; h_s] is the sum of a product with each half of W_a, so this is the additive score without its bias.
    """

    def __init__(self, query: int, annotation: int, size: int) -> None:
        super().__init__(query, annotation, size)
        self.query = nn.Linear(query, size, bias=False)


class DotScore(Score):
    """score(h_t, h_s) = h_t^T h_s (Luong et al. 2015, eq. 8)."""

    def forward(self, query: Float[Tensor, "B H"], memory: Memory) -> Float[Tensor, "B S"]:
        return torch.bmm(memory.keys.to(query.dtype), query.unsqueeze(-1)).squeeze(-1)


class GeneralScore(DotScore):
    """score(h_t, h_s) = h_t^T W_a h_s (Luong et al. 2015, eq. 8); keys are W_a h_s."""

    def __init__(self, query: int, annotation: int) -> None:
        super().__init__()
        self.key = nn.Linear(annotation, query, bias=False)

    def keys(self, annotations: Float[Tensor, "B S A"]) -> Float[Tensor, "B S D"]:
        projected: Tensor = self.key(annotations)
        return projected


class LocationScore(Score):
    """a_t = softmax(W_a h_t) (Luong et al. 2015, eq. 7): positions are scored without looking at the words there.

    W_a has `max_source` rows, so a position beyond them scores -inf and receives no weight.
    """

    def __init__(self, query: int, max_source: int) -> None:
        super().__init__()
        self.position = nn.Linear(query, max_source, bias=False)

    def forward(self, query: Float[Tensor, "B H"], memory: Memory) -> Float[Tensor, "B S"]:
        scores: Tensor = self.position(query)
        beyond = memory.mask.shape[1] - scores.shape[1]
        return nn.functional.pad(scores, (0, max(beyond, 0)), value=float("-inf"))[:, : memory.mask.shape[1]]


def build_score(chosen: recipe.Score, *, query: int, annotation: int) -> Score | None:
    """The score function of a recipe, for queries [B query] and annotations [B S annotation]; None is no attention."""
    match chosen:
        case recipe.AdditiveScore():
            return AdditiveScore(query, annotation, chosen.size)
        case recipe.ConcatScore():
            return ConcatScore(query, annotation, chosen.size)
        case recipe.DotScore():
            return DotScore()
        case recipe.GeneralScore():
            return GeneralScore(query, annotation)
        case recipe.LocationScore():
            return LocationScore(query, chosen.max_source)
        case recipe.NoScore():
            return None
        case _:
            assert_never(chosen)
