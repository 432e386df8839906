"""The record of a reproduction: reported scores beside ours, and all that ours depend on, as JSON and as Markdown."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.comparison.measure import HeldOut, training_figures
from nmt.comparison.plan import TRAINED
from nmt.comparison.reported import ReproducedScore
from nmt.comparison.table import NONE, TableColumn, markdown_table
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_json
from nmt.runtime.wording import counted

RECORD = "reproduction.json"
"""The file of a run folder that holds all that was measured, and how."""
_OF_REPORTED = ("reported by", "reported", "difference", "reported inside")
"""Columns of the table that need a reported score."""


@dataclass(frozen=True)
class Reproduction:
    """The scores of a recipe and how they were obtained.

    Attributes:
        text, aligned: the test text, and that of the alignment error rate, in words.
        training: epochs, updates and seconds of training, and the machine (None if not recorded).
        machine: processor and threads of decoding.
        smoke: what a smoke run was limited to; None for a complete run.
    """

    recipe: str
    scores: Sequence[ReproducedScore]
    text: str
    aligned: str | None
    training: dict[str, Any]
    machine: dict[str, Any]
    command: str
    smoke: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "scores": [score.to_dict() for score in self.scores], "versions": _versions()}

    def save(self, run: Path) -> None:
        """Write the record into the run folder. Raises DataError."""
        write_content(run / RECORD, json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n")

    def markdown(self) -> str:
        """The table, and below it what the scores depend on."""
        warning = f"**A smoke run ({self.smoke}): its scores say nothing about the recipe.**"
        blocks = [f"# {self.recipe}: reported and achieved", *([warning] if self.smoke else []), self._table()]
        return "\n\n".join([*blocks, self._circumstances()]) + "\n"

    def _table(self) -> str:
        """One row per score; without columns of what was reported if nothing was."""
        scores = self.scores
        columns = [
            TableColumn("reported by", [score.system or NONE for score in scores], "left"),
            TableColumn("metric", [score.metric for score in scores], "left"),
            TableColumn("scoring", [score.scoring for score in scores], "left"),
            TableColumn("ours by", [score.way for score in scores], "left"),
            TableColumn("reported", [_number(score.reported) for score in scores]),
            TableColumn("ours", [_number(score.ours) for score in scores]),
            TableColumn("difference", [_number(score.difference, "{:+.2f}") for score in scores]),
            TableColumn("95 % interval", [f"{score.low:.2f} to {score.high:.2f}" for score in scores]),
            TableColumn("reported inside", [_inside(score) for score in scores]),
        ]
        is_compared = any(score.system for score in scores)
        return markdown_table([item for item in columns if is_compared or item.heading not in _OF_REPORTED])

    def _circumstances(self) -> str:
        """The list below the table."""
        training, seconds = self.training, self.training["training_seconds"]
        extent = f"{counted(training['epochs'], 'epoch')}, {counted(training['updates'], 'update')}"
        duration = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
        kinds = [score.way if score.metric == "AER" else score.scoring for score in self.scores]
        lines = [f"Text: {self.text}" + (f"; alignments: {self.aligned}" if self.aligned else "")]
        lines += dict.fromkeys(
            f"{score.metric}, {kind}: {score.signature}" for score, kind in zip(self.scores, kinds, strict=True)
        )
        lines += [f"{score.system}, {score.reported:g}: {score.source}" for score in self.scores if score.system]
        if others := [score.system for score in self.scores if score.system and score.scoring == "other"]:
            were = f"{' and '.join(others)} {'was' if len(others) == 1 else 'were'}"
            lines.append(f"{were} scored in another way or on other text: no difference is taken")
        lines += [
            f"Training: {extent}, {duration} on {_machine(training)}",
            f"Decoding: {_machine(self.machine)}",
            f"Versions: {', '.join(f'{name} {number}' for name, number in _versions().items())}",
        ]
        return "\n".join(f"- {line}" for line in lines)


def describe_text(text: HeldOut) -> tuple[str, str | None]:
    """The test text, and the one with gold links, in words."""
    corpus = f"{text.corpus.name} ({' → '.join(text.corpus.languages)}), {counted(len(text.corpus), 'sentence pair')}"
    if text.gold is None:
        return corpus, None
    return corpus, f"{text.aligned.name}, {counted(len(text.aligned), 'sentence pair')}"


def training_record(run: Path) -> dict[str, Any]:
    """Extent and time of training from the log of a run, and the machine from its mark. Raises DataError."""
    machine = read_json(run / TRAINED)
    return {**training_figures(run), **{key: machine.get(key) for key in ("processor", "threads", "processes")}}


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "sacrebleu")}
    return {"nmt": __version__, **packages, "Python": platform.python_version()}


def _number(value: float | None, form: str = "{:.2f}") -> str:
    return NONE if value is None else form.format(value)


def _inside(score: ReproducedScore) -> str:
    return NONE if score.is_inside is None else "yes" if score.is_inside else "no"


def _machine(machine: Mapping[str, Any]) -> str:
    """Processor, processes and threads, in words."""
    if machine["processor"] is None:
        return "a machine that was not recorded"
    processes, threads = machine.get("processes") or 1, counted(machine["threads"], "thread")
    return f"{machine['processor']}, {f'{processes} processes of ' if processes > 1 else ''}{threads}"
