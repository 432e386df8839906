"""Train a model: loop over updates, validations and saves."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nmt.bundle.folder import WEIGHTS, load_tensors
from nmt.data.mixture import describe_mixture, split_tags_warning
from nmt.data.sampled import pairs_of
from nmt.errors import DataError, NmtError, UsageError
from nmt.model.build import build_model
from nmt.model.interface import ModelBuilder
from nmt.recipe import LENGTH_PENALTY, MBR_SAMPLES, Recipe, choose_again, is_chosen
from nmt.runtime.arguments import as_path
from nmt.runtime.device import as_device, bound_compiled_products, torch_defaults
from nmt.runtime.progress import with_progress
from nmt.runtime.wording import counted
from nmt.training.advice import Symptoms, TrainingSize, advise, subword_warnings, text_warnings
from nmt.training.auto import load_recipe
from nmt.training.best import BestCheckpoints, Rank
from nmt.training.data_file import DataDescription, TextDescription
from nmt.training.epoch import Epoch, ahead, plan_epoch
from nmt.training.folder import State, check_weights, has_state, lock_folder, save_state
from nmt.training.log import Log, Meter
from nmt.training.losses import MAX_BAD_UPDATES, BadUpdate, Diverged, LossStats, OutOfMemory, PendingStats
from nmt.training.optim import Clock, use_weights
from nmt.training.parallel import LostRank, device_of_rank, open_ranks
from nmt.training.preparation import Run, prepare
from nmt.training.scheduled_sampling import teacher_forcing_ratio
from nmt.training.search_choice import choose_search
from nmt.training.stopping import Stop, Stopping
from nmt.training.update import PreparedGroup, TrainStep
from nmt.training.validation import Validator

SAVE_EVERY = 600.0
"""Seconds after which the state is saved even if no validation is due."""
_SAVED = "The state is saved; go on with --resume."


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        folder: the run folder.
        metric: the first validation metric.
        best: its value in the best validation; 0 for BLEU below 1.
        updates: number of updates.
        seconds: training time.
    """

    folder: Path
    metric: str
    best: float
    updates: int
    seconds: float


class Interrupted(NmtError):  # noqa: N818 -- not an error
    """Training was stopped by a signal."""

    def __init__(self, outcome: str, signal_number: int) -> None:
        super().__init__(f"Stopped. {outcome}")
        self.exit_status = 128 + signal_number


@torch_defaults()
def train(
    recipe: Recipe | str | Path,
    folder: str | Path,
    *,
    device: torch.device | str = "auto",
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    build_model: ModelBuilder = build_model,
) -> TrainingResult:
    """Train the model of a recipe. The run folder is a model folder from the first validation on.

    On a CPU, training is deterministic: on one machine, with the same number of threads and processes and the same implementation
    (fast or plain, with kernels or without), the same recipe and text give the same bytes of weights, even if the run was stopped
    or killed and resumed.

    Processes that torchrun has started train one model together. The first of them writes the folder and the log.

    Args:
        recipe: a recipe, its file, or the name of one that ships with the toolkit.
        folder: the run folder: new, empty, or with `resume` that of an earlier run.
        device: `auto`, `cpu`, `cuda`, ...
        resume: resume from the state in the folder.
        force: resume even if the recipe or the text has changed. More epochs or updates, longer patience and other intervals of log
            and validation do not need it.
        quiet: show nothing on stderr.
        build_model: builds the model of the recipe. Any `TranslationModel` works; `nmt.load` then needs the same argument.

    Raises:
        DataError: the text or the folder cannot be used, or training diverged or ran out of memory.
        UsageError: an argument is invalid, or the folder holds a run already, is in use, or belongs to another recipe.
        Interrupted: a signal stopped the training; its state is saved.
    """
    folder, device = as_path(folder, "The run folder"), device_of_rank(as_device(device))
    bound_compiled_products()
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe, run=folder if resume else None)
    if recipe.data.monolingual is not None:
        raise UsageError("The command `nmt train` alone trains with data.monolingual, in stages: leave it out here.")
    with Stopping() as stopping:
        try:
            with open_ranks(device) as ranks, ExitStack() as locked:
                if ranks.is_first:
                    if resume and not folder.is_dir():
                        raise DataError(f"There is no model folder {folder}.")
                    locked.enter_context(lock_folder(folder))
                with stopping.at_once():
                    run = prepare(
                        recipe, folder, ranks, build_model, device=device, resume=resume, force=force, quiet=quiet
                    )
                    trainer = Trainer(run, stopping)
                return trainer.fit()
        except (Stop, KeyboardInterrupt):
            has_begun = has_state(folder)
            outcome = (
                "The last saved state is kept; go on with --resume." if has_begun else "Training had not begun yet."
            )
            raise Interrupted(outcome, stopping.signal or signal.SIGINT) from None
        except torch.OutOfMemoryError:  # outside a batch; a batch would be skipped
            raise DataError(f"{OutOfMemory.verdict}. {OutOfMemory.advice}") from None


@dataclass
class Progress:
    """How far a run has come. The names are those in the state."""

    epoch: int = 0
    """Epochs completed."""
    group: int = 0
    """Updates in the current epoch."""
    update: int = 0
    """Updates in total."""
    bad: int = 0
    """Consecutive bad updates up to now."""
    skipped: int = 0
    """Bad updates in total."""
    validated: int = 0
    """The last update that was validated."""
    averaged: int = 0
    """The update after which the mean of the best checkpoints was validated."""
    plateau: int = 0
    """Validations without improvement since the last reduction of the plateau schedule."""
    plateaus: int = 0
    """Reductions of the plateau schedule."""

    def state_dict(self) -> dict[str, Any]:
        """The counters by name."""
        return asdict(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`."""
        vars(self).update({name: state[name] for name in vars(self) if name in state})


class Trainer:
    """Trains a prepared run, validates its model, logs and saves.

    Each part keeps its own record, which `state_dict` collects: `progress`, `meter`, `best`, `log`, `symptoms`, and `train_step`,
    which has the weights.
    """

    def __init__(self, run: Run, stopping: Stopping) -> None:
        """Build the parts, bring them to the state of the run, and write all of the model folder but the weights."""
        self.run, self.recipe, self.settings, self.stopping = run, run.recipe, run.recipe.training, stopping
        self.ranks, self.bundle = run.ranks, run.bundle
        machine: dict[str, Any] = {"precision": run.precision, "device": run.device, "ranks": run.ranks}
        self.progress, self.meter = Progress(), Meter()
        if run.state is not None:
            self.progress.load_state_dict(run.state.progress)
        with self.ranks.first_alone():
            self.epoch = self._plan_epoch(min(self.progress.epoch, self.settings.epochs - 1))
            self.train_step = TrainStep(self.bundle, run.links, **machine)
            self.validator = Validator(self.bundle, run.text.valid, **machine)
        self.updates = int(min(self.epoch.updates * self.settings.epochs, self.settings.updates or math.inf))
        """Of the whole training."""
        folder = run.folder if self.ranks.is_first else None
        self.best = BestCheckpoints(folder, self.settings.validation.keep_best, self.validator.metrics)
        self.log = Log(folder, quiet=run.quiet, tensorboard=self.settings.tensorboard)
        self.symptoms = Symptoms()
        self.pending: PendingStats | None = None
        """The last update while a GPU computes it."""
        self.saved_at = time.monotonic()
        if run.state is not None:
            self.load_state_dict(run.state)
        if self.ranks.is_first:
            self.bundle.save_description(run.folder)
            DataDescription(
                train=TextDescription.of(run.text.train, run.corpus.report.removed),
                valid=TextDescription.of(run.text.valid, {}),
            ).save(run.folder)

    # --- the loop ------------------------------------------------------------------------------------------------

    def fit(self) -> TrainingResult:
        """Train until the last update, or until validation no longer improves."""
        if not self.log.quiet:
            for line in filter(None, self._introduction()):
                self.log.show(line)
        self.meter.start()
        try:
            if self.run.state is None:  # so that a folder with weights but without a state belongs to no run
                self.save()
            self.best.remove_others()
            if self._is_validation_due():  # a run may have ended between an update and its validation
                self._validate()
            while not self._is_finished():
                self._train_epoch()
            self._end()
        except Stop:
            self.save()
            if not self.progress.bad and not (self.run.folder / WEIGHTS).exists():
                with self.train_step.averaged():
                    self.best.save_model(self.train_step.weights)
            raise Interrupted(_SAVED, self.stopping.signal or signal.SIGINT) from None
        except LostRank as lost:
            if not self.ranks.is_first:
                raise  # the first rank tells the user
            self.save()
            raise DataError(f"{lost} {_SAVED}") from None
        best = 0.0 if self.best.rank is None else abs(self.best.rank[0])
        metric = self.settings.validation.metrics[0]
        return TrainingResult(self.run.folder, metric, best, self.progress.update, self.meter.seconds)

    def _train_epoch(self) -> None:
        """Train update by update to the end of the epoch or of the training. After each, log, validate, stop and save as is due."""
        prepare_group = partial(self.train_step.prepare, self.epoch.corpus)
        with closing(ahead(prepare_group, self.epoch.groups(self.progress.group))) as groups:
            for group in groups:
                self._update(group)
                if self._is_validation_due():
                    self._validate()
                if self.ranks.must_stop(received=self.stopping.signal is not None):
                    raise Stop
                if self._is_finished():
                    return
                if time.monotonic() - self.saved_at > SAVE_EVERY:
                    self.save()
        self.progress.epoch += 1
        self.progress.group = 0
        if not self._is_finished():
            self.epoch = self._plan_epoch(self.progress.epoch)

    def _update(self, group: PreparedGroup) -> None:
        """Make an update, or skip it if it is bad, and log it if that is due."""
        progress, settings = self.progress, self.settings
        epochs = progress.epoch + progress.group / self.epoch.updates
        fraction = max(epochs / settings.epochs, progress.update / settings.updates if settings.updates else 0.0)
        try:
            stats = self.train_step.update(group, Clock(progress.update, epochs, fraction, progress.plateaus))
            self._read_losses()
            self.pending = stats
        except BadUpdate as reason:
            self._read_losses()
            self._skip(reason, progress.update + 1)
        progress.update += 1
        progress.group += 1
        if self.run.device.type != "cuda":
            self._read_losses()
        is_due = progress.update % settings.log_every == 0
        if is_due and self.meter.stats.tokens:  # none if all updates were skipped
            self._log_updates()

    def _end(self) -> None:
        """Validate the mean of the best checkpoints, and say why training ended and what to know of the model."""
        if self._is_out_of_patience():
            self.log.show(
                f"Training stops: the last {counted(self.best.stale, 'validation')} gave no better score "
                "(training.validation.patience)."
            )
        self._validate_mean()
        self._choose_search()
        if self.settings.pretrained is not None and self.best.checkpoints[:1] == [(self.best.rank, 0)]:
            self.log.show("No later model was better: the model is still the start (update 0).")

    def _read_losses(self) -> None:
        """Count the last update, if its losses have not been read yet, and wait for a GPU that computes them."""
        stats, self.pending = self.pending, None
        if stats is not None:
            try:
                self.meter.add(stats.read())
                self.progress.bad = 0
            except BadUpdate as reason:
                self._skip(reason, stats.update)

    def _skip(self, reason: BadUpdate, update: int) -> None:
        """Count and log a bad update.

        Raises:
            DataError: there were too many in a row, or several ranks train and this one ran out of memory: the others wait for it.
        """
        progress = self.progress
        if self.ranks.count > 1 and isinstance(reason, OutOfMemory):
            self.save()
            raise self._failure(reason, update)
        progress.bad += 1
        progress.skipped += 1
        self.meter.add(LossStats())
        self.log.skipped(
            {"epoch": progress.epoch + 1, "update": update, "reason": str(reason), "skipped": progress.skipped}
        )
        if progress.bad >= MAX_BAD_UPDATES:
            raise self._failure(reason, update, f", as in all of the last {MAX_BAD_UPDATES} updates")

    def _failure(self, reason: BadUpdate, update: int, repetition: str = "") -> DataError:
        return DataError(
            f"{reason.verdict} at update {update}: {reason}{repetition}. {reason.advice} The last good state is kept; "
            "go on with --resume --force --set KEY=VALUE."
        )

    def _log_updates(self) -> None:
        """Log the mean losses and the speed since the last line of the log."""
        progress, sampling = self.progress, self.settings.scheduled_sampling
        record = {"epoch": progress.epoch + 1, "update": progress.update, **self.meter.losses()}
        if sampling is not None:  # the log has always called the teacher forcing ratio so
            record["gold_probability"] = teacher_forcing_ratio(sampling, progress.update)
        times = self.meter.times(max(self.updates - progress.update, 0))
        self.log.trained({**record, "rate": self.train_step.rate, **times})
        self.meter.reset()

    def _is_finished(self) -> bool:
        settings, progress = self.settings, self.progress
        has_ended = progress.epoch >= settings.epochs or progress.update >= (settings.updates or math.inf)
        return has_ended or self._is_out_of_patience()

    def _is_out_of_patience(self) -> bool:
        patience = self.settings.validation.patience
        return patience is not None and self.best.stale >= patience

    def _plan_epoch(self, number: int) -> Epoch:
        corpus, bundle, what = self.run.corpus, self.bundle, "sampling subwords"
        show = partial(with_progress, what=what, total=len(corpus), unit="pairs", quiet=self.run.quiet, size=pairs_of)
        words = self.run.text.rare_words
        return plan_epoch(self.recipe, corpus, bundle.source, bundle.target, number, words=words, watch=show)

    # --- validation ----------------------------------------------------------------------------------------------

    def _is_validation_due(self) -> bool:
        """Whether to validate: every so many updates or at the end of each epoch, and after the last update.

        A pretrained model is validated before the first one: it stays the model unless training improves it.
        """
        settings, progress = self.settings, self.progress
        if progress.update == 0:
            return settings.pretrained is not None and self.best.rank is None
        every = settings.validation.every
        ends_epoch = progress.group == self.epoch.updates
        ends_training = progress.update == settings.updates or (ends_epoch and progress.epoch + 1 == settings.epochs)
        is_due = ends_training or (progress.update % every == 0 if every else ends_epoch)
        return is_due and progress.validated != progress.update

    def _validate(self) -> None:
        """Validate the model, save it if it is among the best, and save the state."""
        self._read_losses()
        progress, schedule = self.progress, self.settings.schedule
        with self.train_step.averaged():
            record, rank = self._figures()
            improved = self.best.add(self.train_step.weights, rank, progress.update)
        self.meter.tick()
        progress.plateau = 0 if improved else progress.plateau + 1
        if schedule.kind == "plateau" and progress.plateau >= schedule.patience:
            progress.plateau, progress.plateaus = 0, progress.plateaus + 1
        record |= {**self.meter.since_validation(), "update": progress.update}
        self._log_validation(record, improved=improved)
        for warning in self.symptoms.of_validation(record):
            self.log.show(warning)
        progress.validated = progress.update
        self.save()

    def _validate_mean(self) -> None:
        """Save the mean of the best checkpoints as the model if it is better than each of them, and the state, that a run goes on from."""
        mean = None if self.progress.averaged == self.progress.update else self.ranks.from_first(self.best.mean)
        if mean is None:
            return
        with use_weights(mean, self.train_step.weights):
            record, rank = self._figures()
            improved = self.best.improve(self.train_step.weights, rank)
        self._log_validation(record, improved=improved, note=f"mean of the best {len(self.best.checkpoints)}")
        self.progress.averaged = self.progress.update
        self.save()

    def _choose_search(self) -> None:
        """Choose on the validation text how the model searches, as far as the recipe leaves it open."""
        open_settings = [key for key in (LENGTH_PENALTY, MBR_SAMPLES) if is_chosen(self.recipe, key)]
        if not open_settings or not self.validator.translation_metrics:
            return
        weights = self.ranks.from_first(lambda: load_tensors(self.run.folder / WEIGHTS))
        with use_weights(weights, self.train_step.weights), self.stopping.at_once():
            metric = self.validator.metrics[0].partition(" ")[0]
            choices = choose_search(open_settings, self.recipe.decoding, self.validator.search_outcome, metric)
        recipe = self.recipe
        for choice in choices:
            self.log.show(choice.reason)
            recipe = choose_again(recipe, choice)
        if self.ranks.is_first:
            replace(self.bundle, recipe=recipe).save_description(self.run.folder)

    def _figures(self) -> tuple[dict[str, Any], Rank]:
        """The figures of the current weights and their rank. A signal raises Stop at once.

        Raises:
            DataError: the loss is not finite, or memory ran out.
        """
        try:
            with self.stopping.at_once():
                record = self.validator.validate()
        except Diverged as reason:
            raise self._failure(reason, self.progress.update) from None
        except torch.OutOfMemoryError:
            too_large = OutOfMemory("a batch of the validation text does not fit into memory")
            raise self._failure(too_large, self.progress.update) from None
        return record, self.validator.rank(record)

    def _log_validation(self, record: dict[str, Any], *, improved: bool, **note: str) -> None:
        epoch = min(self.progress.epoch + 1, self.settings.epochs)  # the last epoch may have ended
        when = {"epoch": epoch, "update": self.progress.update, "seconds": self.meter.seconds}
        self.log.validated({**when, **record, "best": improved, **note})

    # --- saving and stopping -------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """The state of this training: the records of its parts."""
        progress: dict[str, Any] = {}
        for record in (self.progress, self.meter, self.best, self.log, self.symptoms):
            progress |= record.state_dict()
        return State(progress, self.run.text.fingerprints, **self.train_step.state_dict())

    def load_state_dict(self, state: State) -> None:
        """Go on from a state. Raises DataError if it belongs to a model of other shapes."""
        check_weights(state, self.train_step.weights, self.run.folder)
        self.train_step.load_state_dict(vars(state))
        for record in (self.progress, self.meter, self.best, self.log, self.symptoms):
            record.load_state_dict(state.progress)

    def save(self) -> None:
        """Save the state, then remove checkpoints that are no longer among the best. Only the first rank does.

        After a bad update that no validation has followed nothing is saved, because the weights may be the cause.
        """
        self._read_losses()
        if not self.ranks.is_first or (self.progress.bad and self.progress.validated != self.progress.update):
            return
        self.log.sync()
        save_state(self.run.folder, self.state_dict())
        self.saved_at = time.monotonic()
        self.best.remove_others()

    # --- before training -----------------------------------------------------------------------------------------

    def _introduction(self) -> Iterator[str | None]:
        """Corpus, where the weights start, metrics, model and machine, and advice for a new run."""
        run, bundle, data = self.run, self.bundle, self.recipe.data
        yield f"{run.text.train.name}: {run.corpus.report}"
        yield describe_mixture(data, run.corpus.parts)
        yield split_tags_warning(data, bundle.source)
        yield run.start
        if run.state is None:
            yield from (choice.reason for choice in self.recipe.chosen)
            yield from text_warnings(data, run.text)
            yield from subword_warnings(self.recipe, run.text.train, (bundle.source, bundle.target))
        yield from self.validator.introduction()
        vocabulary = (len(bundle.source), len(bundle.target))
        size = TrainingSize(len(run.corpus), run.corpus.tokens, vocabulary, bundle.parameters)
        threads = counted(torch.get_num_threads(), "thread")
        yield (
            f"{self.recipe.name}: {size.parameters / 1e6:.1f} M parameters, {counted(self.epoch.updates, 'update')} per epoch, "
            f"{run.precision} on {run.device}, "
            f"{threads if self.ranks.count == 1 else f'{self.ranks.count} processes of {threads}'}; run folder {run.folder}"
        )
        if self.train_step.is_compiled:
            yield "PyTorch compiles the steps of the model in the first updates, which takes about a minute."
        if run.state is None:
            yield advise(self.recipe, size)
        elif self._is_finished():
            yield f"The run is finished, after update {self.progress.update:,}; more epochs, updates or patience extend it."
        else:
            yield f"The run goes on after update {self.progress.update:,} of {self.updates:,}."
