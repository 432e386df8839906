"""Load the text of a recipe: corpora, word links and subword models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from nmt.alignment.corpus_links import WordLinks, load_links
from nmt.data.augmentation import rare_words
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_text, load_training_corpus
from nmt.data.rules import text_rules
from nmt.recipe import Recipe
from nmt.text.subwords import Subwords


@dataclass(frozen=True)
class TrainingText:
    """The training corpus and the validation corpus, and what the recipe needs besides.

    Attributes:
        train: the training corpus.
        valid: the validation corpus.
        links: of guided alignment.
        rare_words: of the source, to be copied.
    """

    train: ParallelCorpus
    valid: ParallelCorpus
    links: WordLinks | None = None
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

        train = partial(
            Subwords.train, kind=config.kind, size=config.size, byte_fallback=config.byte_fallback, seed=recipe.seed
        )
        source, target = self.train.untagged.source, self.train.untagged.target
        tags = list(dict.fromkeys(chain.from_iterable(self.train.tags)))
        if config.joint:
            joint = train(chain(source, target), tags=tags)
            return joint, joint
        return train(source, tags=tags), train(target)
