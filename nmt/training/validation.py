"""What a model is worth on held-out text: its perplexity, and the BLEU and chrF of its real decoding where they decide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from nmt.data.batching import cut, make_batch
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import encode_corpus
from nmt.decoding.translator import Translator
from nmt.device import Precision, autocast
from nmt.evaluation import metrics
from nmt.evaluation.metrics import Score
from nmt.fast import accelerate
from nmt.model_folder import Bundle
from nmt.recipe import Recipe
from nmt.training.checkpoint import Rank
from nmt.training.guard import Diverged

HOPELESS = 100.0
"""A loss, in nats per token, that no model has which could still learn: knowing nothing costs the logarithm of the vocabulary."""


class Validator:
    """Judges the model of a bundle, as its weights are at the time, on one text."""

    def __init__(
        self, bundle: Bundle, text: ParallelCorpus, tokenizer: str, *, precision: Precision, device: torch.device
    ) -> None:
        self.bundle, self.text, self.precision, self.device = bundle, text, precision, device
        self.tokenizer = tokenizer
        self.settings = bundle.recipe.training
        self.corpus = encode_corpus(text, bundle.source, bundle.target, None)

    def introduction(self) -> Iterator[str]:
        """What a person should know of how the model will be judged."""
        names = dict.fromkeys([*self.settings.validation.metrics, "perplexity"])
        shown = {**metrics.VALIDATION_SCORES, "bleu": f"BLEU (tokeniser {self.tokenizer})"}
        yield f"Validation compares {', then '.join(shown.get(name, name) for name in names)}."
        if "bleu" in names and (warning := metrics.tokenizer_warning(self.text.target, self.tokenizer)):
            yield f"Warning: {warning}"

    def judge(self) -> dict[str, Any]:
        """Loss and perplexity, and the metrics of the recipe with their signatures. The model is left in evaluation mode.

        Raises:
            Diverged: the loss is not a number, or one that only weights give that have gone wrong.
        """
        self.bundle.model.eval()
        loss = self._loss()
        if not loss < HOPELESS:
            raise Diverged(f"the loss of the validation text is {loss:.3g} nats per token")
        scores = self._scores()
        figures = {name: score.score for name, score in scores.items()}
        signatures = {name: score.signature for name, score in scores.items()}
        return {"loss": loss, "perplexity": math.exp(loss), **figures, **({"signatures": signatures} if scores else {})}

    def rank(self, record: Mapping[str, Any]) -> Rank:
        """What validations are compared by: the recipe's metrics and at last perplexity, each so that higher is better."""
        names = [*self.settings.validation.metrics, "perplexity"]
        return tuple(-record[name] if name == "perplexity" else round(record[name], 2) for name in names)

    @torch.inference_mode()
    def _loss(self) -> float:
        """Negative log-likelihood a target piece, in nats."""
        corpus, model = self.corpus, accelerate(self.bundle.model)
        order = np.argsort(corpus.target_lengths, kind="stable")
        nll, words = 0.0, 0
        for rows in cut(order, corpus.source_lengths + 1, corpus.target_lengths + 1, self.settings.batch_tokens):
            batch = make_batch(corpus[rows.tolist()]).to(self.device)
            with autocast(self.precision, self.device):
                output = model(batch)
            nll += float(output.nll)
            words += output.tokens
        return nll / words

    def _scores(self) -> dict[str, Score]:
        """The metrics of the recipe that need translations."""
        names = [name for name in self.settings.validation.metrics if name != "perplexity"]
        if not names:
            return {}
        translations, references = self._translations(), list(self.text.target)
        return {name: metrics.score(translations, references, name, tokenize=self.tokenizer) for name in names}

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
        return [translation.text for translation in translator.translate(self.text.source)]


def usable_tokenizer(recipe: Recipe, earlier: str | None) -> str:
    """The tokeniser of a run's validations: that of its recipe, else the one so far, else the target language's.

    Raises:
        UsageError: it cannot be used here, although the recipe asks for BLEU.
    """
    tokenizer = metrics.choose_tokenizer(recipe.data.target, recipe.evaluation.tokenize or earlier)
    if "bleu" in recipe.training.validation.metrics:
        metrics.check_tokenizer(tokenizer)
    return tokenizer
