"""Measure the trained model of a recipe as others measured theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt.comparison.measure import HeldOut, WithProgress, forced_error_rate, tokenizer_of
from nmt.data.corpus import ParallelCorpus
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from nmt.evaluation import metrics
from nmt.recipe import DecodingConfig, Recipe, ReportedScore, change_decoding
from nmt.runtime.files import write_content

TRANSLATIONS = "translations"
"""The folder in a run folder with the translations that were scored, one file for each way to decode."""
_NAMES = {"bleu": "BLEU", "chrf": "chrF", "aer": "AER"}
_WINDOW = 500
"""Lines sorted by length at a time, per process."""
_RESAMPLES = 1000


# --- what to measure --------------------------------------------------------------------------------------------


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
    decoding: DecodingConfig | None
    replace_unknown: bool
    weights: str
    reported: ReportedScore | None

    @classmethod
    def like(cls, reported: ReportedScore, recipe: Recipe) -> Measurement:
        """The measurement that a reported score compares with."""
        search = reported.decoding
        changes = {key: value for key in ("beam_size", "length_penalty") if (value := getattr(search, key)) is not None}
        decoding = change_decoding(recipe.decoding, changes, f"{recipe.name}, reported of {reported.system}")
        is_search = reported.metric != "aer"
        return cls(
            reported.metric,
            reported.scoring if is_search or reported.scoring == "other" else "gold links",
            decoding if is_search else None,
            is_search and search.replace_unknown,
            reported.weights,
            reported,
        )

    @property
    def way(self) -> str:
        """How to decode or align, in words."""
        if self.decoding is None:
            return self.weights
        return self.decoding.way + (", unknown words replaced" if self.replace_unknown else "")


def measurements(recipe: Recipe, text: HeldOut) -> list[Measurement]:
    """What to measure of a recipe's model: each reported score, and BLEU and the alignment error rates if none was reported.

    Raises:
        UsageError: a score was reported that this text, this model or this installation does not allow.
    """
    wanted = [Measurement.like(reported, recipe) for reported in recipe.reported]
    if not any(item.metric == "bleu" for item in wanted):
        wanted.insert(0, Measurement("bleu", "cased", recipe.decoding, False, "posterior", None))
    if text.gold is not None and recipe.model.has_attention:
        reported = {item.weights for item in wanted if item.metric == "aer"}
        missing = [weights for weights in ("posterior", "attention") if weights not in reported]
        wanted += [Measurement("aer", "gold links", None, False, weights, None) for weights in missing]
    _check(recipe, text, wanted)
    return wanted


def _check(recipe: Recipe, text: HeldOut, wanted: Sequence[Measurement]) -> None:
    """Raise UsageError for what would fail only after training."""
    for item in wanted:
        if item.metric == "aer" and (text.gold is None or not recipe.model.has_attention):
            what = "its model has no attention" if text.gold is not None else "no gold links are known for its text"
            raise UsageError(
                f"{recipe.name}: an alignment error rate is reported, but {what}; --set reported=[] leaves it out."
            )
        if item.replace_unknown and not recipe.model.has_attention:
            raise UsageError(f"{recipe.name}: unknown words cannot be replaced, because its model has no attention.")
        if item.metric != "aer":
            _score_options(item, recipe, text.corpus)
            _form(item, text.corpus, ["a"])


# --- measuring --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReproducedScore:
    """A score of our model beside the reported one; None where there is none.

    Attributes:
        system, reported, source: who reported which score, and where it can be read.
        metric: `BLEU`, `chrF` or `AER`.
        scoring: how it was computed, as in `ReportedScore`.
        way: how we decoded or aligned.
        ours, low, high: our score, and the ends of its 95 % bootstrap interval.
        signature: sacreBLEU's signature; for AER the counts behind it.
        translations: name of the file of our translations in the run folder.
    """

    system: str | None
    metric: str
    scoring: str
    way: str
    reported: float | None
    source: str | None
    ours: float
    low: float
    high: float
    signature: str
    translations: str | None = None

    @property
    def _comparable(self) -> float | None:
        """The reported score, if it is of the same kind as ours."""
        return None if self.scoring == "other" else self.reported

    @property
    def difference(self) -> float | None:
        """Ours minus the reported score; None if they are not of one kind."""
        return None if self._comparable is None else self.ours - self._comparable

    @property
    def is_inside(self) -> bool | None:
        """Whether the reported score lies in our interval; None if they are not of one kind."""
        return None if self._comparable is None else self.low <= self._comparable <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "difference": self.difference, "inside": self.is_inside}


def measure_scores(
    translator: Translator,
    run: Path,
    recipe: Recipe,
    text: HeldOut,
    wanted: Sequence[Measurement],
    *,
    processes: int,
    progress: WithProgress[Any],
) -> list[ReproducedScore]:
    """Translate the test text in each way that is wanted, save the translations in the run folder, and score them.

    Up to `processes` processes decode.

    Raises:
        DataError: the translations cannot be written, or a gold link lies beyond its sentences.
        UsageError: the model does not allow a measurement.
    """
    translations: dict[tuple[DecodingConfig, bool], list[str]] = {}
    scores = []
    for item in wanted:
        if item.decoding is None:
            scores.append(_alignment_score(item, translator, text, progress))
            continue
        key = item.decoding, item.replace_unknown
        if key not in translations:
            own = translator.with_options(processes=processes, window=_WINDOW * processes)
            translations[key] = _translate(item, own, text, progress)
            write_content(run / _file_of(item), "".join(f"{line}\n" for line in translations[key]))
        scores.append(_text_score(item, recipe, translations[key], text.corpus))
    return scores


def _file_of(item: Measurement) -> str:
    """Where the translations are saved, relative to the run folder."""
    words = item.way.replace(",", "").replace(" ", "-")
    return f"{TRANSLATIONS}/{words}.txt"


def _translate(item: Measurement, translator: Translator, text: HeldOut, progress: WithProgress[Any]) -> list[str]:
    lines = translator.stream(
        text.corpus.source,
        decoding=item.decoding,
        alignments=item.replace_unknown,
        replace_unknown={} if item.replace_unknown else None,
    )
    return [line.text for line in progress(lines, item.way, len(text.corpus))]


def _text_score(item: Measurement, recipe: Recipe, lines: list[str], text: ParallelCorpus) -> ReproducedScore:
    """BLEU or chrF of translations, scored as the reported system was."""
    lines, references = _form(item, text, lines), _form(item, text, list(text.target))
    [score] = metrics.evaluate(
        lines, references, metrics=[item.metric], bootstrap=_RESAMPLES, **_score_options(item, recipe, text)
    )
    middle, margin = score.score if score.mean is None else score.mean, score.margin or 0.0
    return _beside(item, score.score, middle - margin, middle + margin, score.signature, _file_of(item))


def _form(item: Measurement, text: ParallelCorpus, lines: list[str]) -> list[str]:
    """The lines as they are scored. Raises UsageError if sacremoses is needed but not installed."""
    return metrics.published_form(lines, text.languages[1]) if item.scoring == "published" else lines


def _score_options(item: Measurement, recipe: Recipe, text: ParallelCorpus) -> dict[str, Any]:
    """The options of `metrics.evaluate`. Raises UsageError if the tokenizer cannot be used."""
    splits_at_spaces = item.scoring in ("tokens", "lowercased-tokens", "published")
    tokenizer = "none" if splits_at_spaces else tokenizer_of(recipe, text)
    metrics.check_tokenizer(tokenizer)
    return {"tokenize": tokenizer, "lowercase": item.scoring.startswith("lowercased")}


def _alignment_score(
    item: Measurement, translator: Translator, text: HeldOut, progress: WithProgress[Any]
) -> ReproducedScore:
    """The alignment error rate of the links of forced decoding, in percent."""
    aligner = translator.with_options(posterior=item.weights == "posterior")
    errors = forced_error_rate(aligner, text.aligned, text.gold or [], bootstrap=_RESAMPLES, progress=progress)
    low, high = errors.interval or (errors.aer, errors.aer)
    return _beside(item, 100 * errors.aer, 100 * low, 100 * high, str(errors))


def _beside(
    item: Measurement, ours: float, low: float, high: float, signature: str, translations: str | None = None
) -> ReproducedScore:
    reported = item.reported
    return ReproducedScore(
        system=reported.system if reported else None,
        metric=_NAMES[item.metric],
        scoring=item.scoring,
        way=item.way,
        reported=reported.value if reported else None,
        source=reported.source if reported else None,
        ours=ours,
        low=low,
        high=high,
        signature=signature,
        translations=translations,
    )
