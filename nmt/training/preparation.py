"""Prepare a run: check its folder, read its text, learn its subwords, build its model, and encode the text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

import torch

from nmt.alignment.corpus_links import TokenLinks, splits_of
from nmt.bundle.folder import SOURCE, TARGET, Bundle
from nmt.data.encoded import EncodedCorpus, encode_corpus
from nmt.evaluation.metrics import check_tokenizer
from nmt.model.interface import ModelBuilder
from nmt.recipe import Recipe
from nmt.runtime.device import Precision, check_precision, choose_precision
from nmt.runtime.progress import with_progress
from nmt.text.subwords import Subwords
from nmt.training.checkpoint import State
from nmt.training.folder import check_text, open_folder
from nmt.training.parallel import Ranks
from nmt.training.pretrained import load_pretrained
from nmt.training.text import TrainingText


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
    pretrained = None if state is not None else load_pretrained(recipe, build_model)

    def subwords() -> tuple[Subwords, Subwords]:
        if state is None:
            return text.subwords(recipe) if pretrained is None else pretrained.subwords(recipe, text)
        if not force:
            check_text(state, text, folder)
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
