"""The scores of a recipe's trained model, measured as others measured theirs, beside the scores that they reported."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.comparison.evaluation import WithProgress, forced_error_rate, tokenizer_of
from nmt.comparison.held_out import HeldOut
from nmt.comparison.table import NONE, TableColumn, markdown_table
from nmt.data.corpus import ParallelCorpus
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from nmt.evaluation import metrics
from nmt.recipe import DecodingConfig, Recipe, ReportedScore, change_decoding
from nmt.runtime.files import write_content
from nmt.runtime.wording import counted

RECORD = "reproduction.json"
"""The file of a run folder that holds all that was measured, and how."""
TRANSLATIONS = "translations"
"""The folder in a run folder with the translations that were scored, one file for each way to decode."""
_NAMES = {"bleu": "BLEU", "chrf": "chrF", "aer": "AER"}
_RESAMPLES = 1000


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
        return f"{TRANSLATIONS}/{self.way.replace(',', '').replace(' ', '-')}.txt"


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
    for measurement in wanted:
        _check(measurement, recipe, text)
    return wanted


def _check(wanted: Measurement, recipe: Recipe, text: HeldOut) -> None:
    """Raise UsageError for what would fail only after training."""
    if wanted.metric != "aer":
        if wanted.replace_unknown and not recipe.model.has_attention:
            raise UsageError(f"{recipe.name}: unknown words cannot be replaced, because its model has no attention.")
        metrics.check_tokenizer(_tokenizer(wanted, recipe, text.corpus))
        _form(wanted, text.corpus, ["a"])
    elif text.gold is None or not recipe.model.has_attention:
        what = "its model has no attention" if text.gold is not None else "no gold links are known for its text"
        raise UsageError(
            f"{recipe.name}: an alignment error rate is reported, but {what}; --set reported=[] leaves it out."
        )


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
            scores.append(_alignment_score(measurement, translator, text, progress))
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
        scores.append(_text_score(measurement, recipe, translations[measurement.file], text.corpus))
    return scores


def _text_score(wanted: Measurement, recipe: Recipe, lines: list[str], text: ParallelCorpus) -> dict[str, Any]:
    """BLEU or chrF of translations, scored as the reported system was."""
    [score] = metrics.evaluate(
        _form(wanted, text, lines),
        _form(wanted, text, list(text.target)),
        metrics=[wanted.metric],
        bootstrap=_RESAMPLES,
        tokenize=_tokenizer(wanted, recipe, text),
        lowercase=wanted.scoring.startswith("lowercased"),
    )
    middle, margin = score.score if score.mean is None else score.mean, score.margin or 0.0
    return _beside(wanted, score.score, middle - margin, middle + margin, score.signature)


def _form(wanted: Measurement, text: ParallelCorpus, lines: list[str]) -> list[str]:
    """The lines as they are scored. Raises UsageError if sacremoses is needed but not installed."""
    return metrics.published_form(lines, text.languages[1]) if wanted.scoring == "published" else lines


def _tokenizer(wanted: Measurement, recipe: Recipe, text: ParallelCorpus) -> str:
    splits_at_spaces = wanted.scoring in ("tokens", "lowercased-tokens", "published")
    return "none" if splits_at_spaces else tokenizer_of(recipe, text)


def _alignment_score(
    wanted: Measurement, translator: Translator, text: HeldOut, progress: WithProgress[Any]
) -> dict[str, Any]:
    """The alignment error rate of the links of forced decoding, in percent."""
    aligner = translator.with_options(posterior=wanted.weights == "posterior")
    errors = forced_error_rate(aligner, text.aligned, text.gold or [], bootstrap=_RESAMPLES, progress=progress)
    low, high = errors.interval or (errors.aer, errors.aer)
    return _beside(wanted, 100 * errors.aer, 100 * low, 100 * high, str(errors))


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
    return f"# {record['recipe']}: reported and achieved\n\n{_table(record['scores'])}\n\n{_circumstances(record)}\n"


def _table(scores: Sequence[Mapping[str, Any]]) -> str:
    """One row per score; without columns of what was reported if nothing was."""

    def column(heading: str, key: str, form: str = "") -> TableColumn:
        cells = [NONE if score[key] is None else format(score[key], form) for score in scores]
        return TableColumn(heading, cells, "right" if form else "left")

    reported = [
        column("reported by", "system"),
        column("reported", "reported", ".2f"),
        column("difference", "difference", "+.2f"),
        TableColumn("reported inside", [{None: NONE, True: "yes", False: "no"}[score["inside"]] for score in scores]),
    ]
    ours = [
        column("metric", "metric"),
        column("scoring", "scoring"),
        column("ours by", "way"),
        column("ours", "ours", ".2f"),
        TableColumn("95 % interval", [f"{score['low']:.2f} to {score['high']:.2f}" for score in scores]),
    ]
    if not any(score["system"] for score in scores):
        return markdown_table(ours)
    return markdown_table([reported[0], *ours[:3], reported[1], ours[3], reported[2], ours[4], reported[3]])


def _circumstances(record: Mapping[str, Any]) -> str:
    """The list below the table."""
    training, seconds = record["training"], record["training"]["training_seconds"]
    duration = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
    lines = [f"Text: {record['text']}" + (f"; alignments: {record['aligned']}" if record["aligned"] else "")]
    for score in record["scores"]:
        kind = score["way"] if score["metric"] == "AER" else score["scoring"]
        lines.append(f"{score['metric']}, {kind}: {score['signature']}")
    for score in record["scores"]:
        if score["system"]:
            compared = "; scored in another way or on other text, so no difference is taken"
            note = compared if score["scoring"] == "other" else ""
            lines.append(f"{score['system']}, {score['reported']:g}: {score['source']}{note}")
    lines += [
        f"Training: {counted(training['epochs'], 'epoch')}, {counted(training['updates'], 'update')}, {duration}",
        f"Scored on: {record['machine']}",
        f"Versions: {', '.join(f'{name} {number}' for name, number in record['versions'].items())}",
    ]
    return "\n".join(f"- {line}" for line in dict.fromkeys(lines))
