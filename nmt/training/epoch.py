"""The training corpus of one epoch, divided into the batches of each update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import overload

from nmt.data.batching import Plan, Rows, plan_batches, plan_sentence_batches
from nmt.data.encoded import EncodedCorpus, EncodedPairs
from nmt.data.mixture import rows_of_epoch
from nmt.data.sampled import SampledCorpus, Watch
from nmt.recipe import Recipe
from nmt.runtime.cores import usable_cores
from nmt.text.subwords import Subwords
from nmt.training.launch import ranks_on_this_machine

Group = list[Rows]
"""The rows of each batch of an update."""


class Groups(Sequence[Group]):
    """The batches of each update: `size` consecutive batches of the plan, the last time perhaps fewer."""

    def __init__(self, plan: Plan, size: int) -> None:
        self._plan, self._size = plan, size

    def __len__(self) -> int:
        return ceil(len(self._plan) / self._size)

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> list[Group]: ...
    def __getitem__(self, index: int | slice) -> Group | list[Group]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        start = range(len(self))[index] * self._size
        return self._plan[start : start + self._size]


@dataclass(frozen=True)
class Epoch:
    """The pairs of an epoch and how they are trained on.

    Attributes:
        corpus: the pairs.
        groups: for each update its batches, and for each batch its rows of the corpus.
    """

    corpus: EncodedPairs
    groups: Groups


def plan_epoch(
    recipe: Recipe, corpus: EncodedCorpus, source: Subwords, target: Subwords, number: int, watch: Watch = iter
) -> Epoch:
    """Plan an epoch, counted from 0. It depends only on the arguments, so a resumed run plans the same one.

    `watch` shows the progress of subword sampling.
    """
    pairs = _pairs_of_epoch(recipe, corpus, source, target, number, watch)
    rows = None
    if not isinstance(recipe.data.train, str):
        rows = rows_of_epoch(recipe.data, corpus.parts, seed=recipe.seed, epoch=number)
    return Epoch(pairs, Groups(_plan(recipe, pairs, number, rows), recipe.training.accumulate))


def _plan(recipe: Recipe, pairs: EncodedPairs, number: int, rows: Rows | None) -> Plan:
    """The rows of every batch of an epoch, which has these rows, or all if None."""
    training = recipe.training
    lengths = (pairs.source_lengths, pairs.target_lengths)
    epoch = 0 if training.shuffle == "once" else number
    if training.batch_sentences is None:
        return plan_batches(*lengths, batch_tokens=training.batch_tokens, seed=recipe.seed, epoch=epoch, rows=rows)
    return plan_sentence_batches(
        *lengths,
        batch_sentences=training.batch_sentences,
        sort_within=training.sort_within,
        seed=recipe.seed,
        epoch=epoch,
        rows=rows,
    )


def _pairs_of_epoch(
    recipe: Recipe, corpus: EncodedCorpus, source: Subwords, target: Subwords, number: int, watch: Watch
) -> EncodedPairs:
    """The corpus itself, or with subword regularisation a segmentation that seed and epoch determine."""
    alpha = recipe.subwords.sampling
    if alpha is None:
        return corpus
    seed, processes = 2 * (1_000_003 * recipe.seed + number), max(usable_cores() // ranks_on_this_machine(), 1)
    return SampledCorpus(corpus, source, target, alpha=alpha, seed=seed, processes=processes, watch=watch)
