"""Hypotheses and the score they are ranked by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, overload

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

NEG_INF = float("-inf")
COVERAGE_FLOOR = 1e-6
"""Least coverage of a source position, so that the penalty of an unattended one stays finite."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One output of a search or of forced decoding."""

    ids: tuple[int, ...]
    """Token ids, without start and end mark."""
    score: float
    """s(y, x), see `Penalties`."""
    log_probability: float
    """log P(y | x), including the end mark if finished."""
    token_log_probs: tuple[float, ...]
    """log P(y_t | y_<t, x), one per row of the alignment."""
    alignment: Float[Tensor, "T S"]
    """Attention weights, on the CPU. Row t is of the step that predicted token t; T = len(ids), plus 1 if finished."""
    finished: bool
    """Whether it ended with the end mark; otherwise it was cut at the maximum length."""

    @property
    def length(self) -> int:
        """|y|: the number of tokens, plus 1 for the end mark if finished."""
        return len(self.ids) + self.finished

    def __eq__(self, other: object) -> bool:
        """Whether the class and all fields are the same, the numbers of the alignment included."""
        if type(other) is not type(self):
            return NotImplemented
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return all(torch.equal(one, two) if isinstance(one, Tensor) else one == two for one, two in pairs)

    def __hash__(self) -> int:
        return hash((self.ids, self.score))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the alignment as an array: torch would send a tensor as shared memory, with an open file for each."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return _unpickled, (type(self), values | {"alignment": self.alignment.numpy()})


def no_alignment() -> Float[Tensor, "0 0"]:
    """The alignment of a hypothesis that has none, whatever PyTorch's default type and device are."""
    return torch.zeros(0, 0, dtype=torch.float32, device="cpu")


HypothesisT = TypeVar("HypothesisT", bound=Hypothesis)


def _unpickled(kind: type[HypothesisT], values: dict[str, Any]) -> HypothesisT:
    """The inverse of `Hypothesis.__reduce__`."""
    return kind(**values | {"alignment": torch.from_numpy(values["alignment"])})


def joint_length(parts: Sequence[Hypothesis]) -> int:
    """|y| of the concatenated hypotheses of a source's parts, which keeps only the last end mark."""
    return sum(len(part.ids) for part in parts) + all(part.finished for part in parts)


@dataclass(frozen=True)
class Penalties:
    """The score of a hypothesis (Wu et al. 2016, eq. 14).

    s(y, x) = log P(y | x) / lp(y) + cp(x; y)
    lp(y) = ((5 + |y|) / 6)^alpha                       |y| counts the end mark
    cp(x; y) = beta sum_j log(min(sum_i a_ij, 1))
    """

    length: float = 1.0
    """alpha; 0 switches the length penalty off."""
    coverage: float = 0.0
    """beta; 0 switches the coverage penalty off."""

    def score(
        self,
        log_probability: Float[Tensor, "..."],
        length: Int[Tensor, "..."] | int,
        coverage: Float[Tensor, "... S"] | None,
        source_mask: Bool[Tensor, "... S"] | None,
    ) -> Float[Tensor, "..."]:
        """s(y, x) of each hypothesis.

        Args:
            log_probability: log P(y | x).
            length: |y| of each, or one for all.
            coverage: sum_i a_ij; needed only for a coverage penalty.
            source_mask: True at real positions; None if all are real.
        """
        score = log_probability / self.length_penalty(length)
        if self.coverage == 0 or coverage is None:
            return score
        terms = coverage.clamp(COVERAGE_FLOOR, 1.0).log()
        if source_mask is not None:
            terms = terms.masked_fill(~source_mask, 0.0)
        return score + self.coverage * terms.sum(dim=-1)

    def joint_score(self, parts: Sequence[Hypothesis]) -> float:
        """The score of the concatenated hypotheses of a source's parts: one length penalty, summed coverage penalties."""
        total = sum(part.log_probability for part in parts)
        if total == NEG_INF:
            return NEG_INF
        return total / self.length_penalty(joint_length(parts)) + sum(map(self.coverage_penalty, parts))

    def coverage_penalty(self, hypothesis: Hypothesis) -> float:
        """cp(x; y), recovered from the score."""
        if self.coverage == 0:
            return 0.0
        return hypothesis.score - hypothesis.log_probability / self.length_penalty(hypothesis.length)

    @overload
    def length_penalty(self, length: int) -> float: ...
    @overload
    def length_penalty(self, length: Tensor) -> Tensor: ...
    @overload
    def length_penalty(self, length: Tensor | int) -> Tensor | float: ...
    def length_penalty(self, length: Tensor | int) -> Tensor | float:
        """lp(y) for |y| tokens."""
        penalty: Tensor | float = ((5.0 + length) / 6.0) ** self.length
        return penalty
