"""Measure a trained model: perplexity, BLEU, alignment error rate and speed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.alignment.weights import entropy
from nmt.bundle.folder import Bundle
from nmt.comparison.evaluation import WithProgress, forced_error_rate, tokenizer_of
from nmt.comparison.held_out import HeldOut
from nmt.comparison.plan import Candidate
from nmt.data.corpus import ParallelCorpus
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.evaluation import metrics
from nmt.recipe import Recipe
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_records
from nmt.text.scripts import splitter
from nmt.training.log import METRICS

SMALLEST = 30
"""Least sentences per bucket; BLEU of fewer is too noisy."""
_MOST = 9
"""How many buckets of length the middle 95 % of the sentences fill."""
_WARM_UP = 1000
"""Lines translated before timing, sampled evenly: matrix products of a new size are slower the first time."""


@dataclass(frozen=True)
class LengthScore:
    """BLEU of the sentences whose source has `low` to `high` words."""

    low: int
    high: int
    sentences: int
    bleu: float

    def __str__(self) -> str:
        return f"{self.low}" if self.low == self.high else f"{self.low}–{self.high}"


@dataclass(frozen=True)
class Figures:
    """The measurements of one model; None where it has no such figure.

    Attributes:
        parameters: number of trained parameters, shared ones counted once.
        vocabulary: checksum of the target subwords; perplexities are comparable only if it is the same.
        perplexity: perplexity of the references per target token, end marks included.
        bleu, bleu_margin: cased BLEU, and half its 95 % bootstrap interval.
        chrf, chrf_margin: likewise chrF.
        aer: alignment error rate of the links of the attention, as a fraction.
        posterior_aer: AER of the links of the posterior alignment.
        entropy: entropy of the attention over source words, in nats, averaged over the target words.
        zeros: share of the weights between words that are exactly 0.
        by_length: BLEU by source length in words.
        epochs, updates, training_seconds: extent and time of training, validations included.
        tokens_per_second: training speed in target tokens per second, the median of the log.
        sentences_per_second: speed of translating the whole text.
        signatures: sacreBLEU's signatures.
    """

    parameters: int
    vocabulary: str
    perplexity: float
    bleu: float
    bleu_margin: float | None
    chrf: float
    chrf_margin: float | None
    aer: float | None
    posterior_aer: float | None
    entropy: float | None
    zeros: float | None
    by_length: tuple[LengthScore, ...]
    epochs: int
    updates: int
    training_seconds: float
    tokens_per_second: float | None
    sentences_per_second: float
    signatures: dict[str, str]


def measure(candidate: Candidate, text: HeldOut, *, device: torch.device, progress: WithProgress[Any]) -> Figures:
    """Measure a trained model, and save its translations. Raises DataError if its folder cannot be used."""
    bundle = Bundle.load(candidate.run, device)
    translator = Translator(bundle, decoding=candidate.recipe.decoding, to=text.corpus.languages[1])
    return Figures(
        parameters=bundle.parameters,
        vocabulary=bundle.target.fingerprint,
        **_translation_figures(translator, candidate, text.corpus, progress),
        **_reference_figures(translator, candidate.recipe, text, progress),
        **training_figures(candidate.run),
    )


def training_figures(run: Path) -> dict[str, Any]:
    """Extent and speed of training, from its log. Raises DataError if there is none."""
    log = [record for _, record in read_records(run / METRICS) if record.get("kind") in ("train", "valid")]
    if not log:
        raise DataError(f"{run / METRICS} is empty: remove that folder to train it again.")
    last = max(log, key=lambda record: record["update"])
    speeds = [record["tokens_per_second"] for record in log if record["kind"] == "train"]
    return {
        "epochs": last["epoch"],
        "updates": last["update"],
        "training_seconds": last["seconds"],
        "tokens_per_second": median(speeds) if speeds else None,
    }


def _translation_figures(
    translator: Translator, candidate: Candidate, corpus: ParallelCorpus, progress: WithProgress[Any]
) -> dict[str, Any]:
    """BLEU, chrF, BLEU by length, and decoding speed."""
    translator = translator.with_options(alignments=False)
    list(translator.stream(corpus.source[:: -(-len(corpus) // _WARM_UP)]))
    start = time.perf_counter()
    lines = [line.text for line in progress(translator.stream(corpus.source), "translating", len(corpus))]
    seconds = time.perf_counter() - start
    write_content(candidate.translations, "".join(f"{line}\n" for line in lines))
    references, tokenizer = list(corpus.target), tokenizer_of(candidate.recipe, corpus)
    bleu, chrf = metrics.evaluate(lines, references, metrics=("bleu", "chrf"), tokenize=tokenizer)
    by_length = []
    split = splitter(corpus.source)
    lengths = np.array([len(split(line)) for line in corpus.source])
    for rows in length_buckets(lengths):
        translations, expected = ([side[row] for row in rows] for side in (lines, references))
        score = metrics.bleu(translations, expected, tokenize=tokenizer)
        by_length.append(LengthScore(int(lengths[rows].min()), int(lengths[rows].max()), len(rows), score))
    return {
        "bleu": bleu.score,
        "bleu_margin": bleu.margin,
        "chrf": chrf.score,
        "chrf_margin": chrf.margin,
        "by_length": tuple(by_length),
        "sentences_per_second": len(corpus) / seconds,
        "signatures": {"BLEU": bleu.signature, "chrF": chrf.signature},
    }


def _reference_figures(
    translator: Translator, recipe: Recipe, text: HeldOut, progress: WithProgress[Any]
) -> dict[str, Any]:
    """Perplexity, entropy, zeros and alignment error rates, by forced decoding of the references."""
    references = list(progress(translator.stream_scores(text.corpus.pairs()), "reading", len(text.corpus)))
    nats = -sum(reference.hypotheses[0].log_probability for reference in references)
    tokens = sum(len(reference.hypotheses[0].ids) + 1 for reference in references)
    figures: dict[str, Any] = dict.fromkeys(("entropy", "zeros", "aer", "posterior_aer"))
    figures["perplexity"] = float(np.exp(nats / tokens))
    if not recipe.model.has_attention:
        return figures
    alignments = [reference.word_alignment() for reference in references]
    weights = [alignment.weights for alignment in alignments if alignment.weights.size]
    if weights:
        entropies = np.concatenate([entropy(rows)[rows.sum(axis=1) > 0] for rows in weights])
        figures["entropy"] = float(entropies.mean()) if entropies.size else None
        figures["zeros"] = float(np.concatenate([rows.ravel() == 0 for rows in weights]).mean())
    if text.gold is not None:
        for key, posterior in (("aer", False), ("posterior_aer", True)):
            aligner = translator.with_options(posterior=posterior)
            figures[key] = forced_error_rate(aligner, text.aligned, text.gold, progress=progress).aer
    return figures


def length_buckets(lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Group sentences by their lengths into buckets of equal width; neighbors with too few sentences are merged."""
    low, high = np.quantile(lengths, [0.025, 0.975])
    numbers = lengths // max(1, math.ceil((high - low) / _MOST))
    buckets: list[NDArray[np.int64]] = []
    for number in np.unique(numbers):
        rows = np.flatnonzero(numbers == number)
        if buckets and len(buckets[-1]) < SMALLEST:
            rows = np.concatenate([buckets.pop(), rows])
        buckets.append(rows)
    if len(buckets) > 1 and len(buckets[-1]) < SMALLEST:
        last = buckets.pop()
        buckets[-1] = np.concatenate([buckets[-1], last])
    return buckets
