"""The scores of a model that its folder records.

scores.json           of `nmt evaluate MODEL --json`, if the user put it there
reproduction.json     of `nmt reproduce`
metrics.jsonl         the best validation of the training
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import DataError
from nmt.evaluation.metrics import VALIDATION_SCORES
from nmt.recipe import Recipe, text_name
from nmt.runtime.json_files import parse_json, read_bounded
from nmt.training.log import METRICS, best_validation, read_validations

SCORES, REPRODUCTION = "scores.json", "reproduction.json"


@dataclass(frozen=True)
class RecordedScore:
    """A score of a model.

    Attributes:
        text: locator of the text.
        metric: such as `BLEU`.
        value: the score, in percent for AER.
        way: how the text was translated or aligned; empty if it is not known.
        signature: sacreBLEU's signature; empty for AER.
        interval: ends of the 95 % confidence interval; None if it is not known.
        is_validation: whether the text chose the weights.
    """

    text: str
    metric: str
    value: float
    way: str
    signature: str
    interval: tuple[float, float] | None = None
    is_validation: bool = False

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.value, *(self.interval or ())))):
            raise ValueError("a score is a finite number")


def recorded_scores(folder: Path, recipe: Recipe) -> list[RecordedScore]:
    """The scores in a model folder, those of test texts first. Raises DataError if a file is damaged."""
    evaluated = _from_file(folder / SCORES, _evaluated)
    reproduced = _from_file(folder / REPRODUCTION, lambda content: _reproduced(content, recipe))
    return [*evaluated, *reproduced, *_validated(folder, recipe)]


def _from_file(path: Path, read: Callable[[Any], Iterator[RecordedScore]]) -> list[RecordedScore]:
    """The scores of a JSON file; none without the file. Raises DataError."""
    if not path.is_file():
        return []
    try:
        return list(read(parse_json(read_bounded(path))))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        command = "nmt evaluate MODEL --json" if path.name == SCORES else "nmt reproduce"
        raise DataError(f"{path} is damaged: it must hold what `{command}` writes.") from None


def _evaluated(content: dict[str, Any]) -> Iterator[RecordedScore]:
    """The scores in the output of `nmt evaluate --json`: of each text if there are several, without their means."""
    if "texts" not in content:
        yield from _of_text(content, str(content["text"]))
    for text in content.get("texts", ()):
        yield from _of_text(text, f"{text['text']} ({'-'.join(text['languages'])})")


def _of_text(content: dict[str, Any], text: str) -> Iterator[RecordedScore]:
    """The scores of a text."""
    for score in content["scores"]:
        value, mean, margin = float(score["score"]), score["mean"], score["margin"]
        interval = None if margin is None else (float(mean) - float(margin), float(mean) + float(margin))
        yield RecordedScore(text, str(score["metric"]), value, "", str(score["signature"]), interval)
    if errors := content.get("alignment"):
        interval = None
        if errors["interval"] is not None:
            low, high = errors["interval"]
            interval = 100 * low, 100 * high
        yield RecordedScore(text, "AER", 100 * float(errors["aer"]), "attention", "", interval)


def _reproduced(content: dict[str, Any], recipe: Recipe) -> Iterator[RecordedScore]:
    """The scores in the record of `nmt reproduce`."""
    for score in content["scores"]:
        is_alignment = score["metric"] == "AER"
        text = str(content["aligned"]) if is_alignment else text_name(recipe.data.test)
        signature = "" if is_alignment else str(score["signature"])
        interval = float(score["low"]), float(score["high"])
        yield RecordedScore(text, str(score["metric"]), float(score["ours"]), str(score["way"]), signature, interval)


def _validated(folder: Path, recipe: Recipe) -> Iterator[RecordedScore]:
    """The scores of the best validation."""
    record = best_validation(read_validations(folder)) or {}
    beam_size = recipe.training.validation.beam_size
    way = "greedy" if beam_size == 1 else f"beam {beam_size}"
    try:
        for key, name in VALIDATION_SCORES.items():
            signature = record.get("signatures", {}).get(key)
            if key in record and signature:
                value = float(record[key])
                yield RecordedScore(text_name(recipe.data.valid), name, value, way, str(signature), is_validation=True)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise DataError(
            f"{folder / METRICS} is damaged: the best validation must have a number for each metric."
        ) from None
