"""Make batches of encoded pairs: padding, length buckets, a token budget, and an order that can be resumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import overload

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.data.arrays import collect_array
from nmt.text.subwords import BOS, EOS, PAD

SPAN = 1_000_000
"""Rows of a larger corpus that are sorted by length together, to bound the memory."""
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """Padded pairs. Every source ends with EOS; `target_in` starts with BOS, `target_out` ends with EOS."""

    source: Int[Tensor, "B S"]
    source_mask: Bool[Tensor, "B S"]
    target_in: Int[Tensor, "B T"]
    target_out: Int[Tensor, "B T"]
    target_mask: Bool[Tensor, "B T"]
    rows: tuple[int, ...] = ()
    """Rows of the pairs in the corpus."""
    links: Bool[Tensor, "B T S"] | None = None
    """Token links of guided alignment: [b, t, s] is True where target token t translates source token s. End marks and padding
    have no links."""

    def pinned(self) -> Batch:
        """The batch in memory that a GPU copies from by itself, while the CPU goes on."""
        tensors = {name: getattr(self, name) for name in ("source", "target_in", "target_out", "links")}
        return replace(self, **{name: tensor.pin_memory() for name, tensor in tensors.items() if tensor is not None})

    def to(self, device: torch.device | str) -> Batch:
        """The batch with its tensors on a device. The masks are computed there."""
        move = partial(Tensor.to, device=device, non_blocking=True)
        source, target_in, target_out = map(move, (self.source, self.target_in, self.target_out))
        links = None if self.links is None else move(self.links)
        return Batch(source, source != PAD, target_in, target_out, target_out != PAD, self.rows, links)


def make_batch(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    rows: Sequence[int] = (),
    links: Bool[Tensor, "B T S"] | None = None,
) -> Batch:
    """Pad encoded pairs (ids without special marks) into a Batch."""
    source = pad([[*source, EOS] for source, _ in pairs])
    target_in = pad([[BOS, *target] for _, target in pairs])
    target_out = pad([[*target, EOS] for _, target in pairs])
    return Batch(source, source != PAD, target_in, target_out, target_out != PAD, tuple(rows), links)


def pad(sequences: Sequence[Sequence[int]]) -> Int[Tensor, "B S"]:
    """Put sequences of ids into one tensor, padded with PAD on the right."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    padded = np.full((len(lengths), lengths.max(initial=0)), PAD)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.fromiter(
        chain.from_iterable(sequences), np.int64, int(lengths.sum())
    )
    return torch.from_numpy(padded)


# --- the plan of an epoch ---------------------------------------------------------------------------------------


class Plan(Sequence[Rows]):
    """The rows of every batch of an epoch, in training order.

    Args:
        rows: the rows of all batches.
        starts: where each batch begins among them, and the end of the last one.
        order: the batches in training order.
    """

    def __init__(self, rows: Rows, starts: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> None:
        self._rows, self._starts, self._order = rows, starts, order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Rows: ...
    @overload
    def __getitem__(self, index: slice) -> list[Rows]: ...
    def __getitem__(self, index: int | slice) -> Rows | list[Rows]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self._order))[index]]
        batch = self._order[index]
        return self._rows[self._starts[batch] : self._starts[batch + 1]]


def plan_batches(
    source_lengths: npt.NDArray[np.integer],
    target_lengths: npt.NDArray[np.integer],
    *,
    batch_tokens: int,
    seed: int,
    epoch: int,
    rows: Rows | None = None,
) -> Plan:
    """The rows of every batch of an epoch, in training order. It depends only on the arguments, so training can resume.

    1. Shuffle the rows.
    2. Sort every `SPAN` of them by the length of the longer side, then by the difference of the two lengths: ascending and
       descending in turn, so that a batch that spans two lengths still holds similar rows.
    3. Cut every span into batches of at most `batch_tokens` target tokens and twice as many source tokens, padding and end
       marks included.
    4. Shuffle the batches.

    Args:
        source_lengths: number of source tokens of each row of the corpus, without end mark.
        target_lengths: number of target tokens of each row.
        batch_tokens: most target tokens of a batch.
        seed: of the generator, with the epoch.
        epoch: number of the epoch.
        rows: the rows of the epoch; all rows if None. A row may occur more than once.
    """
    generator = np.random.default_rng((seed, epoch))
    order = _shuffled(generator, len(target_lengths), rows)
    starts = [np.zeros(1, np.int64)]
    for span in _spans(len(order), SPAN):
        span_rows = order[span]
        sources, targets = source_lengths[span_rows], target_lengths[span_rows]
        longer, surplus = np.maximum(sources, targets), sources - targets
        by_length = np.lexsort((np.where(longer % 2, surplus, -surplus), longer))
        order[span] = span_rows[by_length]
        starts.append(span.start + cut(sources[by_length] + 1, targets[by_length] + 1, batch_tokens)[1:])
    batches = np.concatenate(starts)
    return Plan(order, batches, generator.permutation(len(batches) - 1))


def plan_sentence_batches(
    source_lengths: npt.NDArray[np.integer],
    target_lengths: npt.NDArray[np.integer],
    *,
    batch_sentences: int,
    sort_within: int | None,
    seed: int,
    epoch: int,
    rows: Rows | None = None,
) -> Plan:
    """The rows of every batch of an epoch in batches of so many pairs, in training order. It depends only on the arguments.

    1. Shuffle the rows.
    2. Sort them by the length of the longer side: within every `sort_within` batches (Bahdanau et al. 2015, B.2), or all of
       them (of more than `SPAN`, those of every span).
    3. Cut them into batches. Shuffle the batches if all rows were sorted.

    The arguments are those of `plan_batches`.
    """
    generator = np.random.default_rng((seed, epoch))
    order = _shuffled(generator, len(target_lengths), rows)
    for span in _spans(len(order), batch_sentences * (sort_within or -(-SPAN // batch_sentences))):
        span_rows = order[span]
        longer = np.maximum(source_lengths[span_rows], target_lengths[span_rows])
        order[span] = span_rows[np.argsort(longer, kind="stable")]
    starts = np.append(np.arange(0, len(order), batch_sentences), len(order))
    count = len(starts) - 1
    return Plan(order, starts, np.arange(count) if sort_within else generator.permutation(count))


def _shuffled(generator: np.random.Generator, count: int, rows: Rows | None) -> Rows:
    """The rows in random order."""
    count = count if rows is None else len(rows)
    blocks = (np.arange(span.start, span.stop) if rows is None else rows[span] for span in _spans(count, SPAN))
    order = collect_array(blocks, np.int32)
    generator.shuffle(order)
    return order


def _spans(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def cut(source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int) -> npt.NDArray[np.int64]:
    """Where to cut rows of these lengths into batches within the token budget: the begin of each batch, and the end of the last.

    A row beyond the budget is a batch of its own.
    """
    starts, count, window = [0], len(target_lengths), 64
    while (start := starts[-1]) < count:
        sources, targets = (
            np.maximum.accumulate(lengths[start : start + window]) for lengths in (source_lengths, target_lengths)
        )
        # Size of the batch of the first 1, 2, ... rows; it never falls, so the batch ends where it exceeds the budget.
        sizes = np.arange(1, len(targets) + 1) * np.maximum(targets, sources / 2)
        size = int(np.searchsorted(sizes, batch_tokens, side="right"))
        if size == window:  # more rows may fit
            window *= 2
            continue
        starts.append(start + max(size, 1))
        window = 2 * max(size, 32)
    return np.array(starts, np.int64)
