"""The training corpus of one epoch, divided into the batches of each update, which a thread builds ahead of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TypeVar

import numpy as np

from nmt.data.augmentation import Part, add_copied_words, join_pairs
from nmt.data.batching import Plan, Rows, plan_batches, plan_sentence_batches
from nmt.data.encoded import EncodedCorpus, EncodedPairs
from nmt.data.mixture import rows_of_epoch
from nmt.data.sampled import SampledCorpus, Watch
from nmt.recipe import Recipe
from nmt.runtime.cores import usable_cores
from nmt.text.subwords import Subwords
from nmt.training.parallel import ranks_on_this_machine

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")
Group = list[Rows]
"""The rows of each batch of an update."""
DEPTH = 3
"""Most results that wait for the loop."""


@dataclass(frozen=True)
class Epoch:
    """The pairs of an epoch and how they are trained on.

    Attributes:
        corpus: the pairs.
        plan: the rows of each batch.
        accumulate: number of consecutive batches of an update; the last update of the epoch may have fewer.
    """

    corpus: EncodedPairs
    plan: Plan
    accumulate: int

    @cached_property
    def updates(self) -> int:
        """Number of updates."""
        return ceil(len(self.plan) / self.accumulate)

    def groups(self, first: int = 0) -> Iterator[Group]:
        """The batches of each update, but for the `first` ones."""
        for start in range(first * self.accumulate, len(self.plan), self.accumulate):
            yield self.plan[start : start + self.accumulate]


def plan_epoch(
    recipe: Recipe,
    corpus: EncodedCorpus,
    source: Subwords,
    target: Subwords,
    number: int,
    *,
    words: Sequence[str] = (),
    watch: Watch = iter,
) -> Epoch:
    """Plan an epoch, counted from 0. It depends only on the arguments, so a resumed run plans the same one.

    Args:
        recipe: says what an epoch shows, and in which batches.
        corpus: the pairs.
        source: the subwords of the source.
        target: the subwords of the target.
        number: number of the epoch.
        words: rare words, which are copied.
        watch: shows the progress of subword sampling.
    """
    data, training, seed = recipe.data, recipe.training, recipe.seed
    pairs: EncodedPairs = corpus
    if recipe.subwords.sampling is not None:
        alpha, processes = recipe.subwords.sampling, max(usable_cores() // ranks_on_this_machine(), 1)
        drawn = 2 * (1_000_003 * seed + number)
        pairs = SampledCorpus(corpus, source, target, alpha=alpha, seed=drawn, processes=processes, watch=watch)
    rows = None
    if not isinstance(data.train, str):
        rows = rows_of_epoch(data, corpus.parts, seed=seed, epoch=number)
    if data.copying or data.concatenation:
        shown = np.arange(len(corpus), dtype=np.int32) if rows is None else rows
        parts = [
            Part(shown[(shown >= span.start) & (shown < span.stop)], len(source.encode(" ".join(data.tags(text)))))
            for span, text in zip(corpus.parts, data.corpora, strict=True)
        ]
        drawing = {"most": data.filters.max_length, "seed": seed, "epoch": number}
        if data.copying:
            pairs, parts = add_copied_words(pairs, parts, words, (source, target), share=data.copying, **drawing)
        if data.concatenation:
            pairs, parts = join_pairs(pairs, parts, (source, target), share=data.concatenation, **drawing)
        rows = np.concatenate([part.rows for part in parts])
    lengths = (pairs.source_lengths, pairs.target_lengths)
    shuffled = 0 if training.shuffle == "once" else number
    if training.batch_sentences is None:
        tokens = training.batch_tokens
        plan = plan_batches(*lengths, batch_tokens=tokens, seed=seed, epoch=shuffled, rows=rows)
    else:
        plan = plan_sentence_batches(
            *lengths,
            batch_sentences=training.batch_sentences,
            sort_within=training.sort_within,
            seed=seed,
            epoch=shuffled,
            rows=rows,
        )
    return Epoch(pairs, plan, training.accumulate)


def ahead(compute: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]) -> Generator[ResultT]:
    """Yield the result of each task, in order. An exception is raised where its result is due.

    The thread ends with the iterator: close it where the loop may end early.
    """
    pending: deque[Future[ResultT]] = deque()
    with ThreadPoolExecutor(1, "nmt-ahead") as pool:
        try:
            for task in tasks:
                pending.append(pool.submit(compute, task))
                if len(pending) > DEPTH:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
