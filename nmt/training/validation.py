"""Validate a model on held-out text: perplexity, and BLEU and chrF of its translations if the recipe asks for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch

from nmt.bundle.folder import Bundle
from nmt.data.batching import cut, make_batch
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import encode_corpus
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.evaluation import metrics
from nmt.evaluation.metrics import MetricScore
from nmt.fast import accelerate
from nmt.recipe import Recipe, ValidationConfig
from nmt.runtime.device import Precision, autocast
from nmt.runtime.wording import counted
from nmt.training.bad_updates import Diverged
from nmt.training.best import Rank
from nmt.training.parallel import ALONE, Ranks

MAX_LOSS = 100.0
"""A loss in nats per token that shows divergence; that of uniform predictions is the logarithm of the vocabulary size."""

LEAST_BLEU = 1.0
"""BLEU from which on it orders validations. Below, a few n-grams more or less decide, not the translations."""

MAX_LENGTH = 500
"""Most tokens per side of a pair in the loss, unless training reads longer ones: attention takes quadratic time. Translation
splits longer lines."""


class Validator:
    """Validates the model of a bundle, with its current weights, on one text."""

    def __init__(
        self,
        bundle: Bundle,
        text: ParallelCorpus,
        tokenizer: str,
        *,
        precision: Precision,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        self.bundle, self.text, self.precision, self.device, self.ranks = bundle, text, precision, device, ranks
        self.tokenizer = tokenizer
        self.settings = bundle.recipe.training
        self.corpus = encode_corpus(text, bundle.source, bundle.target, None)
        self.max_length = max(MAX_LENGTH, bundle.recipe.data.filters.max_length)
        longer = np.maximum(self.corpus.source_lengths[:], self.corpus.target_lengths[:])
        self.rows = np.flatnonzero(longer <= self.max_length)
        """The pairs whose loss is computed."""
        if not len(self.rows):
            raise DataError(
                f"No pair of {text.name} has at most {self.max_length:,} tokens per side, for the perplexity of the validation: "
                "split its lines, or raise data.filters.max_length."
            )

    @property
    def metrics(self) -> list[str]:
        """What the figures of a rank are; only ranks of the same figures can be compared."""
        labels = {**metrics.VALIDATION_SCORES, "bleu": f"BLEU (tokenizer {self.tokenizer}; below {LEAST_BLEU:g} as 0)"}
        return [labels.get(name, name) for name in compared_metrics(self.settings.validation)]

    def introduction(self) -> Iterator[str]:
        """Lines for the log: the metrics, and warnings if BLEU does not suit the text or lines are too long."""
        yield f"Validation compares {', then '.join(self.metrics)}."
        if long := len(self.corpus) - len(self.rows):
            pairs = counted(long, "validation pair")
            yield f"Warning: the perplexity leaves out {pairs} of more than {self.max_length:,} tokens on a side."
        has_bleu = "bleu" in self.settings.validation.metrics
        if has_bleu and (warning := metrics.bleu_warning(self.text.target, self.tokenizer)):
            yield f"Warning: {warning}"

    def validate(self) -> dict[str, Any]:
        """Loss, perplexity, and the metrics of the recipe with their signatures. Leaves the model in evaluation mode.

        With several ranks, each computes its share of the text, and all return the same.

        Raises:
            Diverged: the loss is not a number, or above `MAX_LOSS`.
        """
        self.bundle.model.eval()
        loss = self._loss()
        if not loss < MAX_LOSS:
            raise Diverged(f"the loss of the validation text is {loss:.3g} nats per token")
        scores = self._scores()
        figures = {name: score.score for name, score in scores.items()}
        signatures = {name: score.signature for name, score in scores.items()}
        return {"loss": loss, "perplexity": math.exp(loss), **figures, **({"signatures": signatures} if scores else {})}

    def rank(self, record: Mapping[str, Any]) -> Rank:
        """The figures of `compared_metrics`, higher is better: perplexity is negated, and BLEU below `LEAST_BLEU` is 0."""
        names = compared_metrics(self.settings.validation)
        figures = {name: -record[name] if name == "perplexity" else round(record[name], 2) for name in names}
        if figures.get("bleu", LEAST_BLEU) < LEAST_BLEU:
            figures["bleu"] = 0.0
        return tuple(figures.values())

    @torch.inference_mode()
    def _loss(self) -> float:
        """Negative log-likelihood per target token, in nats, of the pairs that are not too long."""
        corpus, model = self.corpus, accelerate(self.bundle.model)
        sources, targets = corpus.source_lengths[:] + 1, corpus.target_lengths[:] + 1
        order = self.rows[np.argsort(targets[self.rows], kind="stable")]
        starts = cut(sources[order], targets[order], self.settings.batch_tokens)
        nll, tokens = 0.0, 0
        for rows in self.ranks.share(np.split(order, starts[1:-1])):
            batch = make_batch(corpus[rows]).to(self.device)
            with autocast(self.precision, self.device):
                output = model(batch)
            nll += float(output.nll)
            tokens += int(output.tokens)
        nll, total = self.ranks.sum((nll, tokens))
        return nll / total

    def _scores(self) -> dict[str, MetricScore]:
        """The metrics that compare translations, if the recipe has any."""
        return {} if not self._translation_metrics else self._scored(self._translations())

    @cached_property
    def copying(self) -> dict[str, float]:
        """The scores of the untranslated source."""
        return {name: score.score for name, score in self._scored(list(self.text.source)).items()}

    @property
    def _translation_metrics(self) -> list[str]:
        """The metrics that compare translations."""
        return [name for name in compared_metrics(self.settings.validation) if name != "perplexity"]

    def _scored(self, translations: list[str]) -> dict[str, MetricScore]:
        references = list(self.text.target)
        return {
            name: metrics.score(translations, references, name, tokenize=self.tokenizer)
            for name in self._translation_metrics
        }

    def _translations(self) -> list[str]:
        bundle = self.bundle
        decoding = bundle.recipe.decoding.model_copy(update={"beam_size": self.settings.validation.beam_size})
        translator = Translator.of(
            bundle.model,
            bundle.source,
            bundle.target,
            decoding=decoding,
            precision=self.precision,
            alignments=False,
        )
        lines = self.ranks.share(range(len(self.text)))
        own = [translation.text for translation in translator.stream(self.text.source[line] for line in lines)]
        translations = [""] * len(self.text)
        for rank, texts in enumerate(self.ranks.gather(own)):
            translations[rank :: self.ranks.count] = texts
        return translations


def compared_metrics(settings: ValidationConfig) -> list[str]:
    """The metrics that order validations, the most important first: those of the recipe, chrF after BLEU, and perplexity."""
    names = chain.from_iterable(("bleu", "chrf") if name == "bleu" else (name,) for name in settings.metrics)
    return list(dict.fromkeys([*names, "perplexity"]))


def usable_tokenizer(recipe: Recipe, previous: str | None) -> str:
    """The tokenizer for the validations of a run: that of the recipe, else the previous one, else that of the target language.

    Raises:
        UsageError: the recipe asks for BLEU, but the tokenizer is not installed.
    """
    tokenizer = metrics.choose_tokenizer(recipe.data.target, recipe.evaluation.tokenize or previous)
    if "bleu" in recipe.training.validation.metrics:
        metrics.check_tokenizer(tokenizer)
    return tokenizer
