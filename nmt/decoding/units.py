"""Decoding of units of text that are already cut into pieces: a batch in, hypotheses with their alignments out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt import recipe
from nmt.data.batching import pad
from nmt.data.subwords import BOS, EOS, PAD, Subwords
from nmt.decoding.ancestral import Sampling
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.hypothesis import Hypothesis, Penalties
from nmt.decoding.kernel_pool import KernelPool
from nmt.decoding.lines import clean
from nmt.decoding.search import beam_search, greedy, sample
from nmt.decoding.translation import TranslationHypothesis
from nmt.decoding.unknown import UnknownWords


@dataclass(frozen=True)
class Unit:
    """What is decoded at a time: one text, and its pieces as each member of an ensemble cuts it, without special marks."""

    ids: tuple[tuple[int, ...], ...]
    text: str
    place: tuple[int, int] = (0, 0)
    """The number of its line, and which part of the line it is."""

    @property
    def length(self) -> int:
        """Pieces of the longest version."""
        return max(map(len, self.ids))


class UnitDecoder:
    """Searches and forces batches of units."""

    def __init__(
        self,
        ensemble: Ensemble,
        target: Subwords,
        *,
        decoding: recipe.DecodingConfig,
        n_best: int,
        alignments: bool,
        posterior: bool,
        unknown: UnknownWords | None,
        sampling: Sampling | None = None,
    ) -> None:
        self.ensemble = ensemble
        self.target = target
        self.decoding = decoding
        self.n_best = n_best
        self.alignments = alignments
        self.posterior = posterior
        self.unknown = unknown
        self.sampling = sampling
        self.penalties = Penalties(decoding.length_penalty, decoding.coverage_penalty)

    def search(self, units: Sequence[Unit]) -> list[list[TranslationHypothesis]]:
        """The best hypotheses of each unit, best first, or those that were drawn."""
        with self.ensemble.evaluating():
            found = self._search(units)
        alignments = self._alignments(units, found) if self.alignments else None
        return [
            [
                TranslationHypothesis.of(
                    hypothesis,
                    text=clean(self._text(units[row], hypothesis)),
                    alignment=hypothesis.alignment[:0, :0] if alignments is None else alignments[row][rank],
                )
                for rank, hypothesis in enumerate(ranked)
            ]
            for row, ranked in enumerate(found)
        ]

    def force(self, pairs: Sequence[tuple[Unit, Sequence[int]]]) -> list[TranslationHypothesis]:
        """What the models think of units with known targets, given as ids without special marks."""
        units, targets = zip(*pairs, strict=True)
        with self.ensemble.evaluating():
            sources = [[unit.ids[member] for unit in units] for member in range(len(units[0].ids))]
            forced = self.ensemble.force(sources, targets)
            totals = forced.token_log_probs.sum(dim=1)
            lengths = torch.tensor([len(target) + 1 for target in targets], device=totals.device)
            mask = self._sources(units)[0] != PAD
            scores = self.penalties.score(totals, lengths, forced.alignment.sum(dim=1), mask).tolist()
            alignment = (self.ensemble.posterior(sources, targets) if self.posterior else forced.alignment).cpu()
        log_probs = forced.token_log_probs.tolist()
        return [
            TranslationHypothesis(
                ids=tuple(target),
                score=scores[row],
                log_probability=total,
                token_log_probs=tuple(log_probs[row][: len(target) + 1]),
                alignment=alignment[row, : len(target) + 1, : len(unit.ids[0]) + 1].clone(),
                finished=True,
                text=clean(self.target.decode(target)),
            )
            for row, (unit, target, total) in enumerate(zip(units, targets, totals.tolist(), strict=True))
        ]

    def _search(self, units: Sequence[Unit]) -> list[list[Hypothesis]]:
        sources = self._sources(units)
        longest = [int(self.decoding.max_ratio * len(unit.ids[0])) + 11 for unit in units]  # 10 and the end mark
        memory = self.ensemble.encode(sources)
        state = self.ensemble.start(memory)
        common: dict[str, Any] = {
            "max_lengths": torch.tensor(longest, device=self.ensemble.device),
            "length_penalty": self.penalties.length,
            "coverage_penalty": self.penalties.coverage,
            "source_mask": sources[0] != PAD,
            "bos": BOS,
            "eos": EOS,
            "forbid": (PAD, BOS),
            "pool_type": KernelPool,
        }
        if self.sampling is not None:
            return sample(
                self.ensemble.step,
                state,
                memory,
                uniform=self.sampling.uniform([unit.place for unit in units], self.n_best, max(longest)).to(
                    self.ensemble.device
                ),
                temperature=self.sampling.temperature,
                top_k=self.sampling.top_k,
                **common,
            )
        if self.decoding.beam_size > 1:
            return beam_search(
                self.ensemble.step,
                state,
                memory,
                batch=len(units),
                beam_size=self.decoding.beam_size,
                n_best=self.n_best,
                horizon=self.decoding.horizon,
                prune=self.decoding.prune,
                **common,
            )
        return [[best] for best in greedy(self.ensemble.step, state, memory, batch=len(units), **common)]

    def _text(self, unit: Unit, hypothesis: Hypothesis) -> str:
        if self.unknown is None:
            return self.target.decode(hypothesis.ids)
        return self.unknown.text(unit.text, unit.ids[0], hypothesis)

    def _alignments(
        self, units: Sequence[Unit], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Float[Tensor, "_T _S"]]]:
        """The alignment of each hypothesis, row t for target piece t, without padding."""
        if self.posterior:
            each = [(unit, hypothesis.ids) for unit, ranked in zip(units, found, strict=True) for hypothesis in ranked]
            forced = iter(self.force(each))
            return [[next(forced).alignment[: len(hypothesis.alignment)] for hypothesis in ranked] for ranked in found]
        return [
            [hypothesis.alignment[:, : len(unit.ids[0]) + 1].clone() for hypothesis in ranked]
            for unit, ranked in zip(units, found, strict=True)
        ]

    def _sources(self, units: Sequence[Unit]) -> list[Int[Tensor, "B _S"]]:
        """The padded source of each member, with end marks."""
        members = range(len(units[0].ids))
        return [pad([[*unit.ids[member], EOS] for unit in units]).to(self.ensemble.device) for member in members]
