"""Search for translations that begin as given: at each step, only tokens that spell the rest of the prefix keep their probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt.decoding.ensemble import Ensemble, EnsembleMemory, EnsembleState
from nmt.model.interface import LazyLogProbs, Step
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


@dataclass(frozen=True)
class FollowingLogProbs:
    """Log-probabilities as they are, but -inf for the tokens that may not follow."""

    log_probs: Tensor | LazyLogProbs
    following: Sequence[Sequence[int]]
    """The tokens that may follow each hypothesis; all if there are none."""

    def __len__(self) -> int:
        return len(self.log_probs)

    def __getitem__(self, rows: slice | Tensor) -> Float[Tensor, "n V"]:
        table, following = self.log_probs[rows], [self.following[row] for row in torch.arange(len(self))[rows].tolist()]
        if isinstance(self.log_probs, Tensor):
            table = table.clone()  # others compute rows anew
        row_ids, tokens = [row for row, tokens in enumerate(following) for _ in tokens], list(chain(*following))
        values = table[row_ids, tokens]
        table[list(dict.fromkeys(row_ids))] = float("-inf")
        table[row_ids, tokens] = values
        return table


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
        following = [tuple(prefix.following(place)) for prefix, place in zip(prefixes, places, strict=True)]
        log_probs = FollowingLogProbs(step.log_probs, following) if any(following) else step.log_probs
        return replace(step, log_probs=log_probs, state=PrefixedState(step.state, places))
