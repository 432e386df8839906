"""Score functions e_ij: how well the decoder state that asks (the query) matches each source annotation.

Each class maps a query [N H] and the `Memory` to scores [N S], and T queries about the same sentence [N T H] to [N T S]; `keys`
is what can be computed from the annotations once a sentence. Masking, window and softmax are shared by all and live in
`attention.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt import recipe
from nmt.model.gathering import StepLinear, additive_scores, attend_additively, can_attend_additively, dot_scores
from nmt.ragged import Ragged

if TYPE_CHECKING:
    from nmt.model.attention import Memory

_WELL_FILLED = 0.8
"""Share of a beam's places from which on it is faster to score the empty ones too than to look up the keys of each hypothesis."""


class Score(nn.Module):
    """What all score functions share: by default the annotations themselves are the keys."""

    covers = False
    """Whether the score looks at the memory's coverage."""

    def keys(self, annotations: Float[Tensor, "N S A"]) -> Float[Tensor, "N S D"]:
        return annotations

    def forward(self, query: Float[Tensor, "N H"], memory: Memory) -> Float[Tensor, "N S"]:
        raise AssertionError(f"{type(self).__name__} does not say how it scores")

    def can_attend(self, memory: Memory) -> bool:
        """Whether `attend` knows how to, by one kernel."""
        return False

    def attend(
        self, query: Float[Tensor, "N H"], memory: Memory
    ) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N S"]] | None:
        """Context and weights of an attention that looks everywhere; None where it turns out that it cannot."""
        raise AssertionError(f"{type(self).__name__} does not say how it attends")

    def of_steps(self, queries: Float[Tensor, "N T H"], memory: Memory) -> Float[Tensor, "N T S"]:
        """The scores of several steps; one after the other, unless there is a way that takes no more memory."""
        return torch.stack([self(query, memory) for query in queries.unbind(1)], dim=1)

    def of_hypotheses(self, queries: Float[Tensor, "M H"], asking: Ragged, memory: Memory) -> Float[Tensor, "M S"]:
        """The scores of hypotheses that ask about some sentences, those of a sentence as if they were its steps."""
        return asking.collect(self.of_steps(asking.spread(queries), memory))

    if TYPE_CHECKING:
        __call__ = forward


class AdditiveScore(Score):
    """e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j) (Bahdanau et al. 2015, A.1.2); keys are U_a h_j.

    With coverage, V_a C_{i-1,j} is added within the tanh, where C_{i-1,j} = sum_{k<i} alpha_kj is the weight that word j has had
    so far: the linguistic coverage of Tu et al. (2016), eq. 6 to 8, with a fertility of 1.
    """

    def __init__(self, query: int, annotation: int, size: int, *, coverage: bool = False) -> None:
        super().__init__()
        self.query = StepLinear(query, size)
        self.key = nn.Linear(annotation, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)
        self.covers = coverage
        self.coverage = nn.Linear(1, size, bias=False) if coverage else None

    def keys(self, annotations: Float[Tensor, "N S A"]) -> Float[Tensor, "N S D"]:
        projected: Tensor = self.key(annotations)
        return projected

    def forward(self, query: Float[Tensor, "N H"], memory: Memory) -> Float[Tensor, "N S"]:
        keys = memory.keys
        if self.coverage is not None:
            assert memory.coverage is not None
            keys = keys + self.coverage(memory.coverage.unsqueeze(-1).to(keys.dtype))
        return additive_scores(self.query(query), keys, self.v)

    def can_attend(self, memory: Memory) -> bool:
        return self.coverage is None and can_attend_additively(memory.keys)

    def attend(
        self, query: Float[Tensor, "N H"], memory: Memory
    ) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N S"]] | None:
        return attend_additively(query, self.query, memory.keys, self.v, memory.annotations, memory.mask)

    def of_steps(self, queries: Float[Tensor, "N T H"], memory: Memory) -> Float[Tensor, "N T S"]:
        if self.coverage is not None:
            return super().of_steps(queries, memory)
        return torch.stack([additive_scores(query, memory.keys, self.v) for query in self.query(queries).unbind(1)], 1)

    def of_hypotheses(self, queries: Float[Tensor, "M H"], asking: Ragged, memory: Memory) -> Float[Tensor, "M S"]:
        if self.coverage is not None or asking.fill > _WELL_FILLED:
            return super().of_hypotheses(queries, asking, memory)
        return additive_scores(self.query(queries), memory.keys.index_select(0, asking.group), self.v)


class ConcatScore(AdditiveScore):
    """score(h_t, h_s) = v_a^T tanh(W_a [h_t; h_s]) (Luong et al. 2015, eq. 8).

    W_a [h_t; h_s] is the sum of a product with each half of W_a, so this is the additive score without its bias.
    """

    def __init__(self, query: int, annotation: int, size: int, *, coverage: bool = False) -> None:
        super().__init__(query, annotation, size, coverage=coverage)
        self.query = StepLinear(query, size, bias=False)


class DotScore(Score):
    """score(h_t, h_s) = h_t^T h_s (Luong et al. 2015, eq. 8)."""

    def forward(self, query: Float[Tensor, "N H"], memory: Memory) -> Float[Tensor, "N S"]:
        return dot_scores(query, memory.keys)

    def of_steps(self, queries: Float[Tensor, "N T H"], memory: Memory) -> Float[Tensor, "N T S"]:
        return torch.bmm(queries, memory.keys.to(queries.dtype).transpose(1, 2))


class GeneralScore(DotScore):
    """score(h_t, h_s) = h_t^T W_a h_s (Luong et al. 2015, eq. 8); keys are W_a h_s."""

    def __init__(self, query: int, annotation: int) -> None:
        super().__init__()
        self.key = nn.Linear(annotation, query, bias=False)

    def keys(self, annotations: Float[Tensor, "N S A"]) -> Float[Tensor, "N S D"]:
        projected: Tensor = self.key(annotations)
        return projected


class LocationScore(Score):
    """a_t = softmax(W_a h_t) (Luong et al. 2015, eq. 7): positions are scored without looking at the words there.

    W_a has `max_source` rows, so a position beyond them scores -inf and receives no weight.
    """

    def __init__(self, query: int, max_source: int) -> None:
        super().__init__()
        self.position = StepLinear(query, max_source, bias=False)

    def forward(self, query: Float[Tensor, "N H"], memory: Memory) -> Float[Tensor, "N S"]:
        return self.of_steps(query.unsqueeze(1), memory).squeeze(1)

    def of_steps(self, queries: Float[Tensor, "N T H"], memory: Memory) -> Float[Tensor, "N T S"]:
        scores: Tensor = self.position(queries)
        known, positions = scores.shape[2], memory.positions.unsqueeze(1).expand(-1, queries.shape[1], -1)
        return scores.gather(2, positions.clamp(max=known - 1)).masked_fill(positions >= known, float("-inf"))


def build_score(chosen: recipe.ScoreConfig, *, query: int, annotation: int) -> Score | None:
    """The score function of a recipe, for queries [B query] and annotations [B S annotation]; None is no attention."""
    match chosen:
        case recipe.AdditiveScoreConfig():
            return AdditiveScore(query, annotation, chosen.size, coverage=chosen.coverage)
        case recipe.ConcatScoreConfig():
            return ConcatScore(query, annotation, chosen.size, coverage=chosen.coverage)
        case recipe.DotScoreConfig():
            return DotScore()
        case recipe.GeneralScoreConfig():
            return GeneralScore(query, annotation)
        case recipe.LocationScoreConfig():
            return LocationScore(query, chosen.max_source)
        case recipe.NoScoreConfig():
            return None
        case _:
            assert_never(chosen)
