"""The training corpus of one epoch, divided into the batches of each update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nmt.data.batching import plan_batches, plan_sentence_batches
from nmt.data.encoded import EncodedCorpus
from nmt.data.subwords import Subwords
from nmt.recipe import Recipe


class EncodedPairs(Protocol):
    """Sentence pairs as ids: an `EncodedCorpus` or a `SampledCorpus`."""

    source_lengths: npt.NDArray[np.int32]
    target_lengths: npt.NDArray[np.int32]

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Sequence[int]) -> list[tuple[list[int], list[int]]]: ...


class SampledCorpus:
    """A corpus in which the segmentation of every line is sampled: subword regularisation (Kudo 2018).

    All lines are segmented before the epoch, so that batches are planned with the actual lengths.
    """

    def __init__(self, corpus: EncodedCorpus, source: Subwords, target: Subwords, *, alpha: float, seed: int) -> None:
        texts = corpus.text(range(len(corpus)))
        self.sources = source.sample_batch([text for text, _ in texts], alpha, seed=seed)
        self.targets = target.sample_batch([text for _, text in texts], alpha, seed=seed + 1)
        self.source_lengths = np.fromiter(map(len, self.sources), np.int32, len(texts))
        self.target_lengths = np.fromiter(map(len, self.targets), np.int32, len(texts))

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, rows: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        return [(self.sources[row].tolist(), self.targets[row].tolist()) for row in rows]


@dataclass(frozen=True)
class Epoch:
    """The pairs of an epoch and how they are trained on.

    Attributes:
        corpus: the pairs.
        groups: for each update its batches, and for each batch its rows of the corpus.
    """

    corpus: EncodedPairs
    groups: list[list[list[int]]]


def plan_epoch(recipe: Recipe, corpus: EncodedCorpus, source: Subwords, target: Subwords, number: int) -> Epoch:
    """Plan an epoch, counted from 0. It depends only on the arguments, so a resumed run plans the same one."""
    pairs = _pairs_of_epoch(recipe, corpus, source, target, number)
    batches, size = _batches(recipe, pairs, number), recipe.training.accumulate
    return Epoch(pairs, [batches[start : start + size] for start in range(0, len(batches), size)])


def _batches(recipe: Recipe, pairs: EncodedPairs, number: int) -> list[list[int]]:
    """The rows of every batch of an epoch."""
    training = recipe.training
    lengths = (pairs.source_lengths, pairs.target_lengths)
    epoch = 0 if training.shuffle == "once" else number
    if training.batch_sentences is None:
        plan = plan_batches(*lengths, batch_tokens=training.batch_tokens, seed=recipe.seed, epoch=epoch)
    else:
        plan = plan_sentence_batches(
            *lengths,
            batch_sentences=training.batch_sentences,
            sort_within=training.sort_within,
            seed=recipe.seed,
            epoch=epoch,
        )
    return [rows.tolist() for rows in plan]


def _pairs_of_epoch(
    recipe: Recipe, corpus: EncodedCorpus, source: Subwords, target: Subwords, number: int
) -> EncodedPairs:
    """The corpus itself, or with subword regularisation a segmentation that seed and epoch determine."""
    alpha = recipe.subwords.sampling
    if alpha is None:
        return corpus
    return SampledCorpus(corpus, source, target, alpha=alpha, seed=2 * (1_000_003 * recipe.seed + number))
