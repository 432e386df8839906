"""The figures of one trained model: how well it predicts, translates and aligns, and how fast."""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
import torch

from nmt.alignment.error_rate import error_rate
from nmt.alignment.extraction import word_links
from nmt.alignment.gold import aligned_text, gold_links
from nmt.alignment.hypothesis_alignment import word_alignment
from nmt.alignment.links import GoldLinks
from nmt.alignment.weights import Alignment, entropy
from nmt.bundle import WEIGHTS, Bundle, weights_of
from nmt.comparison.lengths import Bucket, length_buckets, span
from nmt.comparison.plan import Candidate, write_text
from nmt.comparison.runs import records
from nmt.data.corpus import ParallelCorpus, load_corpus
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError, UsageError
from nmt.evaluation import metrics
from nmt.recipe import Recipe
from nmt.scripts import splitter
from nmt.wording import counted

_VERSION = 3
"""Of how rows are measured; older rows are measured again."""
_WARM_UP = 1000
"""Lines translated before the clock starts, from all over the text: every new size of a product takes longer the first time."""

_PASSES = 3
"""Times that the text is translated, the fastest of which counts."""
_LONG_ENOUGH = 30.0
"""Seconds after which there is no further pass: a long text averages out what disturbs it."""

ItemT = TypeVar("ItemT")
Shown = Callable[[Iterable[ItemT], str, int], Iterator[ItemT]]
"""Passes items on and shows a person how many of them there have been."""


@dataclass(frozen=True)
class LengthScore:
    """BLEU of the sentences whose source has from `low` to `high` words."""

    low: int
    high: int
    sentences: int
    bleu: float

    def __str__(self) -> str:
        return span(self.low, self.high)


@dataclass(frozen=True)
class Figures:
    """What was measured of one model; None is what it has not.

    Attributes:
        parameters: numbers that training sets, shared ones counted once.
        vocabulary: checksum of the target subwords; perplexities compare only where it is the same.
        perplexity: of the references, a target piece (end marks included), read by forced decoding.
        word_perplexity: the same probability spread over the words and end marks instead.
        bleu, bleu_margin: cased BLEU, and half its 95 % interval by bootstrap.
        chrf, chrf_margin: likewise.
        aer, precision, recall: of the links of the attention, as fractions.
        posterior_aer: of those of the posterior alignment.
        entropy: of a target word's attention over source words, in nats, averaged over the text.
        by_length: BLEU by words of the source.
        epochs, updates, training_seconds: how far training got, and how long that took with its validations.
        tokens_per_second: target pieces trained on a second; the median of the log.
        trained_with: processor, threads and jobs of the training.
        decoding_seconds, sentences_per_second: of translating the whole text.
        signatures: sacreBLEU's.
        fault: what makes the translations worthless, if anything does.
    """

    parameters: int
    vocabulary: str
    perplexity: float
    word_perplexity: float
    bleu: float
    bleu_margin: float | None
    chrf: float
    chrf_margin: float | None
    aer: float | None
    posterior_aer: float | None
    precision: float | None
    recall: float | None
    entropy: float | None
    by_length: tuple[LengthScore, ...]
    epochs: int
    updates: int
    training_seconds: float
    tokens_per_second: float | None
    trained_with: dict[str, Any]
    decoding_seconds: float
    sentences_per_second: float
    signatures: dict[str, str]
    fault: str | None = None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Figures:
        """The inverse of `dataclasses.asdict`."""
        lengths = tuple(LengthScore(**item) for item in values["by_length"])
        return cls(**{**values, "by_length": lengths})


@dataclass(frozen=True)
class HeldOut:
    """What all models are measured on.

    Attributes:
        corpus: the text to translate.
        aligned: the text with known links, which may be the same.
        gold: its links; None if there is no such text.
        buckets: the sentences by length of their source.
    """

    corpus: ParallelCorpus
    aligned: ParallelCorpus
    gold: list[GoldLinks] | None
    buckets: list[Bucket]

    @classmethod
    def load(cls, recipe: Recipe, split: str, aligned: str | None) -> HeldOut:
        """Read the text of `test`, `valid` or a locator, and the one with links if there is any.

        Raises:
            UsageError: the recipe names no test text, or the text given for alignments has no known links.
            DataError: a text that cannot be read, or as many links as it has not lines.
        """
        data = recipe.data
        locator = {"test": data.test, "valid": data.valid}.get(split, split)
        if locator is None:
            raise UsageError("The recipes name no data.test: give --split valid or the locator of a corpus.")
        corpus = load_corpus(locator, source=data.source, target=data.target)
        place = aligned or aligned_text(data, locator)
        gold = gold_links(place, source=data.source) if place else None
        if aligned and gold is None:
            raise UsageError(f"--aligned {aligned}: no gold links are known for this text; put them in a .align file.")
        other = load_corpus(place, source=data.source, target=data.target) if place and place != locator else corpus
        if gold is not None and len(gold) != len(other):
            raise DataError(
                f"{other.name} has {counted(len(other), 'sentence pair')}, but gold links of {len(gold):,}."
            )
        return cls(corpus, other, gold, length_buckets(corpus.source))


def known_figures(candidate: Candidate, text: HeldOut, machine: str) -> Figures | None:
    """What was measured earlier, if model, text, decoding and machine are still the same."""
    try:
        content = json.loads(candidate.row.read_text(encoding="utf-8"))
        same = content["key"] == _key(candidate, text, machine) and candidate.translations.is_file()
        return Figures.from_dict(content["figures"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):  # there is no row, or it is of no use
        return None


def measure(candidate: Candidate, text: HeldOut, machine: str, *, device: torch.device, shown: Shown[Any]) -> Figures:
    """Measure a trained model and keep the row. Raises DataError if its folder cannot be used."""
    bundle = Bundle.load(candidate.run, device)
    found = _translated(bundle, candidate, text, shown)
    figures = Figures(
        parameters=sum(value.numel() for value in weights_of(bundle.model).values()),
        vocabulary=bundle.target.fingerprint,
        **_read(bundle, candidate, text, shown),
        **found,
        **_training(candidate),
    )
    row = {"key": _key(candidate, text, machine), "figures": asdict(figures)}
    write_text(candidate.row, json.dumps(row, ensure_ascii=False, indent=1) + "\n")
    return figures


def fastest(run: Callable[[], ItemT]) -> tuple[ItemT, float]:
    """What a function returns, and the seconds of its fastest call: the machine disturbs some, and the one before left objects."""
    gc.collect()
    seconds: list[float] = []
    while True:
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
        if len(seconds) == _PASSES or sum(seconds) > _LONG_ENOUGH:
            return result, min(seconds)


def tokenizer_of(recipe: Recipe) -> str:
    """sacreBLEU's tokeniser for the translations of a recipe's model."""
    return metrics.choose_tokenizer(recipe.data.target, recipe.evaluation.tokenize)


def read_translations(path: Path) -> list[str]:
    """The translations that a measurement kept."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


# --- translating ------------------------------------------------------------------------------------------------


def _translated(bundle: Bundle, candidate: Candidate, text: HeldOut, shown: Shown[Any]) -> dict[str, Any]:
    """BLEU and chrF, whole and by length, and the speed of decoding."""
    corpus, decoding = text.corpus, candidate.recipe.decoding
    translator = Translator([bundle], decoding=decoding, alignments=False)
    list(translator.translate(corpus.source[:: -(-len(corpus) // _WARM_UP)]))
    lines, seconds = fastest(
        lambda: [item.text for item in shown(translator.translate(corpus.source), "translating", len(corpus))]
    )
    references = list(corpus.target)
    tokenizer = tokenizer_of(candidate.recipe)
    bleu, chrf = metrics.evaluate(lines, references, metrics=("bleu", "chrf"), tokenize=tokenizer)
    write_text(candidate.translations, "".join(f"{line}\n" for line in lines))
    return {
        "bleu": bleu.score,
        "bleu_margin": bleu.margin,
        "chrf": chrf.score,
        "chrf_margin": chrf.margin,
        "by_length": tuple(_length_score(bucket, lines, references, tokenizer) for bucket in text.buckets),
        "decoding_seconds": seconds,
        "sentences_per_second": len(corpus) / seconds,
        "signatures": {"BLEU": bleu.signature, "chrF": chrf.signature},
        "fault": find_fault(lines, bleu.score),
    }


def find_fault(lines: Sequence[str], bleu: float) -> str | None:
    """What makes translations worthless, whatever their figures are; None if nothing does."""
    if not any(line.strip() for line in lines):
        return "all translations are empty"
    if len(lines) > 1 and len(set(lines)) == 1:
        return "all translations are the same"
    return "BLEU is zero" if round(bleu, 2) == 0 else None


def _length_score(bucket: Bucket, lines: Sequence[str], references: Sequence[str], tokenizer: str) -> LengthScore:
    translations, expected = ([side[row] for row in bucket.rows] for side in (lines, references))
    score = metrics.bleu(translations, expected, tokenize=tokenizer)
    return LengthScore(bucket.low, bucket.high, len(bucket.rows), score)


# --- reading the references -------------------------------------------------------------------------------------


def _read(bundle: Bundle, candidate: Candidate, text: HeldOut, shown: Shown[Any]) -> dict[str, Any]:
    """Perplexity, entropy and alignment errors, from forced decoding of the references."""
    attends = candidate.recipe.model.attention.score.kind != "none"
    translator = Translator([bundle], decoding=candidate.recipe.decoding)
    found = list(shown(translator.score(text.corpus.pairs()), "reading", len(text.corpus)))
    figures: dict[str, Any] = {**_perplexity(found), "entropy": None, "aer": None, "precision": None, "recall": None}
    figures["posterior_aer"] = None
    if not attends:
        return figures
    alignments = [word_alignment(item, bundle) for item in found]
    figures["entropy"] = _mean_entropy(alignments)
    if text.gold is not None:
        if text.aligned is not text.corpus:
            alignments = [word_alignment(item, bundle) for item in translator.score(text.aligned.pairs())]
        errors = error_rate([word_links(alignment, bundle.recipe) for alignment in alignments], text.gold)
        figures.update(aer=errors.aer, precision=errors.precision, recall=errors.recall)
        reader = Translator([bundle], decoding=candidate.recipe.decoding, posterior=True)
        read = shown(reader.score(text.aligned.pairs()), "aligning", len(text.aligned))
        posteriors = [word_links(word_alignment(item, bundle), bundle.recipe, posterior=True) for item in read]
        figures["posterior_aer"] = error_rate(posteriors, text.gold).aer
    return figures


def _perplexity(found: Sequence[Translation]) -> dict[str, float]:
    nats = -sum(item.hypotheses[0].log_probability for item in found)
    pieces = sum(len(item.hypotheses[0].ids) + 1 for item in found)
    split = splitter(item.text for item in found)
    words = sum(len(split(item.text)) + 1 for item in found)
    return {"perplexity": float(np.exp(nats / pieces)), "word_perplexity": float(np.exp(nats / words))}


def _mean_entropy(alignments: Iterable[Alignment]) -> float | None:
    """Over all target words that read from any source word."""
    rows = [entropy(item.weights)[item.weights.sum(axis=1) > 0] for item in alignments if item.weights.size]
    values = np.concatenate(rows) if rows else np.zeros(0)
    return float(values.mean()) if values.size else None


# --- training, and what a row depends on ------------------------------------------------------------------------


def _training(candidate: Candidate) -> dict[str, Any]:
    """How training went, from its log."""
    log = [record for record in records(candidate) if record.get("kind") in ("train", "valid")]
    if not log:
        raise DataError(f"{candidate.run} has lost its metrics.jsonl: remove that folder to train it again.")
    last = max(log, key=lambda record: record["update"])
    speeds = [record["tokens_per_second"] for record in log if record["kind"] == "train"]
    return {
        "epochs": last["epoch"],
        "updates": last["update"],
        "training_seconds": last["seconds"],
        "tokens_per_second": median(speeds) if speeds else None,
        "trained_with": json.loads(candidate.marker.read_text(encoding="utf-8")),
    }


def _key(candidate: Candidate, text: HeldOut, machine: str) -> str:
    """Of everything that the figures depend on."""
    corpora = [text.corpus.fingerprint, text.aligned.fingerprint if text.gold is not None else ""]
    decoding = candidate.recipe.decoding.model_dump_json()
    marker = candidate.marker.read_text(encoding="utf-8")
    tokenizer = tokenizer_of(candidate.recipe)
    digest = hashlib.sha256(json.dumps([_VERSION, *corpora, decoding, tokenizer, marker, machine]).encode())
    digest.update((candidate.run / WEIGHTS).read_bytes())
    return digest.hexdigest()
