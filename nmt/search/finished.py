"""The finished hypotheses of a search, and the back-pointers that their tokens are read from at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.search.candidates import Candidates
from nmt.search.hypothesis import NEG_INF, Hypothesis, Penalties


@dataclass(frozen=True)
class SearchSettings:
    """What stays the same during a search."""

    max_lengths: Int[Tensor, " B"]
    """Most tokens of each output, end mark included; on the CPU, or on the device of the search."""
    penalties: Penalties
    source_mask: Bool[Tensor, "B S"] | None
    n_best: int
    bos: int
    eos: int
    horizon: int | None = None
    device: torch.device | None = None
    """Where the search runs; None stands for the device of `max_lengths`."""
    check_every: int = 1
    """Steps between looks at which hypotheses have ended."""

    @cached_property
    def limits(self) -> Int[Tensor, " B"]:
        """`max_lengths` on the device of the search."""
        return self.max_lengths if self.device is None else self.max_lengths.to(self.device)

    @cached_property
    def shortest(self) -> int:
        return int(self.max_lengths.min())

    @cached_property
    def longest(self) -> int:
        return int(self.max_lengths.max())

    @cached_property
    def length_penalties(self) -> Float[Tensor, " L"]:
        """lp(y) of each length, from 0 to the largest maximum length."""
        return self.penalties.length_penalties(self.longest, self.limits.device)

    def horizon_lengths(self, time: int) -> Int[Tensor, " B"] | int:
        """The length by which a hypothesis that is live after step `time` is assumed to end, per sentence or for all."""
        if self.horizon is None:
            return self.limits
        length = time + 1 + self.horizon
        return length if length <= self.shortest else self.limits.clamp(max=length)


class FinishedHypotheses:
    """The `n_best` finished hypotheses of each sentence, best first.

    A hypothesis that was cut at its maximum length is included only if none of its sentence has finished.
    """

    def __init__(self, settings: SearchSettings) -> None:
        self.settings, device = settings, settings.limits.device
        shape = len(settings.max_lengths), settings.n_best
        self.scores = torch.full(shape, NEG_INF, device=device)
        """[B n_best]; -inf marks an empty place."""
        self.nodes = torch.zeros(shape, dtype=torch.long, device=device)
        """[B n_best]: the node of each one's last candidate, see `BackPointers`."""

    def update(
        self, candidates: Candidates, coverage: Float[Tensor, "B W S"] | None, first_node: int, time: int
    ) -> Float[Tensor, "B W"]:
        """Add the candidates that end; return the log-probabilities of those that stay live, -inf for all others.

        None stays live in a sentence that is done: whose live candidates can no longer replace a finished hypothesis.

        Args:
            candidates: the candidates of a step.
            coverage: the summed attention weights of each, for a coverage penalty.
            first_node: the node of the step's first candidate.
            time: the number of the step, from 0.
        """
        log_probs = self._without_ended(candidates, coverage, first_node, time)
        return log_probs.masked_fill(self._is_done(log_probs, time)[:, None], NEG_INF)

    def _without_ended(
        self, candidates: Candidates, coverage: Float[Tensor, "B W S"] | None, first_node: int, time: int
    ) -> Float[Tensor, "B W"]:
        """Add the candidates that end; return the log-probabilities of the others."""
        settings = self.settings
        ended = (candidates.tokens == settings.eos) & (candidates.log_probs > NEG_INF)
        if settings.check_every == 1 and time + 1 < settings.shortest and not bool(ended.any()):
            return candidates.log_probs
        is_last_step = settings.limits <= time + 1
        mask = None if settings.source_mask is None else settings.source_mask[:, None, :]
        scores = settings.penalties.score(candidates.log_probs, time + 1, coverage, mask)
        self.insert(scores, first_node=first_node, ended=ended, is_last_step=is_last_step)
        return candidates.log_probs.masked_fill(ended | is_last_step[:, None], NEG_INF)

    def _is_done(self, log_probs: Float[Tensor, "B W"], time: int) -> Bool[Tensor, " B"]:
        """Whether no live candidate can reach the score of the last finished hypothesis; also True if none is live."""
        settings = self.settings
        bound = settings.penalties.upper_bound(log_probs.amax(dim=1), settings.horizon_lengths(time))
        return bound <= self.scores[:, -1]

    def insert(
        self,
        scores: Float[Tensor, "B W"],
        *,
        first_node: int,
        ended: Bool[Tensor, "B W"],
        is_last_step: Bool[Tensor, " B"],
    ) -> None:
        """Insert the candidates of a step that ended, or that were cut, by score.

        Args:
            scores: the score of each candidate.
            first_node: the node of the first one.
            ended: which candidates end with the end mark.
            is_last_step: which sentences have reached their maximum length.
        """
        entries = scores.masked_fill(~ended, NEG_INF)
        none_finished = torch.maximum(self.scores[:, 0], entries.amax(dim=1)) == NEG_INF
        cut = (is_last_step & none_finished)[:, None] & ~ended
        entries = torch.where(cut, scores, entries)
        ranked, order = torch.cat([self.scores, entries], dim=1).sort(dim=1, descending=True, stable=True)
        n_best = self.scores.shape[1]
        nodes = torch.arange(first_node, first_node + ended.numel(), device=ended.device).view_as(ended)
        self.scores = ranked[:, :n_best]
        self.nodes = torch.cat([self.nodes, nodes], dim=1).gather(1, order[:, :n_best])

    def finalize(self, back_pointers: BackPointers) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence. A sentence without any has one that is empty, unfinished and scores -inf."""
        paths = back_pointers.follow(self.nodes.flatten())
        hypotheses = _assemble(self.scores.flatten().tolist(), paths, self.settings.eos)
        n_best = self.scores.shape[1]
        no_weights = torch.zeros(0, paths.alignment.shape[2])
        empty = Hypothesis((), NEG_INF, NEG_INF, (), no_weights, finished=False)
        groups = [hypotheses[start : start + n_best] for start in range(0, len(hypotheses), n_best)]
        return [[item for item in group if item.score > NEG_INF] or [empty] for group in groups]


# --- back-pointers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paths:
    """P paths through a search, padded to the longest."""

    tokens: Int[Tensor, "P T"]
    token_log_probs: Float[Tensor, "P T"]
    alignment: Float[Tensor, "P T S"]
    log_probs: Float[Tensor, " P"]
    """Log-probability of the whole path."""
    lengths: Int[Tensor, " P"]


@dataclass(frozen=True)
class RecordedStep:
    """One step of a search: N hypotheses of the beam, extended to M candidates."""

    tokens: Int[Tensor, " M"]
    token_log_probs: Float[Tensor, " M"]
    log_probs: Float[Tensor, " M"]
    parents: Int[Tensor, " M"]
    """The hypothesis that each candidate extends."""
    weights: Float[Tensor, "N S"]
    origins: Int[Tensor, " N"]
    """The candidate of the step before that each hypothesis was."""


@dataclass
class BackPointers:
    """The steps of a search, recorded as they are taken and followed backwards once: no prefix is ever copied.

    A node is a candidate, numbered through all steps.
    """

    steps: list[RecordedStep] = field(default_factory=list)
    first_nodes: list[int] = field(default_factory=lambda: [0])
    """The first node of each step, and of the step to come."""

    def add(self, candidates: Candidates, weights: Float[Tensor, "N S"], origins: Int[Tensor, " N"]) -> int:
        """Record a step: its candidates, and the attention weights and origins of the beam that they extend.

        Returns:
            The step's first node.
        """
        step = RecordedStep(
            tokens=candidates.tokens.flatten(),
            token_log_probs=candidates.token_log_probs.flatten(),
            log_probs=candidates.log_probs.flatten(),
            parents=candidates.parents.flatten(),
            weights=weights.float(),
            origins=origins,
        )
        self.steps.append(step)
        self.first_nodes.append(self.first_nodes[-1] + candidates.tokens.numel())
        return self.first_nodes[-2]

    def follow(self, nodes: Int[Tensor, " P"]) -> Paths:
        """The paths that end at the given nodes."""
        first_nodes = torch.tensor(self.first_nodes, device=nodes.device)
        last_steps = torch.searchsorted(first_nodes, nodes, right=True) - 1
        last_candidates = nodes - first_nodes[last_steps]
        count, length = len(nodes), int(last_steps.max()) + 1
        first = self.steps[0]
        tokens = nodes.new_zeros(count, length)
        token_log_probs = first.token_log_probs.new_zeros(count, length)
        alignment = first.weights.new_zeros(count, length, first.weights.shape[1])
        candidates = torch.zeros_like(nodes)
        for time in reversed(range(length)):
            step = self.steps[time]
            candidates = torch.where(last_steps == time, last_candidates, candidates)
            candidates = candidates.masked_fill(last_steps < time, 0)  # a shorter path: what is read here is padding
            parents = step.parents[candidates]
            tokens[:, time], token_log_probs[:, time] = step.tokens[candidates], step.token_log_probs[candidates]
            alignment[:, time] = step.weights[parents]
            candidates = step.origins[parents]
        log_probs = torch.cat([step.log_probs for step in self.steps])[nodes]
        return Paths(tokens, token_log_probs, alignment, log_probs, last_steps + 1)


def _assemble(scores: list[float], paths: Paths, eos: int) -> list[Hypothesis]:
    """One hypothesis per path, after a single transfer from the device."""
    alignment = paths.alignment.cpu()
    columns = [part.tolist() for part in (paths.log_probs, paths.lengths, paths.tokens, paths.token_log_probs)]
    hypotheses = []
    for row, (score, *values) in enumerate(zip(scores, *columns, strict=True)):
        log_probability, length, tokens, token_log_probs = values
        finished = tokens[length - 1] == eos
        hypotheses.append(
            Hypothesis(
                ids=tuple(tokens[: length - 1 if finished else length]),
                score=score,
                log_probability=log_probability,
                token_log_probs=tuple(token_log_probs[:length]),
                alignment=alignment[row, :length].clone(),  # a view would keep the whole batch alive
                finished=finished,
            )
        )
    return hypotheses
