"""The finished hypotheses of a search, and the back-pointers that their tokens are read from at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.errors import UsageError
from nmt.search.beam import Candidates
from nmt.search.hypothesis import NEG_INF, Hypothesis, Penalties
from nmt.search.options import SearchOptions


class FinishedHypotheses:
    """The `n_best` finished hypotheses of each sentence, best first.

    A hypothesis that was cut at its maximum length is included only if none of its sentence has finished.
    """

    def __init__(
        self,
        options: SearchOptions,
        max_lengths: Int[Tensor, " B"],
        source_mask: Bool[Tensor, "B S"] | None = None,
    ) -> None:
        """Start without any; arguments as in `Search.run`. Raises UsageError if a maximum length is below 1."""
        self.options, self.source_mask = options, source_mask
        self.penalties = Penalties(options.length_penalty, options.coverage_penalty)
        self.shortest, self.longest = int(max_lengths.min()), int(max_lengths.max())
        if self.shortest < 1:
            raise UsageError(f"max_lengths must be at least 1 everywhere, but holds {self.shortest}.")
        self.max_lengths = max_lengths.to(options.device or max_lengths.device)
        shape = len(max_lengths), options.n_best
        self.scores = torch.full(shape, NEG_INF, device=self.max_lengths.device)
        """[B n_best]; -inf marks an empty place."""
        self.nodes = torch.zeros(shape, dtype=torch.long, device=self.max_lengths.device)
        """[B n_best]: the node of each one's last candidate, see `BackPointers`."""

    @cached_property
    def length_penalties(self) -> Float[Tensor, " L"]:
        """lp(y) of each length, from 0 to the largest maximum length."""
        lengths = torch.arange(self.longest + 1, dtype=torch.float64, device=self.max_lengths.device)
        return self.penalties.length_penalty(lengths).float()

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
        alignment = paths.alignment.cpu()
        columns = (self.scores.flatten(), paths.log_probs, paths.lengths, paths.tokens, paths.token_log_probs)
        hypotheses = []
        for row, (score, log_probability, length, tokens, token_log_probs) in enumerate(
            zip(*(part.tolist() for part in columns), strict=True)
        ):
            finished = tokens[length - 1] == self.options.eos
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
        n_best, empty = (
            self.scores.shape[1],
            Hypothesis((), NEG_INF, NEG_INF, (), alignment[0, :0].clone(), finished=False),
        )
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
