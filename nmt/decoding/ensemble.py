"""One or several models as one: a step function for search, and forced decoding of known targets.

    p(y_t | y_<t, x) = 1/M sum_m p_m(y_t | y_<t, x)

The members share the target vocabulary; each may cut the source into tokens of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.data.batching import make_batch
from nmt.decoding.posterior import posterior_alignment
from nmt.decoding.shortlist import Shortlist
from nmt.fast import pack
from nmt.model.interface import DecoderState, LazyLogProbs, Memory, Step, TranslationModel, device_of
from nmt.runtime.device import DecodingPrecision, autocast
from nmt.search.segments import Segments
from nmt.text.subwords import PAD


@runtime_checkable
class RestrictsVocabulary(Protocol):
    """A model that can compute the probabilities of some target tokens only. For other models, the rest is masked."""

    def restrict(self, memory: Any, own: Int[Tensor, " M"], sentences: Segments) -> Any:
        """The memory of sentences whose translations may use the shared tokens and each sentence's own."""
        ...


@dataclass(frozen=True)
class EnsembleMemory:
    """The memory of each member, one row per sentence."""

    members: tuple[Memory, ...]
    allowed: Bool[Tensor, "B V"] | None = None
    """The target tokens that each sentence may use; needed if a member is no `RestrictsVocabulary`."""

    def select(self, rows: Int[Tensor, " M"]) -> EnsembleMemory:
        allowed = None if self.allowed is None else self.allowed[rows]
        return EnsembleMemory(tuple(memory.select(rows) for memory in self.members), allowed)


@dataclass(frozen=True)
class EnsembleState:
    """The decoder state of each member, one row per hypothesis."""

    members: tuple[DecoderState, ...]

    def select(self, rows: Int[Tensor, " N"]) -> EnsembleState:
        return EnsembleState(tuple(state.select(rows) for state in self.members))


@dataclass(frozen=True)
class MeanLogProbs:
    """The log of the members' mean probability, computed for the rows it is indexed with."""

    members: tuple[Tensor | LazyLogProbs, ...]

    def __len__(self) -> int:
        return len(self.members[0])

    def __getitem__(self, rows: slice | Tensor) -> Float[Tensor, "n V"]:
        return _log_mean_exp([member[rows].float() for member in self.members])


@dataclass(frozen=True)
class AllowedLogProbs:
    """Log-probabilities normalized over the tokens that a sentence may use, -inf for the others."""

    log_probs: Tensor | LazyLogProbs
    allowed: Bool[Tensor, "B V"]
    rows: Int[Tensor, " N"]

    def __len__(self) -> int:
        return len(self.log_probs)

    def __getitem__(self, rows: slice | Tensor) -> Float[Tensor, "n V"]:
        allowed = self.allowed[self.rows[rows]]
        return torch.log_softmax(self.log_probs[rows].masked_fill(~allowed, float("-inf")), dim=-1)


@dataclass(frozen=True)
class ForcedOutput:
    """Log-probabilities and alignment of known targets, 0 on padding."""

    token_log_probs: Float[Tensor, "B T"]
    """log p(y_t | y_<t, x)."""
    alignment: Float[Tensor, "B T S"]
    source_mask: Bool[Tensor, "B S"]
    """Of the first member."""


class Ensemble:
    """Models behind one step function, copied as they are now and packed for decoding.

    Alignments are averaged if all members read the same source tokens, else they are the first member's. A shortlist refers to
    the source tokens of the first member.
    """

    def __init__(
        self,
        models: Sequence[TranslationModel[Any, Any]],
        *,
        same_source: bool,
        precision: DecodingPrecision,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.device = device_of(models[0])
        shared = None if shortlist is None else shortlist.shared
        self.models = tuple(pack(model, precision, shared) for model in models)
        self._aligning = len(self.models) if same_source else 1
        """The number of members, counted from the first, whose alignments are averaged."""
        self.precision = precision
        self.shortlist = shortlist

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """No gradients, and products in the chosen precision."""
        with torch.inference_mode(), autocast(self.precision, self.device):
            yield

    def encode(self, sources: Sequence[Int[Tensor, "B _S"]]) -> EnsembleMemory:
        """Encode padded sources, one tensor per member."""
        encoded = zip(self.models, sources, strict=True)
        memory = EnsembleMemory(tuple(model.encode(source, source != PAD) for model, source in encoded))
        return memory if self.shortlist is None else self._restricted(memory, self.shortlist, sources[0])

    def _restricted(self, memory: EnsembleMemory, shortlist: Shortlist, source: Int[Tensor, "B S"]) -> EnsembleMemory:
        tokens, sentences = shortlist.own_tokens(source)
        members = tuple(
            model.restrict(member, tokens, sentences) if isinstance(model, RestrictsVocabulary) else member
            for model, member in zip(self.models, memory.members, strict=True)
        )
        if all(isinstance(model, RestrictsVocabulary) for model in self.models):
            return EnsembleMemory(members)
        allowed = torch.zeros(len(source), shortlist.target_size, dtype=torch.bool, device=self.device)
        allowed[:, shortlist.shared.to(self.device)] = True
        allowed[sentences.segment_ids, tokens] = True
        return EnsembleMemory(members, allowed)

    def start(self, memory: EnsembleMemory) -> EnsembleState:
        """The state before the first step, one row per sentence."""
        members = zip(self.models, memory.members, strict=True)
        return EnsembleState(tuple(model.start(member) for model, member in members))

    def step(
        self, tokens: Int[Tensor, " N"], state: EnsembleState, memory: EnsembleMemory, rows: Int[Tensor, " N"]
    ) -> Step:
        """One decoder step of all members; hypothesis n reads sentence `rows[n]`."""
        members = zip(self.models, state.members, memory.members, strict=True)
        steps = [model.step(tokens, before, member, rows) for model, before, member in members]
        log_probs = tuple(step.log_probs for step in steps)
        if memory.allowed is not None:
            log_probs = tuple(AllowedLogProbs(member, memory.allowed, rows) for member in log_probs)
        mean = log_probs[0] if len(steps) == 1 else MeanLogProbs(log_probs)
        weights = _mean([step.weights for step in steps[: self._aligning]])
        return Step(mean, weights, EnsembleState(tuple(step.state for step in steps)))

    def force(self, sources: Sequence[Sequence[Sequence[int]]], targets: Sequence[Sequence[int]]) -> ForcedOutput:
        """Forced decoding: log-probabilities and alignment of known targets.

        Row t of the alignment belongs to target token t, the row of the end mark being the last.

        Args:
            sources: for each member, the source ids of each sentence, without special marks.
            targets: the target ids of each sentence, without special marks.
        """
        log_probs, alignments, masks = [], [], []
        for model, source in zip(self.models, sources, strict=True):
            batch = make_batch(list(zip(source, targets, strict=True))).to(self.device)
            output = model(batch)
            log_probs.append(output.token_log_probs)
            alignments.append(output.alignment.float() * batch.target_mask[:, :, None])
            masks.append(batch.source_mask)
        return ForcedOutput(_log_mean_exp(log_probs), _mean(alignments[: self._aligning]), masks[0])

    def posterior(
        self, sources: Sequence[Sequence[Sequence[int]]], targets: Sequence[Sequence[int]]
    ) -> Float[Tensor, "B T S"]:
        """The posterior alignment of known targets, see `posterior_alignment`; arguments as in `force`."""
        alignments = []
        for model, source in zip(self.models[: self._aligning], sources, strict=False):
            batch = make_batch(list(zip(source, targets, strict=True))).to(self.device)
            alignments.append(posterior_alignment(model, batch))
        return _mean(alignments)


def _mean(weights: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "..."]:
    """The mean over the members."""
    return weights[0].float() if len(weights) == 1 else torch.stack(list(weights)).float().mean(dim=0)


def _log_mean_exp(log_probs: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "..."]:
    """log of the mean probability over the members."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.logsumexp(torch.stack(list(log_probs)), dim=0) - math.log(len(log_probs))
