"""Measure a trained model: perplexity, BLEU, alignment error rate and speed."""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from nmt.alignment.error_rate import AlignmentErrorRate, error_rate
from nmt.alignment.gold import aligned_text, gold_links
from nmt.alignment.links import GoldLinks
from nmt.alignment.translation import Translation
from nmt.alignment.weights import Alignment, entropy
from nmt.bundle.folder import WEIGHTS
from nmt.bundle.languages import choose_direction
from nmt.comparison.lengths import Bucket, length_buckets
from nmt.comparison.plan import Candidate
from nmt.comparison.runs import records
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_corpus
from nmt.decoding.loading import load_bundles
from nmt.decoding.translator import Translator
from nmt.errors import DataError, UsageError
from nmt.evaluation import metrics
from nmt.recipe import Recipe
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_json
from nmt.runtime.wording import counted
from nmt.text.scripts import splitter

_VERSION = 3
"""Version of the method; rows of an older version are measured again."""
_WARM_UP = 1000
"""Lines translated before timing, sampled evenly: matrix products of a new size are slower the first time."""
_PASSES = 3
"""Most timed translations of the text; the fastest counts."""
_LONG_ENOUGH = 30.0
"""Seconds of timing after which there is no further pass."""

ItemT = TypeVar("ItemT")
WithProgress = Callable[[Iterable[ItemT], str, int], Iterator[ItemT]]
"""Passes items on while showing progress; takes the items, what is being done, and the number of items."""


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
        word_perplexity: the same per word and end mark.
        bleu, bleu_margin: cased BLEU, and half its 95 % bootstrap interval.
        chrf, chrf_margin: likewise chrF.
        aer, precision, recall: of the links of the attention, as fractions.
        posterior_aer: AER of the links of the posterior alignment.
        entropy: entropy of the attention over source words, in nats, averaged over the target words.
        by_length: BLEU by source length in words.
        epochs, updates, training_seconds: extent and time of training, validations included.
        tokens_per_second: training speed in target tokens per second, the median of the log.
        trained_with: processor, threads and jobs of the training.
        decoding_seconds, sentences_per_second: time and speed of translating the whole text.
        signatures: sacreBLEU's signatures.
        fault: why the translations are worthless, or None.
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


@dataclass(frozen=True)
class HeldOut:
    """The held-out text that all models are measured on.

    Attributes:
        corpus: the text to translate.
        aligned: the text with gold links, which may be the same.
        gold: its links; None if there is no such text.
        buckets: the sentences grouped by source length.
    """

    corpus: ParallelCorpus
    aligned: ParallelCorpus
    gold: list[GoldLinks] | None
    buckets: list[Bucket]

    @classmethod
    def load(cls, recipe: Recipe, split: str, aligned: str | None) -> HeldOut:
        """Load the text of `test`, `valid` or a locator, and a text with gold links if there is one.

        Raises:
            UsageError: the recipe has no test text, or the text given for alignments has no gold links.
            DataError: a text cannot be read, or the numbers of lines and links differ.
        """
        corpus = load_held_out(recipe, split)
        source, target = corpus.languages
        with_links = aligned or aligned_text(recipe.data, corpus.name)
        gold = gold_links(with_links, source=source) if with_links else None
        if aligned and gold is None:
            raise UsageError(f"--aligned {aligned}: no gold links are known for this text; put them in a .align file.")
        other = corpus
        if with_links and with_links != corpus.name:
            other = load_corpus(with_links, source=source, target=target)
        if gold is not None and len(gold) != len(other):
            raise DataError(
                f"{other.name} has {counted(len(other), 'sentence pair')}, but gold links of {len(gold):,}."
            )
        return cls(corpus, other, gold, length_buckets(corpus.source))


def load_held_out(recipe: Recipe, split: str) -> ParallelCorpus:
    """The only text of `test` or `valid`, or that of a locator. Raises UsageError if there is none or are several, and DataError."""
    texts = held_out_texts(recipe, split, None)
    if len(texts) > 1:
        first, (_, target) = texts[0].name, texts[0].languages
        raise UsageError(
            f"data.{split} has {len(texts)} texts, and this takes one, as in --set 'data.{split}=[{{corpus: {first}, to: {target}}}]'."
        )
    return texts[0]


def held_out_texts(recipe: Recipe, split: str, to: str | None) -> list[ParallelCorpus]:
    """The texts of `test` or `valid`, or that of a locator. With `to`, those in a target language alone.

    Raises:
        UsageError: the recipe names no test text, or none in this language, or does not tell the language of a locator.
        DataError: a text cannot be read.
    """
    data = recipe.data
    of_recipe = {"test": data.texts(data.test), "valid": data.texts(data.valid)}
    if split in of_recipe:
        wanted = None if to is None else choose_direction(data, to)[1]
        named = [(text.corpus, data.direction(text)) for text in of_recipe[split]]
        places = [(corpus, direction) for corpus, direction in named if wanted in (None, direction[1])]
        if named and not places:
            raise UsageError(f"data.{split} has no text in {wanted}: give the locator of a corpus as --split.")
    else:
        known = next((text for text in chain(*of_recipe.values()) if text.corpus == split and to is None), None)
        places = [(split, choose_direction(data, to) if known is None else data.direction(known))]
    if not places:
        raise UsageError("The recipe names no data.test: give --split valid or the locator of a corpus.")
    return [load_corpus(corpus, source=source, target=target) for corpus, (source, target) in places]


def saved_figures(candidate: Candidate, text: HeldOut, machine: str) -> Figures | None:
    """Load earlier figures, if model, text, decoding and machine are still the same."""
    try:
        content = read_json(candidate.row)
        is_same = content["key"] == _key(candidate, text, machine) and candidate.translations.is_file()
        return TypeAdapter(Figures).validate_python(content["figures"]) if is_same else None
    except (DataError, KeyError, TypeError, ValidationError):  # the row is missing or damaged
        return None


def measure(
    candidate: Candidate, text: HeldOut, machine: str, *, device: torch.device, progress: WithProgress[Any]
) -> Figures:
    """Measure a trained model and save its row. Raises DataError if its folder cannot be used."""
    [bundle] = load_bundles([candidate.run], device)
    translator = Translator(bundle, decoding=candidate.recipe.decoding, to=text.corpus.languages[1])
    figures = Figures(
        parameters=bundle.parameters,
        vocabulary=bundle.target.fingerprint,
        **_translation_figures(translator, candidate, text, progress),
        **_reference_figures(translator, candidate.recipe, text, progress),
        **training_figures(candidate.run),
        trained_with=read_json(candidate.marker),
    )
    row = {"key": _key(candidate, text, machine), "figures": asdict(figures)}
    write_content(candidate.row, json.dumps(row, ensure_ascii=False, indent=1) + "\n")
    return figures


def fastest(run: Callable[[], ItemT]) -> tuple[ItemT, float]:
    """Call a function up to three times; returns its result and the seconds of the fastest call."""
    gc.collect()  # objects of earlier work would slow down the first call
    seconds: list[float] = []
    while True:
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
        if len(seconds) == _PASSES or sum(seconds) > _LONG_ENOUGH:
            return result, min(seconds)


def tokenizer_of(recipe: Recipe, text: ParallelCorpus) -> str:
    """sacreBLEU's tokenizer for translations of a text by a recipe's model."""
    return metrics.choose_tokenizer(text.languages[1], recipe.evaluation.tokenize)


def read_translations(path: Path) -> list[str]:
    """Read the translations that `measure` saved."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


# --- translating ------------------------------------------------------------------------------------------------


def _translation_figures(
    translator: Translator, candidate: Candidate, text: HeldOut, progress: WithProgress[Any]
) -> dict[str, Any]:
    """BLEU, chrF, BLEU by length, and decoding speed."""
    corpus, translator = text.corpus, translator.with_options(alignments=False)
    list(translator.stream(corpus.source[:: -(-len(corpus) // _WARM_UP)]))
    lines, seconds = fastest(
        lambda: [item.text for item in progress(translator.stream(corpus.source), "translating", len(corpus))]
    )
    references = list(corpus.target)
    tokenizer = tokenizer_of(candidate.recipe, corpus)
    bleu, chrf = metrics.evaluate(lines, references, metrics=("bleu", "chrf"), tokenize=tokenizer)
    write_content(candidate.translations, "".join(f"{line}\n" for line in lines))
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
    """Why translations are worthless, whatever their figures; None if they are not."""
    if not any(line.strip() for line in lines):
        return "all translations are empty"
    if len(lines) > 1 and len(set(lines)) == 1:
        return "all translations are the same"
    return "BLEU is zero" if round(bleu, 2) == 0 else None


def _length_score(bucket: Bucket, lines: Sequence[str], references: Sequence[str], tokenizer: str) -> LengthScore:
    translations, expected = ([side[row] for row in bucket.rows] for side in (lines, references))
    score = metrics.bleu(translations, expected, tokenize=tokenizer)
    return LengthScore(bucket.low, bucket.high, len(bucket.rows), score)


# --- forced decoding of the references --------------------------------------------------------------------------


def _reference_figures(
    translator: Translator, recipe: Recipe, text: HeldOut, progress: WithProgress[Any]
) -> dict[str, Any]:
    """Perplexity, entropy and alignment error rates, by forced decoding of the references."""
    references = list(progress(translator.stream_scores(text.corpus.pairs()), "reading", len(text.corpus)))
    figures: dict[str, Any] = _perplexity(references)
    figures.update(dict.fromkeys(("entropy", "aer", "precision", "recall", "posterior_aer")))
    if not recipe.model.has_attention:
        return figures
    alignments = [item.word_alignment() for item in references]
    figures["entropy"] = _mean_entropy(alignments)
    if text.gold is not None:
        errors, posterior_errors = (
            forced_error_rate(translator.with_options(posterior=posterior), text.aligned, text.gold, progress=progress)
            for posterior in (False, True)
        )
        figures.update(aer=errors.aer, precision=errors.precision, recall=errors.recall)
        figures["posterior_aer"] = posterior_errors.aer
    return figures


def forced_error_rate(
    translator: Translator,
    text: ParallelCorpus,
    gold: Sequence[GoldLinks],
    *,
    bootstrap: int = 0,
    progress: WithProgress[Any],
) -> AlignmentErrorRate:
    """The error rate of a model's links when it is forced to produce the references."""
    links = [item.links for item in progress(translator.stream_scores(text.pairs()), "aligning", len(text))]
    return error_rate(links, gold, bootstrap=bootstrap)


def _perplexity(references: Sequence[Translation]) -> dict[str, float]:
    nats = -sum(item.hypotheses[0].log_probability for item in references)
    tokens = sum(len(item.hypotheses[0].ids) + 1 for item in references)
    split = splitter(item.text for item in references)
    words = sum(len(split(item.text)) + 1 for item in references)
    return {"perplexity": float(np.exp(nats / tokens)), "word_perplexity": float(np.exp(nats / words))}


def _mean_entropy(alignments: Iterable[Alignment]) -> float | None:
    """The mean over all target words with weight on any source word."""
    rows = [entropy(item.weights)[item.weights.sum(axis=1) > 0] for item in alignments if item.weights.size]
    values = np.concatenate(rows) if rows else np.zeros(0)
    return float(values.mean()) if values.size else None


# --- training figures, and the key of a row ---------------------------------------------------------------------


def training_figures(run: Path) -> dict[str, Any]:
    """Extent and speed of training, from its log. Raises DataError if there is none."""
    log = [record for record in records(run) if record.get("kind") in ("train", "valid")]
    if not log:
        raise DataError(f"{run} has lost its metrics.jsonl: remove that folder to train it again.")
    last = max(log, key=lambda record: record["update"])
    speeds = [record["tokens_per_second"] for record in log if record["kind"] == "train"]
    return {
        "epochs": last["epoch"],
        "updates": last["update"],
        "training_seconds": last["seconds"],
        "tokens_per_second": median(speeds) if speeds else None,
    }


def _key(candidate: Candidate, text: HeldOut, machine: str) -> str:
    """A hash of everything the figures depend on."""
    corpora = [text.corpus.fingerprint, text.aligned.fingerprint if text.gold is not None else ""]
    decoding = candidate.recipe.decoding.model_dump_json()
    marker = candidate.marker.read_text(encoding="utf-8")
    tokenizer = tokenizer_of(candidate.recipe, text.corpus)
    digest = hashlib.sha256(json.dumps([_VERSION, *corpora, decoding, tokenizer, marker, machine]).encode())
    digest.update((candidate.run / WEIGHTS).read_bytes())
    return digest.hexdigest()
