"""Prepare a run: check its folder, read its text, learn its subwords, build its model, and encode the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path

import torch

from nmt.alignment.corpus_links import TokenLinks, WordLinks, load_links, splits_of
from nmt.bundle.folder import SOURCE, TARGET, Bundle
from nmt.data.augmentation import rare_words
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import EncodedCorpus, encode_corpus
from nmt.data.locators import load_text, load_training_corpus
from nmt.data.rules import text_rules
from nmt.errors import DataError
from nmt.evaluation.metrics import check_tokenizer
from nmt.model.interface import ModelBuilder
from nmt.recipe import DecodingConfig, Recipe
from nmt.runtime.device import Precision, check_precision, choose_precision
from nmt.runtime.progress import with_progress
from nmt.text.languages import base_language
from nmt.text.sentences import split_sentences
from nmt.text.subwords import Subwords
from nmt.training.folder import State, open_folder
from nmt.training.parallel import Ranks
from nmt.training.pretrained import load_pretrained

_READ = 2000
"""About how many lines are read to choose settings of decoding."""


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

    def decoding(self, config: DecodingConfig, language: str) -> DecodingConfig:
        """The settings of decoding, with those that are open as the source lines suggest; their language is given."""
        source = self.train.untagged.source
        lines = source[:: max(len(source) // _READ, 1)]
        several = [line for line in lines if len(split_sentences(line, base_language(language))) > 1]
        lettered = [line for line in lines if any(map(str.isalpha, line))]
        found = {"split_sentences": len(several) < len(lines) / 10, "keep_numbers": len(lettered) > len(lines) / 2}
        return config.model_copy(update={name: value for name, value in found.items() if getattr(config, name) is None})

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


@dataclass(frozen=True)
class Run:
    """A run that is ready to be trained.

    Attributes:
        recipe: its recipe.
        folder: its folder.
        ranks: the processes that train it.
        device: what this process computes on.
        precision: of matrix products.
        quiet: whether to show nothing on stderr.
        text: training and validation text.
        bundle: the model, with its first weights, and its subwords.
        corpus: the training text as ids.
        links: links of guided alignment.
        state: the state to go on from; None for a new run.
        start: the pretrained model that it starts from, in words.
    """

    recipe: Recipe
    folder: Path
    ranks: Ranks
    device: torch.device
    precision: Precision
    quiet: bool
    text: TrainingText
    bundle: Bundle
    corpus: EncodedCorpus
    links: TokenLinks | None
    state: State | None
    start: str | None


def prepare(
    recipe: Recipe,
    folder: Path,
    ranks: Ranks,
    build_model: ModelBuilder,
    *,
    device: torch.device,
    resume: bool,
    force: bool,
    quiet: bool,
) -> Run:
    """Prepare a new run, or one to resume, whose text must be the same unless `force` is set. Raises DataError and UsageError."""
    quiet = quiet or not ranks.is_first
    state = ranks.from_first(lambda: open_folder(recipe, folder, resume=resume, force=force))
    if recipe.evaluation.tokenize is not None and "bleu" in recipe.training.validation.metrics:
        check_tokenizer(recipe.evaluation.tokenize)
    with ranks.first_alone():  # the other ranks read its cache
        text = TrainingText.load(recipe)
    recipe = recipe.model_copy(update={"decoding": text.decoding(recipe.decoding, recipe.data.source)})
    pretrained = None if state is not None else load_pretrained(recipe, build_model)

    def subwords() -> tuple[Subwords, Subwords]:
        if state is None:
            return (pretrained and pretrained.subwords(recipe)) or text.subwords(recipe)
        changed = sorted({name for name, _ in text.fingerprints.items() ^ state.text.items()})
        if changed and not force:
            raise DataError(
                f"What {' and '.join(changed)} name has changed since the run in {folder} was trained on it: "
                "bring it back, or add --force."
            )
        return Subwords.load(folder / SOURCE), Subwords.load(folder / TARGET)

    bundle = Bundle.fresh(recipe, *ranks.from_first(subwords), build_model)
    start = None if pretrained is None else pretrained.copy_to(bundle)
    bundle.model.to(device)
    precision = choose_precision(recipe.training.precision, device)
    check_precision(precision, bundle.model, device)
    total, size = len(text.train), attrgetter("total")
    show = partial(with_progress, what="encoding", total=total, unit="pairs", quiet=quiet, size=size)
    with ranks.first_alone():
        corpus = encode_corpus(text.train, bundle.source, bundle.target, recipe.data.filters, watch=show)
    links = None
    if text.links is not None:
        links = TokenLinks(text.links, corpus, bundle.source, bundle.target, splits_of(text.train))
    return Run(recipe, folder, ranks, device, precision, quiet, text, bundle, corpus, links, state, start)
