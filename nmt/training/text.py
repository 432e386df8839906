"""From a recipe's locators to encoded text: the corpora, the subword models, the ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nmt.alignment.corpus_links import WordLinks, load_links
from nmt.data.corpus import ParallelCorpus, load_corpus
from nmt.data.encoded import EncodedCorpus
from nmt.data.subwords import Subwords
from nmt.recipe import Recipe


@dataclass(frozen=True)
class TrainingText:
    """The corpora that a run trains on and is validated with, and the word links that guide its attention, if any."""

    train: ParallelCorpus
    valid: ParallelCorpus
    links: WordLinks | None = None

    @classmethod
    def load(cls, recipe: Recipe) -> TrainingText:
        """Read all of it. Raises DataError naming file and line of what cannot be used."""
        data = recipe.data
        train, valid = (load_corpus(text, source=data.source, target=data.target) for text in (data.train, data.valid))
        guided = recipe.training.guided_alignment
        return cls(train, valid, None if guided is None else load_links(guided.links, train, source=data.source))

    @property
    def fingerprints(self) -> dict[str, str]:
        """A hash of each text, under the setting that names it."""
        hashes = {"data.train": self.train.fingerprint, "data.valid": self.valid.fingerprint}
        return hashes if self.links is None else {**hashes, "training.guided_alignment.links": self.links.fingerprint}

    def subwords(self, recipe: Recipe) -> tuple[Subwords, Subwords]:
        """The subword models of source and target: the recipe's files, or newly trained on the training text."""
        chosen = recipe.subwords
        if chosen.source_model and chosen.target_model:
            return Subwords.load(chosen.source_model), Subwords.load(chosen.target_model)

        def trained_on(lines: Iterable[str]) -> Subwords:
            byte_fallback = chosen.byte_fallback
            return Subwords.train(
                lines, kind=chosen.kind, size=chosen.size, byte_fallback=byte_fallback, seed=recipe.seed
            )

        if chosen.joint:
            joint = trained_on(chain(self.train.source, self.train.target))
            return joint, joint
        return trained_on(self.train.source), trained_on(self.train.target)


class Encoded(Protocol):
    """Pairs of ids with their lengths: an `EncodedCorpus`, or one whose segmentation was drawn anew."""

    source_lengths: npt.NDArray[np.int32]
    target_lengths: npt.NDArray[np.int32]

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Sequence[int]) -> list[tuple[list[int], list[int]]]: ...


class Sampled:
    """A corpus as one epoch sees it under subword regularisation: every line segmented at random (Kudo 2018).

    All lines are segmented before the epoch begins, so that its batches are planned with the lengths they really have.
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


def corpus_of_epoch(recipe: Recipe, corpus: EncodedCorpus, source: Subwords, target: Subwords, epoch: int) -> Encoded:
    """The training corpus as an epoch sees it: the same every time, or sampled, by a seed that epoch and recipe decide."""
    alpha = recipe.subwords.sampling
    if alpha is None:
        return corpus
    return Sampled(corpus, source, target, alpha=alpha, seed=2 * (1_000_003 * recipe.seed + epoch))
