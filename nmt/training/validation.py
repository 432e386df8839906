"""Validate a model on held-out text: perplexity, and BLEU and chrF of its translations if the recipe asks for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nmt.bundle.folder import Bundle
from nmt.data.batching import cut, make_batch
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import EncodedCorpus, encode_corpus
from nmt.decoding.packed import PackedModels
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.evaluation import metrics
from nmt.evaluation.metrics import MetricScore
from nmt.fast import accelerate
from nmt.recipe import ValidationConfig, change_decoding
from nmt.runtime.device import Precision, autocast
from nmt.runtime.wording import counted
from nmt.training.best import Rank
from nmt.training.losses import Diverged
from nmt.training.parallel import ALONE, Ranks
from nmt.training.search_choice import Outcome

MAX_LOSS = 100.0
"""A loss in nats per token that shows divergence; that of uniform predictions is the logarithm of the vocabulary size."""

MAX_SEARCH_LINES = 1000
"""Most validation lines that are translated for each way to search. Drawing samples of a line takes a tenth of a second and more."""

LEAST_BLEU = 1.0
"""BLEU from which on it orders validations. Below, a few n-grams more or less decide, not the translations."""

MAX_LENGTH = 500
"""Most tokens per side of a pair in the loss, unless training reads longer ones: attention takes quadratic time. Translation
splits longer lines."""


@dataclass(frozen=True)
class _Text:
    """Held-out text of one pair of languages.

    Attributes:
        name: its languages, as in `es-gn`.
        text: the pairs.
        ids: the pairs as ids.
        rows: the pairs whose loss is computed.
        tokenizer: sacreBLEU's, for BLEU.
    """

    name: str
    text: ParallelCorpus
    ids: EncodedCorpus
    rows: npt.NDArray[np.intp]
    tokenizer: str

    @classmethod
    def of(cls, text: ParallelCorpus, bundle: Bundle, *, longest: int) -> _Text:
        """Encode a text. Raises DataError if no pair has so few tokens that its loss can be computed."""
        ids = encode_corpus(text, bundle.source, bundle.target, None)
        rows = np.flatnonzero(np.maximum(ids.source_lengths[:], ids.target_lengths[:]) <= longest)
        if not len(rows):
            raise DataError(
                f"No pair of {text.name} has at most {longest:,} tokens per side, for the perplexity of the validation: "
                "split its lines, or raise data.filters.max_length."
            )
        tokenizer = metrics.choose_tokenizer(text.languages[1], bundle.recipe.evaluation.tokenize)
        return cls("-".join(text.languages), text, ids, rows, tokenizer)


class Validator:
    """Validates the model of a bundle, with its current weights, on a text, or on one of each pair of languages."""

    def __init__(
        self,
        bundle: Bundle,
        text: ParallelCorpus,
        *,
        precision: Precision,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        self.bundle, self.precision, self.device, self.ranks = bundle, precision, device, ranks
        self.settings = bundle.recipe.training
        self.max_length = max(MAX_LENGTH, bundle.recipe.data.filters.max_length)
        self.texts = [_Text.of(direction, bundle, longest=self.max_length) for direction in text.directions.values()]
        self._reported_characters: set[str] = set()
        """The unseen characters that a warning has named, in any validation."""

    @property
    def metrics(self) -> list[str]:
        """What the figures of a rank are; only ranks of the same figures can be compared."""
        tokenizers = "/".join(dict.fromkeys(text.tokenizer for text in self.texts))
        labels = {**metrics.VALIDATION_SCORES, "bleu": f"BLEU (tokenizer {tokenizers}; below {LEAST_BLEU:g} as 0)"}
        return [labels.get(name, name) for name in compared_metrics(self.settings.validation)]

    def introduction(self) -> Iterator[str]:
        """Lines for the log: the metrics, and warnings if BLEU does not suit the text or lines are too long."""
        means = f" (means of {', '.join(text.name for text in self.texts)})" if len(self.texts) > 1 else ""
        yield f"Validation compares {', then '.join(self.metrics)}{means}."
        if long := sum(len(text.ids) - len(text.rows) for text in self.texts):
            pairs = counted(long, "validation pair")
            yield f"Warning: the perplexity leaves out {pairs} of more than {self.max_length:,} tokens on a side."
        for text in self.texts if "bleu" in self.settings.validation.metrics else ():
            if warning := metrics.bleu_warning(text.text.target, text.tokenizer):
                yield f"Warning: {warning}"

    def validate(self) -> dict[str, Any]:
        """Loss, perplexity, and the metrics of the recipe with their signatures. Leaves the model in evaluation mode.

        Of several pairs of languages, the mean of each, and `languages` with the figures of each pair.
        With several ranks, each computes its share of the text, and all return the same.

        Raises:
            Diverged: the loss is not a number, or above `MAX_LOSS`.
        """
        self.bundle.model.eval()
        records = {text.name: self._figures(text) for text in self.texts}
        return _mean(records) if len(records) > 1 else records[self.texts[0].name]

    def _figures(self, text: _Text) -> dict[str, Any]:
        """The figures of a text."""
        loss = self._loss(text)
        if not loss < MAX_LOSS:
            raise Diverged(f"the loss of the validation text is {loss:.3g} nats per token")
        scores: dict[str, MetricScore] = {}
        if self.translation_metrics:
            scores, _ = self._translate(
                text, {"beam_size": self.settings.validation.beam_size}, self.translation_metrics
            )
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
    def _loss(self, text: _Text) -> float:
        """Negative log-likelihood per target token, in nats, of the pairs that are not too long."""
        corpus, model = text.ids, accelerate(self.bundle.model)
        sources, targets = corpus.source_lengths[:] + 1, corpus.target_lengths[:] + 1
        order = text.rows[np.argsort(targets[text.rows], kind="stable")]
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

    def search_outcome(self, settings: Mapping[str, float]) -> Outcome:
        """What came of translating with some decoding settings changed: the first metric of translations, their length, and BLEU.

        Of a long text only every n-th line is translated, `MAX_SEARCH_LINES` in all. Of several texts it is the mean.
        """
        every = math.ceil(sum(len(text.text) for text in self.texts) / MAX_SEARCH_LINES)
        names = self.translation_metrics[0], "bleu"
        scores, lengths = zip(*(self._translate(text, settings, names, every) for text in self.texts), strict=True)
        first, bleu = (fmean(score[name].score for score in scores) for name in names)
        return Outcome(first, fmean(lengths), bleu)

    @property
    def translation_metrics(self) -> list[str]:
        """The metrics of the recipe that compare translations."""
        return [name for name in compared_metrics(self.settings.validation) if name != "perplexity"]

    def _translate(
        self, text: _Text, settings: Mapping[str, float], names: Iterable[str], every: int = 1
    ) -> tuple[dict[str, MetricScore], float]:
        """Some metrics of the translations of every n-th line, and their characters by those of the references."""
        models = PackedModels.of(self.bundle, precision=self.precision)
        models = replace(models, reported_characters=self._reported_characters)
        decoding = change_decoding(self.bundle.recipe.decoding, settings, "Validation")
        translator = Translator(models, decoding=decoding, alignments=False, to=text.text.languages[1])
        sources, references = text.text.untagged.source, list(text.text.target[::every])
        share = self.ranks.share(range(0, len(sources), every))
        of_rank = [translation.text for translation in translator.stream(sources[line] for line in share)]
        translations = [""] * len(references)
        for rank, texts in enumerate(self.ranks.gather(of_rank)):
            translations[rank :: self.ranks.count] = texts
        scores = {name: metrics.score(translations, references, name, tokenize=text.tokenizer) for name in names}
        return scores, sum(map(len, translations)) / max(sum(map(len, references)), 1)


def _mean(records: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The mean of each figure, perplexity being that of the mean loss, and the figures themselves."""
    first, *_ = figures = list(records.values())
    means: dict[str, Any] = {name: fmean(record[name] for record in figures) for name in first if name != "signatures"}
    means["perplexity"] = math.exp(means["loss"])
    if "signatures" in first:
        means["signatures"] = {
            name: " / ".join(dict.fromkeys(record["signatures"][name] for record in figures))
            for name in first["signatures"]
        }
    return {**means, "languages": dict(records)}


def compared_metrics(settings: ValidationConfig) -> list[str]:
    """The metrics that order validations, the most important first: those of the recipe, chrF after BLEU, and perplexity."""
    names = chain.from_iterable(("bleu", "chrf") if name == "bleu" else (name,) for name in settings.metrics)
    return list(dict.fromkeys([*names, "perplexity"]))
