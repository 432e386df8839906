"""The beam of a search and its most probable continuations, the candidates for the next beam."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt.search.hypothesis import NEG_INF
from nmt.search.segments import Segments

ROWS_AT_ONCE = 512
"""Rows of log-probabilities [n V] that are computed at a time."""


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
    coverage: Float[Tensor, "N S"] | None
    """sum_i a_ij over the steps so far; None if there is no coverage penalty."""


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


@runtime_checkable
class IndexedLogProbs(Protocol):
    """log p(y_t | y_<t, x) [N V]: a tensor, or an object that computes the rows it is indexed with. -inf is allowed."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice) -> Float[Tensor, "n V"]: ...


class RankedLogProbs(IndexedLogProbs, Protocol):
    """Log-probabilities that may find the best continuations without computing all [N V]."""

    def best_continuations(
        self,
        totals: Float[Tensor, " N"],
        sentences: Segments,
        size: int,
        forbid: tuple[int, ...],
        prune: float | None,
    ) -> tuple[Float[Tensor, "B W"], Int[Tensor, "B W"], Int[Tensor, "B W"], Float[Tensor, "B W"]] | None:
        """`log_probs`, `parents`, `tokens` and `token_log_probs` of `top_candidates`; None if it is not faster here.

        `totals` and `sentences` are the beam's.
        """
        ...


def top_candidates(
    beam: Beam,
    log_probs: IndexedLogProbs | RankedLogProbs,
    *,
    size: int,
    forbid: tuple[int, ...],
    prune: float | None = None,
) -> Candidates:
    """The `size` most probable continuations of each sentence, without those that are pruned."""
    rank = getattr(log_probs, "best_continuations", None)  # isinstance of a protocol would take 1 % of a search
    best = None if rank is None else rank(beam.log_probs, beam.sentences, size, forbid, prune)
    if best is None:
        return best_continuations(beam, *top_tokens(log_probs, size, forbid), size, prune)
    totals, parents, tokens, token_log_probs = best
    return Candidates(parents, tokens, token_log_probs, totals)


def best_continuations(
    beam: Beam, token_log_probs: Float[Tensor, "N k"], ids: Int[Tensor, "N k"], size: int, prune: float | None
) -> Candidates:
    """The best continuations of each sentence, from the k best tokens of each of its hypotheses.

    Ties go to the earlier hypothesis, then to the lower id.
    """
    tokens_per_hypothesis = ids.shape[1]
    totals = beam.sentences.to_padded(beam.log_probs.unsqueeze(1) + token_log_probs, NEG_INF).flatten(1)  # [B K*k]
    log_probs, order = totals.sort(dim=1, descending=True, stable=True)
    log_probs, order = log_probs[:, :size], order[:, :size]
    if prune is not None:
        log_probs = log_probs.masked_fill(log_probs < log_probs[:, :1] - prune, NEG_INF)
    parents = beam.sentences.rows_at(order.div(tokens_per_hypothesis, rounding_mode="floor"))
    ranks = order % tokens_per_hypothesis
    return Candidates(parents, ids[parents, ranks], token_log_probs[parents, ranks], log_probs)


def top_tokens(
    log_probs: IndexedLogProbs, size: int, forbid: tuple[int, ...] = ()
) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """Log-probability and id of the k = min(size, V) most probable tokens of each row, best first; on a CPU ties go to the lower id.

    A token that is forbidden or whose log-probability is nan has -inf.
    """
    chunks = []
    for chunk in row_chunks(log_probs):
        values, ids = _topk(chunk, min(size + len(forbid), chunk.shape[1]))
        values, ids = by_id(values, ids)  # the stable sort below then breaks ties by id
        values, order = without_forbidden(values, ids, forbid).sort(dim=1, descending=True, stable=True)
        chunks.append((values[:, :size], ids.gather(1, order)[:, :size]))
    values, ids = (torch.cat(columns) for columns in zip(*chunks, strict=True))
    return values, ids


def _topk(values: Float[Tensor, "N V"], count: int) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """`values.topk(count)` in which ties go to the lower id. Where looking for them would wait for a GPU, `topk` chooses among them."""
    best, ids = values.topk(min(count + 1, values.shape[1]), dim=1)
    if best.shape[1] > count and can_read_back(values):
        tied = (best[:, count - 1] == best[:, count]).nonzero().squeeze(1)
        if len(tied):
            ranked, order = values[tied].sort(dim=1, descending=True, stable=True)
            best[tied, :count], ids[tied, :count] = ranked[:, :count], order[:, :count]
    return best[:, :count], ids[:, :count]


def can_read_back(values: Tensor) -> bool:
    """Whether the program may look at values at once, because no GPU computes them."""
    return values.device.type == "cpu"


def row_chunks(log_probs: IndexedLogProbs) -> Iterator[Float[Tensor, "n V"]]:
    """All rows, `ROWS_AT_ONCE` at a time if they are computed on demand."""
    if isinstance(log_probs, Tensor):
        yield log_probs
        return
    for start in range(0, len(log_probs), ROWS_AT_ONCE):
        yield log_probs[start : start + ROWS_AT_ONCE]


def by_id(values: Float[Tensor, "N m"], ids: Int[Tensor, "N m"]) -> tuple[Float[Tensor, "N m"], Int[Tensor, "N m"]]:
    """Sort the columns of each row by id."""
    ids, order = ids.sort(dim=1)
    return values.gather(1, order), ids


def without_forbidden(
    values: Float[Tensor, "N m"], ids: Int[Tensor, "N m"], forbid: tuple[int, ...]
) -> Float[Tensor, "N m"]:
    """Log-probabilities with -inf for forbidden tokens and for nan."""
    values = values.float()
    excluded = values.isnan()
    for token in forbid:
        excluded |= ids == token
    return values.masked_fill(excluded, NEG_INF)
