"""The training loop, and all that happens around one update."""

from __future__ import annotations

import logging
import math
import signal
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from nmt.alignment.corpus_links import TokenLinks, splits_of
from nmt.arguments import as_path
from nmt.data.encoded import encode_corpus
from nmt.data.subwords import Subwords
from nmt.device import as_device, choose_precision
from nmt.errors import DataError, NmtError
from nmt.fast import arithmetic
from nmt.model.interface import ModelBuilder
from nmt.model.recurrent import build_model
from nmt.model_folder import SOURCE, TARGET, WEIGHTS, Bundle, save_tensors, weights_of
from nmt.recipe import Recipe, load_recipe
from nmt.training.advice import TrainingSize, advise
from nmt.training.best import BestCheckpoints
from nmt.training.checkpoint import (
    Progress,
    Rank,
    State,
    Tensors,
    generator_states,
    has_state,
    optimizer_tensors,
    restore_generators,
    restore_optimizer,
    save_state,
)
from nmt.training.epoch import Epoch, plan_epoch
from nmt.training.folder import check_text, how_to_resume, open_folder
from nmt.training.guard import MAX_BAD_UPDATES, BadUpdate, OutOfMemory, within_memory
from nmt.training.lock import lock_folder
from nmt.training.log import Log
from nmt.training.optim import Clock, MovingAverage, copy_weights, use_weights
from nmt.training.pace import Pace
from nmt.training.sampling import teacher_forcing_ratio
from nmt.training.stopping import Stop, Stopping
from nmt.training.text import TrainingText
from nmt.training.update import LossStats, TrainStep
from nmt.training.validation import Validator, usable_tokenizer
from nmt.training.yielding import Yielding
from nmt.wording import counted

_log = logging.getLogger(__name__)
SAVE_EVERY = 600.0
"""Seconds after which the state is saved although no validation is due, so that a power failure costs no more."""


@dataclass(frozen=True)
class Result:
    """What a finished run came to.

    Attributes:
        folder: the run folder.
        metric: the validation metric that decided.
        best: its figure for the best validation.
        updates: how many there were.
        seconds: spent training.
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


def train(
    recipe: Recipe | str | Path,
    folder: str | Path,
    *,
    device: torch.device | str = "auto",
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    build_model: ModelBuilder = build_model,
) -> Result:
    """Train the model of a recipe into a run folder, which is a model folder from the first validation on.

    On one machine with the same number of threads and the same arithmetic (fast or plain, with kernels or without) the same recipe
    and text give the same bytes of weights on a CPU, however often the run was stopped or killed and resumed on the way.

    Args:
        recipe: what to train on, with and how; or its file, or the name of one that ships with the toolkit.
        folder: new, empty, or (with `resume`) that of an earlier run.
        device: where to compute: `auto`, `cpu`, `cuda`, ...
        resume: go on from the state in the folder.
        force: resume even if the recipe or the text is not the one that the run was started with.
        quiet: say nothing on stderr.
        build_model: makes the model of the recipe. Any `TranslationModel` will do; `nmt.load` then needs the same argument.

    Raises:
        DataError: the text, or the folder, cannot be used, or training diverged or ran out of memory.
        UsageError: an argument that cannot be, or the folder holds a run already, is in use, or the recipe contradicts it.
        Interrupted: a signal asked to stop; what was trained is saved.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    folder, device = as_path(folder, "The run folder"), as_device(device)
    if resume and not folder.is_dir():
        raise DataError(f"There is no model folder {folder}.")
    with Stopping() as stopping:
        try:
            with lock_folder(folder):
                with stopping.at_once():
                    trainer = _prepare(
                        recipe, folder, stopping, build_model, device=device, resume=resume, force=force, quiet=quiet
                    )
                return trainer.run()
        except (Stop, KeyboardInterrupt):
            begun = f"The last saved state is kept; go on with: {how_to_resume(folder, device)}"
            outcome = begun if has_state(folder) else "Training had not begun yet."
            raise Interrupted(outcome, stopping.signal or signal.SIGINT) from None
        except torch.OutOfMemoryError:  # not over one batch, which would be skipped
            raise DataError(f"{OutOfMemory.verdict}. {OutOfMemory.advice}") from None


def _prepare(
    recipe: Recipe,
    folder: Path,
    stopping: Stopping,
    build_model: ModelBuilder,
    *,
    device: torch.device,
    resume: bool,
    force: bool,
    quiet: bool,
) -> Trainer:
    """Read all that training needs, and write down what the model will be."""
    state = open_folder(recipe, folder, resume=resume, force=force)
    usable_tokenizer(recipe, None if state is None else state.progress.tokenizer)  # said before the work
    text = TrainingText.load(recipe)
    if state is None:
        source, target = text.subwords(recipe)
    else:
        source, target = Subwords.load(folder / SOURCE), Subwords.load(folder / TARGET)
        if not force:
            check_text(state, text, folder)
    bundle = Bundle.fresh(recipe, source, target, build_model)
    bundle.model.to(device)
    trainer = Trainer(bundle, text, folder, stopping, state, device=device, quiet=quiet)
    bundle.save_description(folder)
    return trainer


class Trainer:
    """One run: the model, what moves it, what judges it, and where it is written."""

    def __init__(
        self,
        bundle: Bundle,
        text: TrainingText,
        folder: Path,
        stopping: Stopping,
        state: State | None,
        *,
        device: torch.device,
        quiet: bool,
    ) -> None:
        self.bundle, self.text, self.folder, self.stopping, self.device = bundle, text, folder, stopping, device
        self.recipe, self.settings = bundle.recipe, bundle.recipe.training
        self.weights = weights_of(bundle.model)
        self.average = MovingAverage(self.weights, self.settings.ema) if self.settings.ema else None
        self.precision = choose_precision(self.settings.precision, device)
        self.corpus = encode_corpus(text.train, bundle.source, bundle.target, self.recipe.data.filters)
        links = None
        if text.links is not None:
            links = TokenLinks(text.links, self.corpus, bundle.source, bundle.target, splits_of(text.train))
        self.train_step = TrainStep(bundle, links, precision=self.precision, device=device)
        self.progress = Progress() if state is None else state.progress
        self.progress.tokenizer = usable_tokenizer(self.recipe, self.progress.tokenizer)
        self.validator = Validator(bundle, text.valid, self.progress.tokenizer, precision=self.precision, device=device)
        self.best = BestCheckpoints(folder, self.progress, self.settings.validation.keep_best)
        self.epoch = self._open_epoch(min(self.progress.epoch, self.settings.epochs - 1))
        updates = int(min(len(self.epoch.groups) * self.settings.epochs, self.settings.updates or math.inf))
        board = self.settings.tensorboard
        self.log = Log(folder, updates=updates, done=self.progress.update, quiet=quiet, tensorboard=board)
        self.timer = self.saved = time.monotonic()
        self.logged_at = self.progress.seconds
        self.pace = Pace()
        self.is_new = state is None
        if state is not None:
            self._restore(state)

    # --- the loop ------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Train to the end, or until validation stands still."""
        with self.log, Yielding():
            self._introduce()
            try:
                self._run()
            except Stop:
                self._stop()
        progress, metric = self.progress, self.settings.validation.metrics[0]
        best = 0.0 if progress.best is None else abs(progress.best[0])
        return Result(self.folder, metric, best, progress.update, progress.seconds)

    def _run(self) -> None:
        if self.is_new:
            self.save()  # there is a state from here on, so that weights without one are those of another's run
        else:
            self.log.truncate(self.progress.records)
            self.best.remove_others()
            self._validate_if_due()  # where the run was stopped or killed before
        while not self._finished():
            for group in self.epoch.groups[self.progress.group :]:
                self._update(group)
                self._validate_if_due()
                self.stopping.check()
                if self._finished():
                    break
                if time.monotonic() - self.saved > SAVE_EVERY:
                    self.save()
            else:
                self._end_epoch()
        self._average_best()

    def _finished(self) -> bool:
        settings, progress = self.settings, self.progress
        patience = settings.validation.patience
        return (
            progress.epoch >= settings.epochs
            or progress.update >= (settings.updates or math.inf)
            or (patience is not None and progress.stale >= patience)
        )

    def _open_epoch(self, number: int) -> Epoch:
        return plan_epoch(self.recipe, self.corpus, self.bundle.source, self.bundle.target, number)

    def _validate_if_due(self) -> None:
        if self._due():
            self._validate()

    def _due(self) -> bool:
        """Whether this update is followed by a validation: every so often, and at the end."""
        settings, progress = self.settings, self.progress
        if progress.validated == progress.update:
            return False
        ends_epoch = progress.group == len(self.epoch.groups)
        if progress.update == settings.updates or (ends_epoch and progress.epoch + 1 == settings.epochs):
            return True
        every = settings.validation.every
        return progress.update % every == 0 if every else ends_epoch

    def _end_epoch(self) -> None:
        self.progress.epoch += 1
        self.progress.group = 0
        if not self._finished():
            self.epoch = self._open_epoch(self.progress.epoch)

    # --- one update ----------------------------------------------------------------------------------------------

    def _update(self, group: Sequence[Sequence[int]]) -> None:
        try:
            stats = self.train_step.update(self.epoch.corpus, group, self._clock())
        except BadUpdate as bad:
            self._skip(bad)
            stats = LossStats()
        else:
            self.progress.bad = 0
            if self.average is not None:
                self.average.add(self.weights, self.progress.update + 1)
        self._count(stats)

    def _skip(self, bad: BadUpdate) -> None:
        """Note an update that cannot be taken. Raises DataError if there were too many in a row."""
        progress = self.progress
        progress.bad += 1
        progress.skipped += 1
        where = {"epoch": progress.epoch + 1, "update": progress.update + 1}
        self.log.skipped({**where, "reason": str(bad), "skipped": progress.skipped})
        if progress.bad >= MAX_BAD_UPDATES:
            raise self._given_up(bad, progress.update + 1, f", as in all of the last {MAX_BAD_UPDATES} updates")

    def _given_up(self, bad: BadUpdate, update: int, repeated: str = "") -> DataError:
        return DataError(
            f"{bad.verdict} at update {update}: {bad}{repeated}. {bad.advice} "
            f"The last good state is kept; go on with: {how_to_resume(self.folder, self.device)} --force --set KEY=VALUE"
        )

    def _clock(self) -> Clock:
        progress, settings = self.progress, self.settings
        epochs = progress.epoch + progress.group / len(self.epoch.groups)
        fraction = max(epochs / settings.epochs, progress.update / settings.updates if settings.updates else 0.0)
        return Clock(progress.update, epochs, fraction, progress.plateaus)

    def _count(self, stats: LossStats) -> None:
        progress = self.progress
        progress.update += 1
        progress.group += 1
        progress.nll += stats.nll
        progress.words += stats.tokens
        progress.guidance += stats.alignment_loss
        progress.guided += stats.linked_tokens
        self.pace.add_update(self._tick())
        if not progress.words:  # all updates since the last line of the log were skipped
            return
        self.log.advance(self._training_record())
        if progress.update % self.settings.log_every == 0:
            self.log.trained(self._training_record())
            progress.nll, progress.words, self.logged_at = 0.0, 0, progress.seconds
            progress.guidance, progress.guided = 0.0, 0

    def _training_record(self) -> dict[str, Any]:
        progress = self.progress
        loss, seconds = progress.nll / progress.words, max(progress.seconds - self.logged_at, 1e-9)
        alignment = {"alignment_loss": progress.guidance / progress.guided} if progress.guided else {}
        decay = self.settings.scheduled_sampling
        sampling = {} if decay is None else {"gold_probability": teacher_forcing_ratio(decay, progress.update)}
        return {
            "epoch": progress.epoch + 1,
            "update": progress.update,
            "loss": loss,
            "perplexity": math.exp(min(loss, 100)),
            **alignment,
            **sampling,
            "tokens_per_second": progress.words / seconds,
            "rate": self.train_step.rate,
            "seconds": progress.seconds,
            "seconds_left": self._seconds_left(),
        }

    def _seconds_left(self) -> float:
        every = self.settings.validation.every or len(self.epoch.groups)
        return self.pace.seconds_left(self.log.updates - self.progress.update, validate_every=every)

    def _tick(self) -> float:
        """Add the time since the last tick to that spent training, and return it, in seconds."""
        now = time.monotonic()
        elapsed, self.timer = now - self.timer, now
        self.progress.seconds += elapsed
        return elapsed

    # --- validation ----------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        """Judge the model, keep it if it is among the best, and save the state to resume from."""
        self._tick()
        logged_for = self.progress.seconds - self.logged_at
        with use_weights(self.average.weights, self.weights) if self.average is not None else nullcontext():
            record = self._judge()
            rank = self.validator.rank(record)
            improved = self.progress.best is None or rank > self.progress.best
            self._keep(rank, improved=improved)
        self._follow_plateau(improved=improved)
        self.pace.validation = self._tick()
        self.logged_at = self.progress.seconds - logged_for  # validation does not count as training speed
        self.log.validated({**self._where(), **record, "best": improved})
        self.progress.validated = self.progress.update
        self.save()

    def _judge(self) -> dict[str, Any]:
        """The validation's figures. Raises DataError if the weights give none, and Stop as soon as it is asked for."""
        try:
            with self.stopping.at_once(), within_memory("a batch of the validation text"):
                return self.validator.validate()
        except BadUpdate as bad:
            raise self._given_up(bad, self.progress.update) from None

    def _where(self) -> dict[str, Any]:
        epoch = min(self.progress.epoch + 1, self.settings.epochs)  # the last one may have ended
        return {"epoch": epoch, "update": self.progress.update, "seconds": self.progress.seconds}

    def _keep(self, rank: Rank, *, improved: bool) -> None:
        """Save the weights as the model if they are the best, and among the best few if they belong there."""
        progress = self.progress
        if improved:
            progress.best, progress.stale = rank, 0
            save_tensors(self.weights, self.folder / WEIGHTS)
        else:
            progress.stale += 1
        self.best.consider(self.weights, rank)

    def _follow_plateau(self, *, improved: bool) -> None:
        progress, schedule = self.progress, self.settings.schedule
        progress.plateau = 0 if improved else progress.plateau + 1
        if schedule.kind == "plateau" and progress.plateau >= schedule.patience:
            progress.plateau, progress.plateaus = 0, progress.plateaus + 1

    def _average_best(self) -> None:
        """Let the mean of the best checkpoints be the model if it validates better than each of them."""
        mean = self.best.mean()
        if mean is None or self.progress.best is None:
            return
        with use_weights(mean, self.weights):
            record = self._judge()
            rank = self.validator.rank(record)
            improved = rank > self.progress.best
            if improved:
                self.progress.best = rank
                save_tensors(self.weights, self.folder / WEIGHTS)
        self.log.validated(
            {**self._where(), **record, "best": improved, "note": f"mean of the best {len(self.progress.kept)}"}
        )

    # --- saving and stopping -------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the state to resume from, then remove checkpoints that are no longer among the best.

        Not after an update that could not be taken: the weights may be what is wrong.
        """
        if self.progress.bad and self.progress.validated != self.progress.update:
            return
        self.progress.records = self.log.sync()
        save_state(
            self.folder,
            State(
                self.progress,
                self.text.fingerprints,
                self.settings.optimizer.kind,
                self.weights,
                {} if self.average is None else self.average.weights,
                optimizer_tensors(self.train_step.optimizer),
                generator_states(self.device),
                torch.get_num_threads(),
                arithmetic(),
            ),
        )
        self.saved = time.monotonic()
        self.best.remove_others()

    def _restore(self, state: State) -> None:
        """Go on from a saved state. Raises DataError if it is one of another model."""
        threads = torch.get_num_threads()
        if self.device.type == "cpu" and state.threads not in (None, threads):
            _log.warning(
                "The run in %s had --threads %d and goes on with %d: it will come to another model than one that was never ended.",
                self.folder,
                state.threads,
                threads,
            )
        if state.arithmetic not in (None, arithmetic()):
            _log.warning(
                "The run in %s computed with %s and goes on with %s: it will come to another model than one that was never ended.",
                self.folder,
                state.arithmetic,
                arithmetic(),
            )
        if changed := _reshaped(self.weights, state.weights):
            raise DataError(
                f"The run in {self.folder} cannot go on with this recipe, not even by --force: {changed}. Train anew, "
                "in another folder."
            )
        copy_weights(state.weights, self.weights)
        if self.average is not None:
            copy_weights(state.average or state.weights, self.average.weights)
        if state.kind == self.settings.optimizer.kind:
            restore_optimizer(self.train_step.optimizer, state.optimizer)
        restore_generators(state.generators, self.device)

    def _stop(self) -> NoReturn:
        """Save, and end as the signal asks."""
        self.save()
        if not self.progress.bad and not (self.folder / WEIGHTS).exists():
            save_tensors(self.weights if self.average is None else self.average.weights, self.folder / WEIGHTS)
        outcome = f"The state is saved; go on with: {how_to_resume(self.folder, self.device)}"
        raise Interrupted(outcome, self.stopping.signal or signal.SIGINT)

    def _introduce(self) -> None:
        self.log.show(f"{self.text.train.name}: {self.corpus.report}")
        for line in self.validator.introduction():
            self.log.show(line)
        parameters = sum(value.numel() for value in self.weights.values())
        self.log.show(
            f"{self.recipe.name}: {parameters / 1e6:.1f} M parameters, {counted(len(self.epoch.groups), 'update')} per epoch, "
            f"{self.precision} on {self.device}, {counted(torch.get_num_threads(), 'thread')}; run folder {self.folder}"
        )
        if self.is_new and (advice := advise(self.recipe, self._extent(parameters))):
            self.log.show(advice)
        self.timer = time.monotonic()

    def _extent(self, parameters: int) -> TrainingSize:
        corpus, bundle = self.corpus, self.bundle
        tokens = int(corpus.source_lengths.sum()), int(corpus.target_lengths.sum())
        return TrainingSize(len(corpus), tokens, (len(bundle.source), len(bundle.target)), parameters)


def _reshaped(expected: Tensors, stored: Tensors) -> str | None:
    """How stored weights differ in shape from those expected, if they do."""
    if odd := sorted(expected.keys() ^ stored.keys()):
        return f"only one of the two has {odd[0]}"
    for name, value in expected.items():
        if value.shape != stored[name].shape:
            return f"{name} is {list(stored[name].shape)} but would be {list(value.shape)}"
    return None
