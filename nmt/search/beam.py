"""The beam of a search, the candidates that a step extends it to, and the next beam, which is those that stay live."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt.search.hypothesis import NEG_INF
from nmt.search.segments import Segments

_COMPACT_AT = 0.25
"""Share of finished hypotheses at which greedy search removes them from the batch. Removing copies the state."""

SelfT = TypeVar("SelfT")


@runtime_checkable
class Selectable(Protocol):
    """A state, with one row per hypothesis, or a memory, with one row per sentence."""

    def select(self: SelfT, rows: Int[Tensor, " N"]) -> SelfT:  # noqa: PYI019 -- the tests' checker refuses Self
        """The given rows, in their order."""
        ...


@dataclass(frozen=True)
class Candidates:
    """The W continuations of each sentence that a step chooses, best first."""

    parents: Int[Tensor, "B W"]
    """The hypothesis of the beam that each one extends, from 0 to N - 1."""
    tokens: Int[Tensor, "B W"]
    token_log_probs: Float[Tensor, "B W"]
    """log P of the last token."""
    log_probs: Float[Tensor, "B W"]
    """log P of all tokens; -inf where a sentence has fewer than W candidates."""


@dataclass(frozen=True)
class Sources:
    """The memory of the sentences that are not done, and the row of it that each hypothesis reads."""

    memory: Selectable
    sentences: Int[Tensor, " M"]
    """The sentence of each row of the memory, in rising order."""
    rows: Int[Tensor, " N"]
    """The row of the memory that each hypothesis reads."""
    most_hypotheses: int = 0
    """The largest N since rows of the memory were last dropped."""

    def of(self, beam: Segments) -> Sources:
        """The sources of the hypotheses of a beam; it holds the sentence of each.

        Rows of sentences that are done are dropped only once N has halved: dropping copies the memory.
        """
        count = len(beam.segment_ids)
        if 2 * count <= self.most_hypotheses:
            remaining = beam.present
            memory = self.memory.select(torch.searchsorted(self.sentences, remaining))
            return Sources(memory, remaining, torch.searchsorted(remaining, beam.segment_ids), count)
        rows = torch.searchsorted(self.sentences, beam.segment_ids)
        return replace(self, rows=rows, most_hypotheses=max(self.most_hypotheses, count))


@dataclass(frozen=True)
class Beam:
    """The N live hypotheses of B sentences, which the next step extends."""

    time: int
    """Number of steps taken."""
    sentences: Segments
    """The sentence of each hypothesis, in rising order. A sentence that is done has none."""
    log_probs: Float[Tensor, " N"]
    """log P of the tokens so far."""
    tokens: Int[Tensor, " N"]
    """The last token of each, which the next step reads."""
    origins: Int[Tensor, " N"]
    """Which of the B W candidates of the last step each one was; its sentence before the first step."""
    state: Any
    """What the next step starts from, one row per hypothesis."""
    sources: Sources
    coverage: Float[Tensor, "N S"] | None = None
    """sum_i a_ij over the steps so far; None if there is no coverage penalty."""

    @classmethod
    def start(cls, state: Selectable, memory: Selectable, max_lengths: Int[Tensor, " B"], *, bos: int) -> Beam:
        """The beam before the first step: one empty hypothesis per sentence."""
        batch = len(max_lengths)
        sentences = torch.arange(batch, device=max_lengths.device)
        return cls(
            time=0,
            sentences=Segments(sentences, batch, rows_each=1),
            log_probs=torch.zeros(batch, device=sentences.device),
            tokens=torch.full_like(sentences, bos),
            origins=sentences,
            state=state,
            sources=Sources(memory, sentences, sentences),
        )

    def next(
        self,
        candidates: Candidates,
        log_probs: Float[Tensor, "B W"],
        coverage: Float[Tensor, "B W S"] | None,
        state: Selectable,
        check_every: int,
    ) -> Beam | None:
        """The beam of the candidates that stay live; None if none does.

        Others may stay too: with `check_every`, and in greedy search until `_COMPACT_AT` of the beam has ended.

        Args:
            candidates: those of a step from this beam.
            log_probs: their log-probabilities, -inf where one does not stay live.
            coverage: the summed attention weights of each, for a coverage penalty.
            state: the state after the step, one row per hypothesis of this beam.
            check_every: steps between looks at which hypotheses have ended.
        """
        width, rows_each = log_probs.shape[1], None
        if check_every == 1:
            origins = (log_probs > NEG_INF).flatten().nonzero().squeeze(1)
            if width == 1 and len(origins) > (1 - _COMPACT_AT) * len(self.tokens):
                origins = (
                    self.sentences.segment_ids
                )  # at log P = -inf, so nothing that continues an ended hypothesis counts
        else:
            is_due, rows_each = (self.time + 1) % check_every == 0, width
            remaining = (log_probs > NEG_INF).any(1).nonzero().squeeze(1) if is_due else self.sentences.present
            origins = (remaining.unsqueeze(1) * width + torch.arange(width, device=remaining.device)).flatten()
        if not len(origins):
            return None
        sentences = Segments(origins.div(width, rounding_mode="floor"), self.sentences.count, rows_each)
        parents, sources = candidates.parents.flatten()[origins], self.sources
        rows = torch.arange(len(self.tokens), device=parents.device)
        if check_every > 1 or not torch.equal(parents, rows):  # else selecting would only copy the state
            state, sources = state.select(parents), sources.of(sentences)
        return Beam(
            time=self.time + 1,
            sentences=sentences,
            log_probs=log_probs.flatten()[origins],
            tokens=candidates.tokens.flatten()[origins],
            origins=origins,
            state=state,
            sources=sources,
            coverage=None if coverage is None else coverage.flatten(0, 1)[origins],
        )
