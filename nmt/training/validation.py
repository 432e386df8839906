"""What a model is worth on held-out text: its perplexity, and the BLEU of its real decoding where that decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nmt.bundle import Bundle
from nmt.data.batching import cut, make_batch
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import encode_corpus
from nmt.decoding.translator import Translator
from nmt.device import Precision, autocast
from nmt.evaluation import metrics
from nmt.training.guard import Diverged
from nmt.training.loss import loss_of_batch

HOPELESS = 100.0
"""A loss, in nats per token, that no model has which could still learn: knowing nothing costs the logarithm of the vocabulary."""


class Validator:
    """Judges the model of a bundle, as its weights are at the time, on one text."""

    def __init__(self, bundle: Bundle, text: ParallelCorpus, *, precision: Precision, device: torch.device) -> None:
        self.bundle, self.text, self.precision, self.device = bundle, text, precision, device
        self.settings = bundle.recipe.training
        self.corpus = encode_corpus(text, bundle.source, bundle.target, None)

    def judge(self) -> dict[str, Any]:
        """Loss and perplexity, and BLEU if that is the metric. The model is left in evaluation mode.

        Raises:
            Diverged: the loss is not a number, or one that only weights give that have gone wrong.
        """
        self.bundle.model.eval()
        loss = self._loss()
        if not loss < HOPELESS:
            raise Diverged(f"the loss of the validation text is {loss:.3g} nats per token")
        record = {"loss": loss, "perplexity": math.exp(loss)}
        if self.settings.validation.metric == "bleu":
            record["bleu"] = self._bleu()
        return record

    def figure(self, record: Mapping[str, Any]) -> float:
        """What validations are compared by; higher is better."""
        return float(record["bleu"] if self.settings.validation.metric == "bleu" else -record["perplexity"])

    @torch.inference_mode()
    def _loss(self) -> float:
        """Negative log-likelihood a target piece, in nats."""
        corpus, model = self.corpus, self.bundle.model
        order = np.argsort(corpus.target_lengths, kind="stable")
        nll, words = 0.0, 0
        for rows in cut(order, corpus.source_lengths + 1, corpus.target_lengths + 1, self.settings.batch_tokens):
            batch = make_batch(corpus[rows.tolist()]).to(self.device)
            with autocast(self.precision, self.device):
                readouts, _ = model(batch.source, batch.source_mask, batch.target_in)
                nll += float(loss_of_batch(readouts, model.output, batch, smoothing=0.0)[1])
            words += batch.tokens
        return nll / words

    def _bleu(self) -> float:
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
        translations = [found.text for found in translator.translate(self.text.source)]
        return metrics.bleu(translations, list(self.text.target))
