"""Make batches of encoded pairs: padding, length buckets, a token budget, and an order that can be resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.data.subwords import BOS, EOS, PAD


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

    @property
    def tokens(self) -> int:
        """Number of target tokens, end marks included, without padding. The loss is averaged over them."""
        return int(self.target_mask.sum())

    def to(self, device: torch.device | str) -> Batch:
        """The batch with its tensors on a device."""
        source, target_in, target_out = (ids.to(device) for ids in (self.source, self.target_in, self.target_out))
        links = None if self.links is None else self.links.to(device)
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
    width = max(map(len, sequences), default=0)
    return torch.tensor([[*ids, *[PAD] * (width - len(ids))] for ids in sequences], dtype=torch.long).view(
        len(sequences), width
    )


def plan_batches(
    source_lengths: np.ndarray, target_lengths: np.ndarray, *, batch_tokens: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """The rows of every batch of an epoch, in training order. It depends only on the arguments, so training can resume.

    1. Shuffle the rows.
    2. Sort them by the length of the longer side, then by the difference of the two lengths: ascending and descending in
       turn, so that a batch that spans two lengths still holds similar rows.
    3. Cut them into batches of at most `batch_tokens` target tokens and twice as many source tokens, padding and end marks
       included.
    4. Shuffle the batches.
    """
    generator = np.random.default_rng((seed, epoch))
    shuffled = generator.permutation(len(target_lengths))
    longer = np.maximum(source_lengths, target_lengths)[shuffled].astype(np.int64)
    surplus = source_lengths[shuffled].astype(np.int64) - target_lengths[shuffled]
    order = shuffled[np.lexsort((np.where(longer % 2, surplus, -surplus), longer))]
    batches = cut(order, source_lengths + 1, target_lengths + 1, batch_tokens)
    return [batches[i] for i in generator.permutation(len(batches))]


def plan_sentence_batches(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    *,
    batch_sentences: int,
    sort_within: int | None,
    seed: int,
    epoch: int,
) -> list[np.ndarray]:
    """The rows of every batch of an epoch in batches of so many pairs, in training order. It depends only on the arguments.

    1. Shuffle the rows.
    2. Sort them by the length of the longer side: within every `sort_within` batches (Bahdanau et al. 2015, B.2), or all of them.
    3. Cut them into batches. Shuffle the batches if all rows were sorted.
    """
    generator = np.random.default_rng((seed, epoch))
    order = generator.permutation(len(target_lengths))
    longer = np.maximum(source_lengths, target_lengths)
    span = batch_sentences * sort_within if sort_within else max(len(order), 1)
    batches = []
    for start in range(0, len(order), span):
        rows = order[start : start + span]
        rows = rows[np.argsort(longer[rows], kind="stable")]
        batches += [rows[first : first + batch_sentences] for first in range(0, len(rows), batch_sentences)]
    return batches if sort_within else [batches[i] for i in generator.permutation(len(batches))]


def cut(
    order: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int
) -> list[np.ndarray]:
    """Cut rows, in the given order, into batches within the token budget. A row beyond the budget is a batch of its own."""
    batches, start, widest, longest = [], 0, 0, 0
    for end, row in enumerate(order):
        longest_with, widest_with = max(longest, source_lengths[row]), max(widest, target_lengths[row])
        size = end - start + 1
        if size > 1 and max(size * widest_with, size * longest_with / 2) > batch_tokens:
            batches.append(order[start:end])
            start, longest_with, widest_with = end, source_lengths[row], target_lengths[row]
        longest, widest = longest_with, widest_with
    if start < len(order):
        batches.append(order[start:])
    return batches
