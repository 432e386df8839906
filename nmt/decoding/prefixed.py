"""Search for translations that begin as given: at each step, only tokens that spell the rest of the prefix keep their probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxtyping import Int
from torch import Tensor

from nmt.decoding.ensemble import Ensemble, EnsembleMemory, EnsembleState
from nmt.model.interface import Step
from nmt.search.candidates import FollowingLogProbs
from nmt.text.prefix import Prefix


@dataclass(frozen=True)
class PrefixedMemory:
    """The memory of an ensemble, and the prefix of each sentence."""

    memory: EnsembleMemory
    prefixes: tuple[Prefix, ...]

    def select(self, rows: Int[Tensor, " M"]) -> PrefixedMemory:
        return PrefixedMemory(self.memory.select(rows), tuple(self.prefixes[row] for row in rows.tolist()))


@dataclass(frozen=True)
class PrefixedState:
    """The state of an ensemble, and the place in its prefix that each hypothesis has come to."""

    state: EnsembleState
    places: tuple[int, ...]

    def select(self, rows: Int[Tensor, " N"]) -> PrefixedState:
        return PrefixedState(self.state.select(rows), tuple(self.places[row] for row in rows.tolist()))


class PrefixedEnsemble:
    """An ensemble for sentences that each have a prefix, which may be empty."""

    def __init__(self, ensemble: Ensemble, prefixes: Sequence[Prefix]) -> None:
        self.ensemble, self.prefixes = ensemble, tuple(prefixes)

    def encode(self, sources: Sequence[Int[Tensor, "B _S"]]) -> PrefixedMemory:
        """Encode the padded sources, one tensor per member."""
        return PrefixedMemory(self.ensemble.encode(sources), self.prefixes)

    def start(self, memory: PrefixedMemory) -> PrefixedState:
        """The state before the first step, one row per sentence."""
        return PrefixedState(self.ensemble.start(memory.memory), (0,) * len(memory.prefixes))

    def step(
        self, tokens: Int[Tensor, " N"], state: PrefixedState, memory: PrefixedMemory, rows: Int[Tensor, " N"]
    ) -> Step:
        """A step of the ensemble. Where all prefixes are complete, it is nothing else."""
        step = self.ensemble.step(tokens, state.state, memory.memory, rows)
        prefixes = [memory.prefixes[row] for row in rows.tolist()]
        latest = zip(prefixes, state.places, tokens.tolist(), strict=True)
        places = tuple(prefix.after(place, token) for prefix, place, token in latest)
        following = [prefix.following(place) for prefix, place in zip(prefixes, places, strict=True)]
        log_probs = FollowingLogProbs(step.log_probs, following) if any(following) else step.log_probs
        return replace(step, log_probs=log_probs, state=PrefixedState(step.state, places))
