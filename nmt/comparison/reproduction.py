"""The scores of a recipe's trained model, measured as others measured theirs, beside the scores that they reported."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.comparison.evaluation import WithProgress, forced_error_rate
from nmt.comparison.held_out import HeldOut
from nmt.comparison.table import NONE, TableColumn, markdown_table
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from nmt.evaluation import metrics
from nmt.recipe import DecodingConfig, Recipe, ReportedScore, change_decoding
from nmt.runtime.files import write_content
from nmt.runtime.wording import counted

RECORD = "reproduction.json"
"""The file of a run folder that holds all that was measured, and how."""
_NAMES = {"bleu": "BLEU", "chrf": "chrF", "aer": "AER"}


@dataclass(frozen=True)
class Measurement:
    """One score to measure: a metric, how to compute it, and how to decode or align.

    Attributes:
        metric: `bleu`, `chrf` or `aer`.
        scoring: as in `ReportedScore`, or `gold links`; `other` is measured as `cased`.
        decoding: of the search; None for the alignment error rate.
        replace_unknown: whether unknown words are replaced by aligned source words.
        weights: `posterior` or `attention`, for the alignment error rate.
        reported: the score to compare with; None if no one reported one.
    """

    metric: str
    scoring: str
    decoding: DecodingConfig | None = None
    replace_unknown: bool = False
    weights: str = "posterior"
    reported: ReportedScore | None = None

    @classmethod
    def like(cls, reported: ReportedScore, recipe: Recipe) -> Measurement:
        """The measurement that a reported score compares with."""
        if reported.metric == "aer":
            scoring = "other" if reported.scoring == "other" else "gold links"
            return cls("aer", scoring, weights=reported.weights, reported=reported)
        search = reported.decoding
        changes = {key: value for key in ("beam_size", "length_penalty") if (value := getattr(search, key)) is not None}
        decoding = change_decoding(recipe.decoding, changes, f"{recipe.name}, reported of {reported.system}")
        return cls(reported.metric, reported.scoring, decoding, search.replace_unknown, reported=reported)

    @property
    def way(self) -> str:
        """How to decode or align, in words."""
        if self.decoding is None:
            return self.weights
        return self.decoding.way + (", unknown words replaced" if self.replace_unknown else "")

    @property
    def file(self) -> str:
        """Where the translations are saved, relative to the run folder."""
        return f"translations/{self.way.replace(',', '').replace(' ', '-')}.txt"


# --- measuring --------------------------------------------------------------------------------------------------


def measurements(recipe: Recipe, text: HeldOut) -> list[Measurement]:
    """What to measure of a recipe's model: each reported score, and BLEU and the alignment error rates if none was reported.

    Raises:
        UsageError: a score was reported that this text, this model or this installation does not allow.
    """
    wanted = [Measurement.like(reported, recipe) for reported in recipe.reported]
    if not any(measurement.metric == "bleu" for measurement in wanted):
        wanted.insert(0, Measurement("bleu", "cased", recipe.decoding))
    if text.gold is not None and recipe.model.has_attention:
        reported = {measurement.weights for measurement in wanted if measurement.metric == "aer"}
        missing = [weights for weights in ("posterior", "attention") if weights not in reported]
        wanted += [Measurement("aer", "gold links", weights=weights) for weights in missing]
    for measurement in wanted:  # what would fail only after training
        is_alignment = measurement.metric == "aer"
        if not recipe.model.has_attention and (is_alignment or measurement.replace_unknown):
            raise UsageError(
                f"{recipe.name}: its model has no attention, which the reported alignments or replaced words need; "
                "--set reported=[] leaves them out."
            )
        if is_alignment and text.gold is None:
            raise UsageError(
                f"{recipe.name}: an alignment error rate is reported, but no gold links are known for its text; "
                "--set reported=[] leaves it out."
            )
        if not is_alignment:
            _text_score(measurement, recipe, ["a"], ["a"], text.corpus.languages[1], bootstrap=0)
    return wanted


def measure_scores(
    translator: Translator,
    run: Path,
    recipe: Recipe,
    text: HeldOut,
    wanted: Sequence[Measurement],
    *,
    progress: WithProgress[Any],
) -> list[dict[str, Any]]:
    """Translate the test text in each way that is wanted, save the translations in the run folder, and score them.

    Returns:
        Our scores with the ends of their 95 % bootstrap intervals, beside those that were reported.

    Raises:
        DataError: the translations cannot be written, or a gold link lies beyond its sentences.
        UsageError: the model does not allow a measurement.
    """
    translations: dict[str, list[str]] = {}
    scores = []
    for measurement in wanted:
        if measurement.decoding is None:
            aligner = translator.with_options(posterior=measurement.weights == "posterior")
            errors = forced_error_rate(aligner, text.aligned, text.gold or [], bootstrap=1000, progress=progress)
            low, high = errors.interval or (errors.aer, errors.aer)
            scores.append(_beside(measurement, 100 * errors.aer, 100 * low, 100 * high, str(errors)))
            continue
        if measurement.file not in translations:
            results = translator.stream(
                text.corpus.source,
                decoding=measurement.decoding,
                alignments=measurement.replace_unknown,
                replace_unknown={} if measurement.replace_unknown else None,
            )
            lines = [result.text for result in progress(results, measurement.way, len(text.corpus))]
            translations[measurement.file] = lines
            write_content(run / measurement.file, "".join(f"{line}\n" for line in lines))
        lines, references = translations[measurement.file], list(text.corpus.target)
        scores.append(_text_score(measurement, recipe, lines, references, text.corpus.languages[1]))
    return scores


def _text_score(
    wanted: Measurement,
    recipe: Recipe,
    lines: list[str],
    references: list[str],
    language: str,
    *,
    bootstrap: int = 1000,
) -> dict[str, Any]:
    """BLEU or chrF of translations, scored as the reported system was. Raises UsageError if something it needs is missing."""
    if wanted.scoring == "published":
        lines, references = (metrics.published_form(side, language) for side in (lines, references))
    splits_at_spaces = wanted.scoring in ("tokens", "lowercased-tokens", "published")
    [score] = metrics.evaluate(
        lines,
        references,
        metrics=[wanted.metric],
        bootstrap=bootstrap,
        tokenize="none" if splits_at_spaces else metrics.choose_tokenizer(language, recipe.evaluation.tokenize),
        lowercase=wanted.scoring.startswith("lowercased"),
    )
    middle, margin = score.score if score.mean is None else score.mean, score.margin or 0.0
    return _beside(wanted, score.score, middle - margin, middle + margin, score.signature)


def _beside(wanted: Measurement, ours: float, low: float, high: float, signature: str) -> dict[str, Any]:
    """Our score beside the reported one: None where there is none, and no difference if they are not of one kind."""
    reported = wanted.reported
    value = reported.value if reported else None
    comparable = None if wanted.scoring == "other" else value
    return {
        "system": reported.system if reported else None,
        "metric": _NAMES[wanted.metric],
        "scoring": wanted.scoring,
        "way": wanted.way,
        "reported": value,
        "source": reported.source if reported else None,
        "ours": ours,
        "low": low,
        "high": high,
        "signature": signature,
        "translations": None if wanted.decoding is None else wanted.file,
        "difference": None if comparable is None else ours - comparable,
        "inside": None if comparable is None else low <= comparable <= high,
    }


# --- the record -------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """The versions of all that scores depend on."""
    packages = {name: version(name) for name in ("torch", "sacrebleu")}
    return {"nmt": __version__, **packages, "Python": platform.python_version()}


def markdown(record: Mapping[str, Any]) -> str:
    """The table of a record of `nmt reproduce`, and below it what the scores depend on."""
    columns = []
    for heading, (key, form) in _COLUMNS.items():
        cells = [NONE if score[key] is None else format(score[key], form) for score in record["scores"]]
        cells = [{"True": "yes", "False": "no"}.get(cell, cell) for cell in cells]
        columns.append(TableColumn(heading, cells, "right" if form else "left"))
    circumstances = "\n".join(f"- {line}" for line in dict.fromkeys(_circumstances(record)))
    return f"# {record['recipe']}: reported and achieved\n\n{markdown_table(columns)}\n\n{circumstances}\n"


_COLUMNS = {
    "reported by": ("system", ""),
    "metric": ("metric", ""),
    "scoring": ("scoring", ""),
    "ours by": ("way", ""),
    "reported": ("reported", ".2f"),
    "ours": ("ours", ".2f"),
    "difference": ("difference", "+.2f"),
    "95 % from": ("low", ".2f"),
    "to": ("high", ".2f"),
    "reported inside": ("inside", ""),
}
"""The headings of the table, each with its key in the record and the format of its figures."""


def _circumstances(record: Mapping[str, Any]) -> Iterator[str]:
    """The list below the table: texts, how scores were computed, where reported ones can be read, training and versions."""
    yield f"Text: {record['text']}" + (f"; alignments: {record['aligned']}" if record["aligned"] else "")
    for score in record["scores"]:
        yield f"{score['metric']}, {score['way'] if score['metric'] == 'AER' else score['scoring']}: {score['signature']}"
    for score in record["scores"]:
        note = (
            "; scored in another way or on other text, so no difference is taken" if score["scoring"] == "other" else ""
        )
        if score["system"]:
            yield f"{score['system']}, {score['reported']:g}: {score['source']}{note}"
    training = record["training"]
    minutes = f"{training['training_seconds'] / 60:.1f} min"
    yield f"Training: {counted(training['epochs'], 'epoch')}, {counted(training['updates'], 'update')}, {minutes}"
    yield f"Scored on: {record['machine']}"
    yield f"Versions: {', '.join(f'{name} {number}' for name, number in record['versions'].items())}"
