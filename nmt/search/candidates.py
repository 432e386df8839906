"""The most probable continuations of a beam: the candidates for the next one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt.search.beam import Beam, Candidates
from nmt.search.hypothesis import NEG_INF
from nmt.search.options import SearchOptions

ROWS_AT_ONCE = 512
"""Rows of log-probabilities [n V] that are computed at a time."""


@runtime_checkable
class IndexedLogProbs(Protocol):
    """log p(y_t | y_<t, x) [N V]: a tensor, or an object that computes the rows it is indexed with. -inf is allowed."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice) -> Float[Tensor, "n V"]: ...


def top_candidates(beam: Beam, log_probs: IndexedLogProbs, options: SearchOptions) -> Candidates:
    """The `beam_size` most probable continuations of each sentence, without those that are pruned.

    They are among the best tokens of each hypothesis. Ties go to the earlier hypothesis, then to the lower id.
    """
    token_log_probs, ids = top_tokens(log_probs, options.beam_size, options.forbid)  # [N k]
    tokens_per_hypothesis = ids.shape[1]
    totals = beam.sentences.to_padded(beam.log_probs.unsqueeze(1) + token_log_probs, NEG_INF).flatten(1)  # [B K*k]
    totals, order = totals.sort(dim=1, descending=True, stable=True)
    totals, order = totals[:, : options.beam_size], order[:, : options.beam_size]
    if options.prune is not None:
        totals = totals.masked_fill(totals < totals[:, :1] - options.prune, NEG_INF)
    parents = beam.sentences.rows_at(order.div(tokens_per_hypothesis, rounding_mode="floor"))
    ranks = order % tokens_per_hypothesis
    return Candidates(parents, ids[parents, ranks], token_log_probs[parents, ranks], totals)


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
