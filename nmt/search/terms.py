"""Search for outputs that hold given terms (Hokamp and Liu 2017; Post and Vilar 2018).

A hypothesis belongs to a bank by how many tokens of its terms it has. Beside the most probable tokens, each step also looks at those
that go on in a term or begin one, and the banks share the beam. An output ends only when it has all terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.search.beam import Beam, Candidates
from nmt.search.candidates import IndexedLogProbs, row_chunks, top_tokens
from nmt.search.finished import FinishedHypotheses
from nmt.search.hypothesis import NEG_INF
from nmt.search.loop import Search
from nmt.search.options import SearchOptions

Term = tuple[int, ...]
"""The tokens of a term."""


@dataclass(frozen=True)
class TermProgress:
    """How far a hypothesis is with its terms."""

    missing: tuple[Term, ...]
    """The terms that are not complete, the one in progress first."""
    begun: int = 0
    """How many tokens of that one there are."""
    is_complete: bool = False
    """Whether the last token completed a term."""

    @property
    def wanted(self) -> tuple[int, ...]:
        """The tokens that go on in the term in progress, or begin one."""
        return (self.missing[0][self.begun],) if self.begun else tuple(term[0] for term in self.missing)

    @property
    def remaining(self) -> int:
        """How many tokens are missing."""
        return sum(map(len, self.missing)) - self.begun

    def after(self, token: int) -> TermProgress:
        """The progress after a token. One that does not go on in the term in progress may begin another."""
        if self.begun and self.missing[0][self.begun] == token:
            progress = replace(self, begun=self.begun + 1)
        else:
            first = next((term for term in self.missing if term[0] == token), None)
            if first is None:
                return TermProgress(self.missing)
            others = list(self.missing)
            others.remove(first)
            progress = TermProgress((first, *others), 1)
        return TermProgress(progress.missing[1:], 0, True) if progress.begun == len(progress.missing[0]) else progress


@dataclass(frozen=True)
class _Continuation:
    total: float
    log_prob: float
    parent: int
    token: int
    progress: TermProgress


class TermSearch(Search):
    """A search for sentences with terms, for one run."""

    def __init__(
        self, options: SearchOptions, terms: Sequence[Sequence[Term]], inner: frozenset[int] = frozenset()
    ) -> None:
        """Begin with nothing of the terms.

        Args:
            options: of the search; nothing is pruned.
            terms: those of each sentence; the same one several times must occur as often.
            inner: tokens that may not follow a term, because they would go on in its last word.
        """
        super().__init__(options)
        self.inner = inner
        self.progress = [TermProgress(tuple(of_sentence)) for of_sentence in terms]
        """That of each candidate of the last step; before the first step, of each sentence."""

    def candidates(self, beam: Beam, log_probs: IndexedLogProbs, uniform: Float[Tensor, "B L"] | None) -> Candidates:
        """The continuations of each sentence that a step keeps, chosen bank by bank."""
        progress = [self.progress[origin] for origin in beam.origins.tolist()]
        sentences, totals = beam.sentences.segment_ids.tolist(), beam.log_probs.tolist()
        candidates: list[list[_Continuation]] = [[] for _ in range(beam.sentences.count)]
        for parent, (total, tokens) in enumerate(zip(totals, self._tokens(log_probs, progress), strict=True)):
            candidates[sentences[parent]] += [
                _Continuation(total + log_prob, log_prob, parent, token, progress[parent].after(token))
                for token, log_prob in tokens.items()
                if total + log_prob > NEG_INF
            ]
        size, nothing = self.options.beam_size, _Continuation(NEG_INF, NEG_INF, 0, self.options.eos, TermProgress(()))
        kept = [[*_shared(of_sentence, size), *[nothing] * size][:size] for of_sentence in candidates]
        self.progress = [candidate.progress for of_sentence in kept for candidate in of_sentence]
        table = [[(each.parent, each.token, each.log_prob, each.total) for each in of_sentence] for of_sentence in kept]
        columns = torch.tensor(table, dtype=torch.float64, device=beam.tokens.device)
        ids, values = columns[..., :2].long(), columns[..., 2:].float()
        return Candidates(ids[..., 0], ids[..., 1], values[..., 0], values[..., 1])

    def update_finished(
        self,
        finished: FinishedHypotheses,
        candidates: Candidates,
        coverage: Float[Tensor, "B W S"] | None,
        first_node: int,
        time: int,
    ) -> Float[Tensor, "B W"]:
        """As in any search, but at the maximum length only the candidates with the fewest tokens missing are left."""
        log_probs = candidates.log_probs
        remaining = torch.tensor([float(each.remaining) for each in self.progress], device=log_probs.device)
        remaining = remaining.view_as(log_probs).masked_fill(log_probs == NEG_INF, torch.inf)
        is_last_step = (finished.max_lengths <= time + 1).unsqueeze(1)
        is_behind = is_last_step & (remaining > remaining.amin(dim=1, keepdim=True))
        candidates = replace(candidates, log_probs=log_probs.masked_fill(is_behind, NEG_INF))
        return super().update_finished(finished, candidates, coverage, first_node, time)

    def _tokens(self, log_probs: IndexedLogProbs, progress: Sequence[TermProgress]) -> list[dict[int, float]]:
        """The tokens that each hypothesis may go on with, and their log-probabilities: the most probable ones, and those it wants."""
        options, found = self.options, list[dict[int, float]]()
        for chunk in row_chunks(log_probs):
            values, ids = top_tokens(chunk, options.beam_size + 1, options.forbid)
            here = progress[len(found) : len(found) + len(chunk)]
            places = [(row, token) for row, of_row in enumerate(here) for token in of_row.wanted]
            best = [dict(zip(*of_row, strict=True)) for of_row in zip(ids.tolist(), values.tolist(), strict=True)]
            rows, tokens = torch.tensor(places, dtype=torch.long).view(-1, 2).T
            for (row, token), value in zip(places, chunk[rows, tokens].tolist(), strict=True):
                best[row][token] = value
            for of_row, of_hypothesis in zip(best, here, strict=True):
                excluded = {options.eos} if of_hypothesis.missing else set()
                excluded |= self.inner if of_hypothesis.is_complete else set()
                found.append({token: value for token, value in of_row.items() if token not in excluded})
        return found


def _shared(candidates: Sequence[_Continuation], size: int) -> list[_Continuation]:
    """The best candidates of each bank in turn, from the one with the fewest tokens missing on; best first."""
    banks: dict[int, list[_Continuation]] = {}
    for candidate in sorted(candidates, key=lambda candidate: -candidate.total):
        banks.setdefault(candidate.progress.remaining, []).append(candidate)
    turns = [(rank, remaining, candidate) for remaining, bank in banks.items() for rank, candidate in enumerate(bank)]
    turns.sort(key=lambda turn: turn[:2])
    return sorted((candidate for *_, candidate in turns[:size]), key=lambda candidate: -candidate.total)
