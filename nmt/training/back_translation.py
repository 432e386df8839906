"""Train on text of the target language too: it is translated back (Sennrich et al. 2016) and tagged (Caswell et al. 2019).

It is translated by beam search: with 5,000 pairs that gained 2.7 chrF on the validation text, sampling (Edunov et al. 2018) -0.2 and at
temperature 0.5 2.2 (one seed each). In the folder are

given.yaml                the recipe before anything was chosen, from which each stage has its own
back-translated.{en,de}   the monolingual text, and its translation
alone/ reverse/ mixed/    the runs without that text, from target to source, and with it
stages.json               what the finished stages gave

and in the end the better of the models `alone` and `mixed`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nmt.bundle.folder import RECIPE, SOURCE, TARGET, WEIGHTS
from nmt.data.columns import Column, collect
from nmt.data.filters import first_occurrences
from nmt.data.lines import any_compression, read_lines
from nmt.data.locators import load_text
from nmt.data.tables import in_batches
from nmt.decoding.loading import load
from nmt.errors import DataError, UsageError
from nmt.evaluation.metrics import VALIDATION_SCORES
from nmt.recipe import LENGTH_PENALTY, MBR_SAMPLES, Recipe, dump_yaml, is_chosen, leaves, read_recipe
from nmt.runtime.cache import expand_home
from nmt.runtime.device import as_device
from nmt.runtime.files import remove_unfinished, sync, write_content
from nmt.runtime.json_files import read_json
from nmt.runtime.progress import with_progress
from nmt.runtime.wording import counted
from nmt.text.normalization import Normalizer
from nmt.training import parallel
from nmt.training.auto import load_recipe
from nmt.training.data_file import DATA
from nmt.training.folder import GIVEN, lock_folder, open_folder
from nmt.training.log import METRICS, Log
from nmt.training.stopping import Stop, Stopping
from nmt.training.trainer import Interrupted, train

STAGES = ("alone", "reverse", "translation", "mixed")
_OUTCOMES = "stages.json"


def train_with_monolingual(
    recipe: Recipe, folder: Path, *, given: Mapping[str, Any], resume: bool = False, force: bool = False, **options: Any
) -> None:
    """Train the model of a recipe that has `data.monolingual`. A resumed run repeats no stage that is finished.

    Args:
        recipe: the recipe.
        folder, resume, force, options: those of `train`, whose errors it raises.
        given: the sections of the recipe before anything was chosen (`nmt.recipe.read_recipe`).
    """
    if parallel.count_of_ranks() > 1:
        raise UsageError("--monolingual trains in one process: start it without torchrun.")
    if resume and not folder.is_dir():
        raise DataError(f"There is no model folder {folder}.")
    with lock_folder(folder):
        training = _BackTranslation(recipe, folder, force=force, **options)
        training.open(given, resume=resume)
        training.run()


class _BackTranslation:
    """The stages of a training with monolingual text, in their folder."""

    def __init__(
        self, recipe: Recipe, folder: Path, *, force: bool, device: torch.device | str = "auto", quiet: bool = False
    ) -> None:
        self.recipe, self.data, self.folder = recipe, recipe.data, folder
        self.force, self.device, self.log = force, as_device(device), Log(None, quiet=quiet)
        self.source, self.target = self._sides("back-translated")
        outcomes = folder / _OUTCOMES
        self.outcomes: dict[str, dict[str, Any]] = read_json(outcomes) if outcomes.is_file() else {}

    def open(self, given: Mapping[str, Any], *, resume: bool) -> None:
        """Write the recipe and the text to translate, unless a run to resume has them. Raises UsageError and DataError."""
        path = self.folder / GIVEN
        if resume and path.is_file():
            ours, theirs = dict(leaves(given)), dict(leaves(read_recipe(path)[1]))
            keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
            if keys and not self.force:
                raise UsageError(f"The recipe differs from {path} in {', '.join(keys)}: undo that, or add --force.")
            remove_unfinished(self.folder)
        else:
            open_folder(self.recipe, self.folder, resume=False, force=False)
        lines = None if self.target.is_file() else self._monolingual_lines()  # which may be unusable
        write_content(path, dump_yaml(given))
        if lines is not None:
            _write(self.target, lines)

    def run(self) -> None:
        """Run the stages that are not finished, and keep the better model."""
        alone = self._stage("alone", lambda: self._train("alone", {}))
        self._stage("reverse", lambda: self._train("reverse", self._reversed()))
        self._stage("translation", self._translate)
        mixed = self._stage("mixed", lambda: self._train("mixed", self._mixture()))
        best, is_with = ("mixed", "with") if mixed["best"] > alone["best"] else ("alone", "without")
        if not (self.folder / WEIGHTS).exists():  # which make it a model
            for name in (RECIPE, SOURCE, TARGET, DATA, METRICS, WEIGHTS):
                write_content(self.folder / name, (self.folder / best / name).read_bytes())
        gain = f"{alone['metric']} {alone['best']:.2f} -> {mixed['best']:.2f}"
        self.log.show(f"Back-translation: {gain} on the validation text; the model {is_with} it is kept.")

    def _stage(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The outcome of a stage, which runs unless it is finished."""
        if name not in self.outcomes:
            number = f"Stage {STAGES.index(name) + 1} of {len(STAGES)}, {name}"
            self.log.show(f"{number}:")
            outcome = self.outcomes[name] = work()
            write_content(self.folder / _OUTCOMES, json.dumps(self.outcomes))
            best = f": {outcome['metric']} {outcome['best']:.2f} in validation" if "best" in outcome else ""
            self.log.show(f"{number}, took {timedelta(seconds=round(outcome['seconds']))}{best}.")
        return self.outcomes[name]

    def _train(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Begin or resume the run of a stage, with some settings changed."""
        run = self.folder / name
        run.mkdir(exist_ok=True)
        changes = {"data.monolingual": None, **settings}.items()
        overrides = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in changes]
        recipe = load_recipe(self.folder / GIVEN, overrides, run=run)
        result = train(recipe, run, device=self.device, resume=True, force=self.force, quiet=self.log.quiet)
        return {"metric": VALIDATION_SCORES[result.metric], "best": result.best, "seconds": result.seconds}

    def _reversed(self) -> dict[str, Any]:
        """The settings of the reverse model. Its text is written out, since not every locator names its sides by language."""
        for name in ("train", "valid"):
            text = load_text(self.data, getattr(self.data, name))
            for path, side in zip(self._sides(f"reverse/{name}"), (text.source, text.target), strict=True):
                _write(path, side)
        return {
            "data.source": self.data.target,
            "data.target": self.data.source,
            "data.train": self._locator("reverse/train"),
            "data.valid": self._locator("reverse/valid"),
            "data.test": None,
            "subwords.source_model": self.recipe.subwords.target_model,
            "subwords.target_model": self.recipe.subwords.source_model,
            "training.pretrained": None,
            "evaluation.tokenize": None,
            LENGTH_PENALTY: 1.0,  # as MBR_SAMPLES given, and so not tried on the validation text
            MBR_SAMPLES: None,
        }

    def _translate(self) -> dict[str, Any]:
        """Translate the text, from the first line that is not translated yet."""
        start, part = time.monotonic(), self.source.with_name(f"{self.source.name}.part")
        processes = torch.get_num_threads() if self.device.type == "cpu" else 1
        with Stopping() as stopping, part.open("a+b") as file:
            file.seek(0)
            done = file.read().rpartition(b"\n")
            first = done[0].count(b"\n") + len(done[1])
            file.truncate(len(done[0] + done[1]))
            try:
                with stopping.at_once():
                    lines = list(read_lines(self.target))[first:]
                    reverse = load(self.folder / "reverse", self.device, alignments=False, processes=processes)
                    translations = reverse.stream(lines, first_line=first + 1)
                    show = partial(with_progress, what="translating", total=len(lines), unit="lines")
                    file.writelines(one.text.encode() + b"\n" for one in show(translations, quiet=self.log.quiet))
            except (Stop, KeyboardInterrupt):
                ending = stopping.signal or signal.SIGINT
                raise Interrupted("The lines translated so far are kept; go on with --resume.", ending) from None
        sync(part)
        os.replace(part, self.source)
        return {"seconds": time.monotonic() - start}

    def _mixture(self) -> dict[str, Any]:
        """The settings of the mixture: as many original as translated pairs per epoch, and at most twice the pairs of `alone` in all.

        If `auto` chose how long `alone` trains, it also chooses for the mixture, from its text.
        """
        pairs, lines = len(load_text(self.data, self.data.train)), sum(1 for _ in read_lines(self.target))
        weight, training = max(round(lines / pairs), 1), self.recipe.training
        translated = {"corpus": self._locator("back-translated"), "tag": "<BT>"}
        shown = 1.0 if is_chosen(self.recipe, "training.epochs") else min(2 * pairs / (weight * pairs + lines), 1)
        return {
            "data.train": [{"corpus": self.data.train, "weight": weight}, translated],
            "training.validation.metrics": training.validation.metrics,
            **({} if shown == 1 else {"training.epochs": max(round(training.epochs * shown), 1)}),
        }

    def _monolingual_lines(self) -> Iterable[str]:
        """The lines of the monolingual text that are new and in no validation or test text. Raises DataError if there are none."""
        path = any_compression(expand_home(str(self.data.monolingual)))
        if path is None:
            raise DataError(f"There is no file {self.data.monolingual} (data.monolingual).")
        text = collect(in_batches(((line,) for line in read_lines(path)), 1), 1)[0]
        text = text.mapped(Normalizer(self.data.normalization).all)
        held_out = (load_text(self.data, part).target for part in (self.data.valid, self.data.test) if part is not None)
        leaked = text.among(Column.concatenated(held_out))
        faults = [
            "blank" if not line else "of validation or test text" if line in leaked else "" if is_first else "repeated"
            for line, is_first in zip(text, first_occurrences(((line, "") for line in text), len(text)), strict=True)
        ]
        counts = Counter(faults)
        new_lines = counts.pop("", 0)
        left_out = ", ".join(f"{count:,} {fault}" for fault, count in counts.items()) or "none"
        report = f"{path}: {counted(new_lines, 'line')} to translate back; left out: {left_out}."
        if not new_lines:
            raise DataError(f"{report} Name a text in {self.data.target} by --monolingual (data.monolingual).")
        self.log.show(report)
        return (line for line, fault in zip(text, faults, strict=True) if not fault)

    def _sides(self, name: str) -> tuple[Path, Path]:
        """Two files that end in the languages."""
        return self.folder / f"{name}.{self.data.source}", self.folder / f"{name}.{self.data.target}"

    def _locator(self, name: str) -> str:
        return f"{self.folder / name}.{{{self.data.source},{self.data.target}}}"


def _write(path: Path, lines: Iterable[str]) -> None:
    write_content(path, "".join(f"{line}\n" for line in lines))
