"""Load the text of a recipe: corpora, word links and subword models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from nmt.alignment.corpus_links import WordLinks, load_links
from nmt.data.augmentation import rare_words
from nmt.data.columns import Column
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_text, load_training_corpus
from nmt.data.mixture import rows_by_weight
from nmt.data.rules import text_rules
from nmt.data.similarity import pair_weights, similarities
from nmt.recipe import Recipe
from nmt.text.subwords import Subwords

_BATCH = 10_000
"""Lines that are read at a time."""


@dataclass(frozen=True)
class TrainingText:
    """The training corpus and the validation corpus, and what the recipe needs besides.

    Attributes:
        train: the training corpus.
        valid: the validation corpus.
        links: of guided alignment.
        weights: how often an epoch shows each pair.
        rare_words: of the source, to be copied.
    """

    train: ParallelCorpus
    valid: ParallelCorpus
    links: WordLinks | None = None
    weights: npt.NDArray[np.float64] | None = None
    rare_words: Sequence[str] = ()

    @classmethod
    def load(cls, recipe: Recipe) -> TrainingText:
        """Load the text of a recipe.

        Raises:
            DataError: the text cannot be used. The message names file and line.
            UsageError: a filter does not know one of the languages, or needs a package that is not installed.
        """
        data = recipe.data
        for languages in data.directions:  # before minutes are spent on subwords
            text_rules(data.filters, languages)
        train, valid = load_training_corpus(data), load_text(data, data.valid)
        guided = recipe.training.guided_alignment
        return cls(
            train,
            valid,
            None if guided is None else load_links(guided.links, train, source=data.source),
            pair_weights(similarities(train, valid), train.ranges, data.similarities)
            if any(data.similarities)
            else None,
            rare_words(train.untagged.source) if data.copying else (),
        )

    @property
    def fingerprints(self) -> dict[str, str]:
        """A hash of each text, by the setting that names it."""
        hashes = {"data.train": self.train.fingerprint, "data.valid": self.valid.fingerprint}
        return hashes if self.links is None else {**hashes, "training.guided_alignment.links": self.links.fingerprint}

    def subwords(self, recipe: Recipe) -> tuple[Subwords, Subwords]:
        """The subword models of source and target: those that the recipe names, or new ones trained on the text of an epoch."""
        config = recipe.subwords
        if config.source_model and config.target_model:
            return Subwords.load(config.source_model), Subwords.load(config.target_model)

        def train(lines: Iterable[str], tags: Sequence[str]) -> Subwords:
            byte_fallback = config.byte_fallback
            return Subwords.train(
                lines, kind=config.kind, size=config.size, byte_fallback=byte_fallback, seed=recipe.seed, tags=tags
            )

        source, target = map(self._weighted, (self.train.untagged.source, self.train.untagged.target))
        tags = list(dict.fromkeys(chain.from_iterable(self.train.tags)))
        if config.joint:
            joint = train(chain(source, target), tags)
            return joint, joint
        return train(source, tags), train(target, ())

    def _weighted(self, lines: Column) -> Iterable[str]:
        """The lines, each as often as its weight says."""
        if self.weights is None:
            return lines
        rows = rows_by_weight(range(len(lines)), len(lines), self.weights, np.random.default_rng(0))
        batches = (rows[start : start + _BATCH].tolist() for start in range(0, len(rows), _BATCH))
        return chain.from_iterable(map(lines.take, batches))
