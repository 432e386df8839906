"""What a search finds and how it is ranked: hypotheses, their penalties, and the trace they are read back from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.equality import EqualByValue

IMPOSSIBLE = float("-inf")
COVERAGE_FLOOR = 1e-6
"""A source position nobody looked at counts as covered this much, so that the coverage penalty stays finite."""


@dataclass(frozen=True, eq=False)
class Hypothesis(EqualByValue):
    """One output sentence that a search or forced decoding ended with."""

    ids: tuple[int, ...]
    """Its pieces, without the start and the end mark."""
    score: float
    """What hypotheses are ranked by: log-probability under length and coverage penalty."""
    log_probability: float
    """log P(y | x), the end mark included when finished."""
    token_log_probs: tuple[float, ...]
    """log P(y_t | y_<t, x), one a row of the alignment."""
    alignment: Float[Tensor, "T S"]
    """Weights on the CPU, row t from the step that predicted piece t; T = len(ids), one more when finished."""
    finished: bool
    """Whether it ended with the end mark; otherwise it was cut at the maximum length."""

    @property
    def length(self) -> int:
        """|y|: its tokens, and the end mark when finished."""
        return len(self.ids) + self.finished

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process its alignment goes as an array: as a tensor it would be shared memory, with an open file for each."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return _received, (type(self), values | {"alignment": self.alignment.numpy()})


def joint_length(parts: Sequence[Hypothesis]) -> int:
    """|y| of hypotheses for the parts of a source as one, which has one end mark."""
    return sum(len(part.ids) for part in parts) + all(part.finished for part in parts)


HypothesisT = TypeVar("HypothesisT", bound=Hypothesis)


def _received(kind: type[HypothesisT], values: dict[str, Any]) -> HypothesisT:
    """What `Hypothesis.__reduce__` sent."""
    return kind(**values | {"alignment": torch.from_numpy(values["alignment"])})


@dataclass(frozen=True)
class Penalties:
    """s(y, x) = log P(y | x) / lp(y) + cp(x; y), which is what hypotheses are ranked by (Wu et al. 2016, eq. 14).

    lp(y) = ((5 + |y|) / 6)^alpha with |y| counting the end mark, cp(x; y) = beta sum_j log(min(sum_i a_ij, 1)).
    """

    length: float = 1.0
    """alpha; 0 leaves the log-probability as it is."""
    coverage: float = 0.0
    """beta; 0 asks for no coverage."""

    def score(
        self,
        log_probability: Float[Tensor, "..."],
        length: Int[Tensor, "..."] | int,
        coverage: Float[Tensor, "... S"] | None,
        source_mask: Bool[Tensor, "... S"] | None,
    ) -> Float[Tensor, "..."]:
        """Score of each hypothesis.

        Args:
            log_probability: log P(y | x).
            length: |y|, of each or one for all.
            coverage: sum_i a_ij; needed only if the coverage penalty is not 0.
            source_mask: True at real positions; None if all are.
        """
        score = log_probability / self._length_penalty(length)
        if self.coverage == 0 or coverage is None:
            return score
        terms = coverage.clamp(COVERAGE_FLOOR, 1.0).log()
        if source_mask is not None:
            terms = terms.masked_fill(~source_mask, 0.0)
        return score + self.coverage * terms.sum(dim=-1)

    def bound(self, log_probability: Float[Tensor, " B"], max_length: Int[Tensor, " B"] | int) -> Float[Tensor, " B"]:
        """The best score that a live hypothesis can still reach if it ends within a length.

        Its log-probability can only fall, the length penalty grows with the length, the coverage penalty is at most 0.
        """
        return log_probability / self._length_penalty(max_length)

    def of_lengths(self, longest: int, device: torch.device) -> Float[Tensor, " L"]:
        """lp of each length up to some, from 0."""
        lengths = torch.arange(longest + 1, dtype=torch.float64, device=device)
        return torch.as_tensor(self._length_penalty(lengths)).float()

    def joint(self, parts: Sequence[Hypothesis]) -> float:
        """Score of hypotheses for the parts of a source as one: a single length penalty; coverage penalties add up."""
        total = sum(part.log_probability for part in parts)
        if total == IMPOSSIBLE:
            return IMPOSSIBLE
        return total / self.of_length(joint_length(parts)) + sum(map(self.coverage_of, parts))

    def reward(self, log_probability: float, length: int) -> float:
        """alpha |log P(y | x)| / (5 + |y|): the log-probability that one more token is worth."""
        return self.length * abs(log_probability) / (5.0 + length)

    def coverage_of(self, hypothesis: Hypothesis) -> float:
        """cp(x; y), read from a score."""
        if self.coverage == 0:
            return 0.0
        return hypothesis.score - hypothesis.log_probability / self.of_length(hypothesis.length)

    def of_length(self, length: int) -> float:
        """lp(y) of |y| tokens."""
        return float(self._length_penalty(length))

    def _length_penalty(self, length: Tensor | int) -> Tensor | float:
        penalty: Tensor | float = ((5.0 + length) / 6.0) ** self.length
        return penalty


@dataclass(frozen=True)
class Picked:
    """The B x W candidates that one step keeps, best first; each is a node of the search graph.

    `rows` says which row of the step's input a node continues, counted through the whole batch; `total` is the
    log-probability of the whole path, -inf where there is no such candidate; `log_probs` that of its last token.
    """

    rows: Int[Tensor, "B W"]
    tokens: Int[Tensor, "B W"]
    log_probs: Float[Tensor, "B W"]
    total: Float[Tensor, "B W"]


@dataclass(frozen=True)
class Paths:
    """P paths through the trace, padded to the longest."""

    tokens: Int[Tensor, "P T"]
    log_probs: Float[Tensor, "P T"]
    alignment: Float[Tensor, "P T S"]
    total: Float[Tensor, " P"]
    """Log-probability of the whole path."""
    lengths: Int[Tensor, " P"]


@dataclass(frozen=True)
class _Recorded:
    """One step: its N nodes with their input rows, the weights of its R input rows, the node before each of these."""

    tokens: Int[Tensor, " N"]
    log_probs: Float[Tensor, " N"]
    total: Float[Tensor, " N"]
    rows: Int[Tensor, " N"]
    weights: Float[Tensor, "R S"]
    nodes: Int[Tensor, " R"]


@dataclass
class Trace:
    """Back-pointers of a search, written step by step and read backwards once, so that no history is ever copied."""

    steps: list[_Recorded] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    """The number in the trace of each step's first node, and that of the step to come."""

    def add(self, picked: Picked, weights: Float[Tensor, "R S"], nodes: Int[Tensor, " R"]) -> int:
        """Record a step: its nodes, the weights of its input rows, and the node of the step before behind each row.

        Returns the number of its first node.
        """
        flat = (picked.tokens.flatten(), picked.log_probs.flatten(), picked.total.flatten(), picked.rows.flatten())
        self.steps.append(_Recorded(*flat, weights.float(), nodes))
        self.starts.append(self.starts[-1] + picked.tokens.numel())
        return self.starts[-2]

    def read(self, last: Int[Tensor, " P"]) -> Paths:
        """The paths that end at nodes of the given numbers in the trace."""
        starts = torch.tensor(self.starts, device=last.device)
        last_step = torch.searchsorted(starts, last, right=True) - 1
        last_node = last - starts[last_step]
        count, length = len(last), int(last_step.max()) + 1
        first = self.steps[0]
        tokens = last_node.new_zeros(count, length)
        log_probs = first.log_probs.new_zeros(count, length)
        alignment = first.weights.new_zeros(count, length, first.weights.shape[1])
        node = torch.zeros_like(last_node)
        for time in reversed(range(length)):
            recorded = self.steps[time]
            node = torch.where(last_step == time, last_node, node)
            node = node.masked_fill(last_step < time, 0)
            row = recorded.rows[node]
            tokens[:, time], log_probs[:, time] = recorded.tokens[node], recorded.log_probs[node]
            alignment[:, time] = recorded.weights[row]
            node = recorded.nodes[row]
        total = torch.cat([recorded.total for recorded in self.steps])[last]
        return Paths(tokens, log_probs, alignment, total, last_step + 1)


@dataclass(frozen=True)
class Limits:
    """What does not change during a search."""

    max_lengths: Int[Tensor, " B"]
    penalties: Penalties
    source_mask: Bool[Tensor, "B S"] | None
    n_best: int
    bos: int
    eos: int
    horizon: int | None = None

    @cached_property
    def shortest(self) -> int:
        """The least of the maximum lengths."""
        return int(self.max_lengths.min())

    @cached_property
    def length_penalties(self) -> Float[Tensor, " L"]:
        """What a log-probability is divided by, of each length up to the largest."""
        return self.penalties.of_lengths(int(self.max_lengths.max()), self.max_lengths.device)

    def longest(self, time: int) -> Int[Tensor, " B"] | int:
        """The length that what is alive at a step is given to end in, of each sentence or of all."""
        if self.horizon is None:
            return self.max_lengths
        within = time + 1 + self.horizon
        return within if within <= self.shortest else self.max_lengths.clamp(max=within)


class Pool:
    """The n best finished hypotheses of each sentence, best first; an empty place scores -inf.

    Finished ones rank by score. One that was cut at its maximum length gets a place only if nothing has finished.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, device = limits, limits.max_lengths.device
        shape = len(limits.max_lengths), limits.n_best
        self.scores = torch.full(shape, IMPOSSIBLE, device=device)
        self.nodes = torch.zeros(shape, dtype=torch.long, device=device)
        """The last node of each, by its number in the trace."""

    def settle(
        self, picked: Picked, coverage: Float[Tensor, "B W S"] | None, first: int, time: int
    ) -> Float[Tensor, "B W"]:
        """Take in the candidates that end at a step; return the log-probability of those that live on, -inf for the others.

        None lives on in a sentence that can find nothing better.

        Args:
            picked: the candidates.
            coverage: the sum of the attention weights of each, for a coverage penalty.
            first: the number of the step's first node in the trace.
            time: the number of the step.
        """
        total = self._end(picked, coverage, first, time)
        return total.masked_fill(self._is_done(total, time)[:, None], IMPOSSIBLE)

    def _end(
        self, picked: Picked, coverage: Float[Tensor, "B W S"] | None, first: int, time: int
    ) -> Float[Tensor, "B W"]:
        """Take in the candidates that end; return the log-probability of the others."""
        limits = self.limits
        ended = (picked.tokens == limits.eos) & (picked.total > IMPOSSIBLE)
        if time + 1 < limits.shortest and not bool(ended.any()):
            return picked.total
        last = limits.max_lengths <= time + 1
        mask = None if limits.source_mask is None else limits.source_mask[:, None, :]
        scores = limits.penalties.score(picked.total, time + 1, coverage, mask)
        self.add(scores, first=first, ended=ended, last=last)
        return picked.total.masked_fill(ended | last[:, None], IMPOSSIBLE)

    def _is_done(self, total: Float[Tensor, "B W"], time: int) -> Bool[Tensor, " B"]:
        """Whether nothing alive can get into the pool any more, within the horizon; also true where nothing is alive."""
        best = self.limits.penalties.bound(total.amax(dim=1), self.limits.longest(time))
        return best <= self.scores[:, -1]

    def add(
        self,
        scores: Float[Tensor, "B W"],
        *,
        first: int,
        ended: Bool[Tensor, "B W"],
        last: Bool[Tensor, " B"],
    ) -> None:
        """Let the candidates of a step compete for places.

        Args:
            scores: what they rank by.
            first: the number of the step's first node in the trace.
            ended: where a candidate ends with the end mark.
            last: where a sentence has reached its maximum length.
        """
        entering = scores.masked_fill(~ended, IMPOSSIBLE)
        nothing = torch.maximum(self.scores[:, 0], entering.amax(dim=1)) == IMPOSSIBLE
        cut = (last & nothing)[:, None] & ~ended
        entering = torch.where(cut, scores, entering)
        ranked, order = torch.cat([self.scores, entering], dim=1).sort(dim=1, descending=True, stable=True)
        size = self.scores.shape[1]
        nodes = torch.arange(first, first + ended.numel(), device=ended.device).view_as(ended)
        self.scores = ranked[:, :size]
        self.nodes = torch.cat([self.nodes, nodes], dim=1).gather(1, order[:, :size])

    def hypotheses(self, trace: Trace, eos: int) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence; where no path at all was possible, an empty one that scores -inf."""
        paths = trace.read(self.nodes.flatten())
        found = _assemble(self.scores.flatten().tolist(), paths, eos)
        size = self.scores.shape[1]
        width = paths.alignment.shape[2]
        nothing = Hypothesis((), IMPOSSIBLE, IMPOSSIBLE, (), torch.zeros(0, width), finished=False)
        grouped = [found[start : start + size] for start in range(0, len(found), size)]
        return [[item for item in group if item.score > IMPOSSIBLE] or [nothing] for group in grouped]


def _assemble(scores: list[float], paths: Paths, eos: int) -> list[Hypothesis]:
    """One hypothesis a path, in one transfer from the device."""
    alignment, totals, lengths = paths.alignment.cpu(), paths.total.tolist(), paths.lengths.tolist()
    columns = (scores, totals, lengths, paths.tokens.tolist(), paths.log_probs.tolist())
    found = []
    for place, (score, total, length, tokens, log_probs) in enumerate(zip(*columns, strict=True)):
        finished = tokens[length - 1] == eos
        ids = tuple(tokens[: length - 1 if finished else length])
        rows = alignment[place, :length].clone()  # a view would keep the whole batch alive
        found.append(Hypothesis(ids, score, total, tuple(log_probs[:length]), rows, finished))
    return found
