"""The most probable tokens of each row of log-probabilities."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt.search.hypothesis import NEG_INF

ROWS_AT_ONCE = 512
"""Rows of log-probabilities [n V] that are computed at a time."""


@runtime_checkable
class IndexedLogProbs(Protocol):
    """log p(y_t | y_<t, x) [N V]: a tensor, or an object that computes the rows it is indexed with. -inf is allowed."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice | Tensor) -> Float[Tensor, "n V"]: ...


@dataclass(frozen=True)
class FollowingLogProbs:
    """Log-probabilities as they are, but -inf for the tokens that may not follow."""

    log_probs: IndexedLogProbs
    following: Sequence[Collection[int]]
    """The tokens that may follow each hypothesis; all if there are none."""

    def __len__(self) -> int:
        return len(self.log_probs)

    def __getitem__(self, rows: slice | Tensor) -> Float[Tensor, "n V"]:
        table, following = self.log_probs[rows], [self.following[row] for row in torch.arange(len(self))[rows].tolist()]
        if isinstance(self.log_probs, Tensor):
            table = table.clone()  # others compute rows anew
        row_ids, tokens = rows_and_tokens(following)
        values = table[row_ids, tokens]
        table[row_ids] = NEG_INF
        table[row_ids, tokens] = values
        return table


def rows_and_tokens(following: Sequence[Collection[int]]) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"]]:
    """The row of each token that may follow, and the tokens, those of the first row first."""
    sizes = torch.tensor([len(tokens) for tokens in following])
    rows = torch.arange(len(following)).repeat_interleave(sizes)
    return rows, torch.tensor(list(chain(*following)), dtype=torch.long)


def top_tokens(
    log_probs: IndexedLogProbs, size: int, forbid: tuple[int, ...] = (), *, breaks_ties: bool = True
) -> tuple[Float[Tensor, "N k"], Int[Tensor, "N k"]]:
    """Log-probability and id of the k = min(size, V) most probable tokens of each row, best first; ties go to the lower id.

    A token that is forbidden or whose log-probability is nan has -inf. Looking for ties beyond the last token would wait for a GPU:
    without `breaks_ties`, any of those may be chosen.
    """
    chunks = []
    for chunk in row_chunks(log_probs):
        count = min(size + len(forbid), chunk.shape[1])
        values, ids = chunk.topk(min(count + 1, chunk.shape[1]), dim=1)
        if breaks_ties and values.shape[1] > count:
            last = values[:, count - 1]
            tied = ((last == values[:, count]) & (last > NEG_INF)).nonzero().squeeze(1)
            if len(tied):
                ranked, order = chunk[tied].sort(dim=1, descending=True, stable=True)
                values[tied, :count], ids[tied, :count] = ranked[:, :count], order[:, :count]
        ids, order = ids[:, :count].sort(dim=1)  # the stable sort below then breaks ties by id
        values = without_forbidden(values.gather(1, order), ids, forbid)
        values, order = values.sort(dim=1, descending=True, stable=True)
        chunks.append((values[:, :size], ids.gather(1, order)[:, :size]))
    values, ids = (torch.cat(columns) for columns in zip(*chunks, strict=True))
    return values, ids


def row_chunks(log_probs: IndexedLogProbs) -> Iterator[Float[Tensor, "n V"]]:
    """All rows, `ROWS_AT_ONCE` at a time if they are computed on demand."""
    if isinstance(log_probs, Tensor):
        yield log_probs
        return
    for start in range(0, len(log_probs), ROWS_AT_ONCE):
        yield log_probs[start : start + ROWS_AT_ONCE]


def without_forbidden(
    values: Float[Tensor, "*shape"], ids: Int[Tensor, "*shape"], forbid: tuple[int, ...]
) -> Float[Tensor, "*shape"]:
    """Log-probabilities with -inf for forbidden tokens and for nan."""
    values = values.float()
    excluded = values.isnan()
    for token in forbid:
        excluded |= ids == token
    return values.masked_fill(excluded, NEG_INF)
