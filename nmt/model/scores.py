"""Score functions e_ij: how well the querying decoder state matches each source annotation.

A score maps T queries per sentence [N T H] and the keys of that sentence [N S D] to scores [N T S]. `keys` is what can be computed
from the annotations once per sentence. Mask, window and normalizer are the same for all scores and live in `attention.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from nmt import recipe


class Score(nn.Module):
    """Base class; by default the keys are the annotations themselves."""

    def keys(self, annotations: Float[Tensor, "N S A"]) -> Num[Tensor, "N S D"]:
        """What the score reads of each source position, computed once per sentence."""
        return annotations

    def forward(self, queries: Float[Tensor, "N T H"], keys: Num[Tensor, "N S D"]) -> Float[Tensor, "N T S"]:
        """e_ij of T queries and all S positions of each sentence."""
        raise NotImplementedError

    if TYPE_CHECKING:
        __call__ = forward


class AdditiveScore(Score):
    """e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j)   (Bahdanau et al. 2015, A.1.2); the keys are U_a h_j."""

    def __init__(self, query: int, annotation: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query, size)
        self.key = nn.Linear(annotation, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, annotations: Float[Tensor, "N S A"]) -> Float[Tensor, "N S D"]:
        projected: Tensor = self.key(annotations)
        return projected

    def forward(self, queries: Float[Tensor, "N T H"], keys: Float[Tensor, "N S D"]) -> Float[Tensor, "N T S"]:
        hidden = self.query(queries).unsqueeze(2) + keys.unsqueeze(1)  # W_a s_{i-1} + U_a h_j   [N T S D]
        scores: Tensor = self.v(torch.tanh(hidden)).squeeze(-1)
        return scores


class ConcatScore(AdditiveScore):
    """score(h_t, h_s) = v_a^T tanh(W_a [h_t; h_s])   (Luong et al. 2015, 3.1; not numbered).

    W_a [h_t; h_s] is the sum of a product with each half of W_a, so this is the additive score without its bias.
    """

    def __init__(self, query: int, annotation: int, size: int) -> None:
        super().__init__(query, annotation, size)
        self.query = nn.Linear(query, size, bias=False)


class DotScore(Score):
    """score(h_t, h_s) = h_t^T h_s   (Luong et al. 2015, 3.1; not numbered)."""

    def forward(self, queries: Float[Tensor, "N T H"], keys: Float[Tensor, "N S D"]) -> Float[Tensor, "N T S"]:
        return queries @ keys.to(queries.dtype).transpose(1, 2)


class GeneralScore(DotScore):
    """score(h_t, h_s) = h_t^T W_a h_s   (Luong et al. 2015, 3.1; not numbered); the keys are W_a h_s."""

    def __init__(self, query: int, annotation: int) -> None:
        super().__init__()
        self.key = nn.Linear(annotation, query, bias=False)

    def keys(self, annotations: Float[Tensor, "N S A"]) -> Float[Tensor, "N S D"]:
        projected: Tensor = self.key(annotations)
        return projected


class LocationScore(Score):
    """a_t = softmax(W_a h_t)   (Luong et al. 2015, eq. 8): scores positions without reading the annotations; the keys are the positions.

    W_a has `max_source` rows. A position beyond them scores -inf and receives no weight (footnote 6).
    """

    def __init__(self, query: int, max_source: int) -> None:
        super().__init__()
        self.position = nn.Linear(query, max_source, bias=False)

    def keys(self, annotations: Float[Tensor, "N S A"]) -> Int[Tensor, "N S 1"]:
        sentences, length = annotations.shape[:2]
        return torch.arange(length, device=annotations.device).view(1, -1, 1).expand(sentences, -1, -1)

    def forward(self, queries: Float[Tensor, "N T H"], keys: Int[Tensor, "N S 1"]) -> Float[Tensor, "N T S"]:
        scores: Tensor = self.position(queries)  # W_a h_t   [N T max_source]
        positions = keys.transpose(1, 2)
        is_beyond = positions >= scores.shape[-1]
        index = positions.masked_fill(is_beyond, 0).expand(-1, queries.shape[1], -1)
        return scores.gather(2, index).masked_fill(is_beyond, float("-inf"))


def build_score(config: recipe.ScoreConfig, *, query: int, annotation: int) -> Score | None:
    """The score of a recipe for queries [N T query] and annotations [N S annotation]; None means no attention."""
    match config:
        case recipe.AdditiveScoreConfig():
            return AdditiveScore(query, annotation, config.size)
        case recipe.ConcatScoreConfig():
            return ConcatScore(query, annotation, config.size)
        case recipe.DotScoreConfig():
            return DotScore()
        case recipe.GeneralScoreConfig():
            return GeneralScore(query, annotation)
        case recipe.LocationScoreConfig():
            return LocationScore(query, config.max_source)
        case recipe.NoScoreConfig():
            return None
        case _:
            assert_never(config)
