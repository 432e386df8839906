"""Train a model: the training loop, and what happens around each update."""

from __future__ import annotations

import math
import signal
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import torch

from nmt.alignment.corpus_links import TokenLinks, splits_of
from nmt.bundle.folder import SOURCE, TARGET, WEIGHTS, Bundle, weights_of
from nmt.data.encoded import encode_corpus
from nmt.data.mixture import describe_mixture, split_tags_warning
from nmt.data.sampled import pairs_of
from nmt.errors import DataError, NmtError
from nmt.model.build import build_model
from nmt.model.interface import ModelBuilder
from nmt.recipe import Recipe, load_recipe
from nmt.runtime.arguments import as_path
from nmt.runtime.device import as_device, check_precision, choose_precision, torch_defaults
from nmt.runtime.progress import with_rate
from nmt.runtime.wording import counted
from nmt.text.subwords import Subwords
from nmt.training.advice import TrainingSize, advise
from nmt.training.ahead import ahead
from nmt.training.best import BestCheckpoints
from nmt.training.checkpoint import Progress, Rank, State, has_state, save_state
from nmt.training.data_file import DataDescription, TextDescription
from nmt.training.epoch import Epoch, plan_epoch
from nmt.training.folder import check_text, open_folder, resume_command
from nmt.training.guard import MAX_BAD_UPDATES, BadUpdate, Diverged, OutOfMemory, within_memory
from nmt.training.launch import is_orphan
from nmt.training.lock import lock_folder
from nmt.training.log import Log
from nmt.training.meter import Meter
from nmt.training.optim import Clock, MovingAverage, use_weights
from nmt.training.overlap import overlap_warning
from nmt.training.parallel import LostRank, Ranks, device_of_rank, open_ranks
from nmt.training.pretrained import Pretrained, load_pretrained
from nmt.training.resuming import collect_state, restore_state
from nmt.training.sampling import teacher_forcing_ratio
from nmt.training.several_sentences import several_sentences_warning
from nmt.training.stats import LossStats, PendingStats
from nmt.training.stopping import Stop, Stopping
from nmt.training.text import TrainingText
from nmt.training.update import PreparedGroup, TrainStep
from nmt.training.validation import Validator, usable_tokenizer
from nmt.training.yielding import Yielding

SAVE_EVERY = 600.0
"""Seconds after which the state is saved even if no validation is due."""

EXPLOSION = 10
"""How many times the perplexity of the best validation shows that training diverged."""


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        folder: the run folder.
        metric: the first validation metric.
        best: its value in the best validation.
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
        force: resume even if the recipe or the text has changed.
        quiet: show nothing on stderr.
        build_model: builds the model of the recipe. Any `TranslationModel` works; `nmt.load` then needs the same argument.

    Raises:
        DataError: the text or the folder cannot be used, or training diverged or ran out of memory.
        UsageError: an argument is invalid, or the folder holds a run already, is in use, or belongs to another recipe.
        Interrupted: a signal stopped the training; its state is saved.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    folder, device = as_path(folder, "The run folder"), device_of_rank(as_device(device))
    with Stopping() as stopping:
        try:
            with _open_run(folder, device, resume=resume) as ranks:
                with stopping.at_once():
                    trainer = _prepare(
                        recipe,
                        folder,
                        stopping,
                        build_model,
                        ranks,
                        device=device,
                        resume=resume,
                        force=force,
                        quiet=quiet,
                    )
                return trainer.run()
        except (Stop, KeyboardInterrupt):
            if has_state(folder):
                outcome = f"The last saved state is kept; go on with: {resume_command(folder, device)}"
            else:
                outcome = "Training had not begun yet."
            raise Interrupted(outcome, stopping.signal or signal.SIGINT) from None
        except torch.OutOfMemoryError:  # outside a batch; a batch would be skipped
            raise DataError(f"{OutOfMemory.verdict}. {OutOfMemory.advice}") from None


@contextmanager
def _open_run(folder: Path, device: torch.device, *, resume: bool) -> Iterator[Ranks]:
    """A context in which the ranks are connected and the first of them has the lock of the run folder."""
    with ExitStack() as stack:
        ranks = stack.enter_context(open_ranks(device))
        if ranks.is_first:
            if resume and not folder.is_dir():
                raise DataError(f"There is no model folder {folder}.")
            stack.enter_context(lock_folder(folder))
        yield ranks


def _prepare(
    recipe: Recipe,
    folder: Path,
    stopping: Stopping,
    build_model: ModelBuilder,
    ranks: Ranks,
    *,
    device: torch.device,
    resume: bool,
    force: bool,
    quiet: bool,
) -> Trainer:
    """Check the folder, load the text, build the model, and write all of the model folder but the weights."""
    state = ranks.from_first(lambda: open_folder(recipe, folder, resume=resume, force=force))
    tokenizer = usable_tokenizer(recipe, None if state is None else state.progress.tokenizer)
    with ranks.first_alone():
        text = TrainingText.load(recipe)
    pretrained = None if state is not None else load_pretrained(recipe, build_model)
    source, target = ranks.from_first(lambda: _subwords(recipe, folder, text, state, pretrained, force=force))
    bundle = Bundle.fresh(recipe, source, target, build_model)
    start = None if pretrained is None else pretrained.copy_to(bundle)
    bundle.model.to(device)
    with ranks.first_alone():
        trainer = Trainer(
            bundle, text, folder, stopping, state, ranks, start=start, tokenizer=tokenizer, device=device, quiet=quiet
        )
    if ranks.is_first:
        bundle.save_description(folder)
        trainer.data_description().save(folder)
    return trainer


def _subwords(
    recipe: Recipe, folder: Path, text: TrainingText, state: State | None, pretrained: Pretrained | None, *, force: bool
) -> tuple[Subwords, Subwords]:
    """The subword models of a new run, or those of the run that is resumed, whose text must be the same unless `force` is set."""
    if state is None:
        return text.subwords(recipe) if pretrained is None else pretrained.subwords(recipe, text)
    if not force:
        check_text(state, text, folder)
    return Subwords.load(folder / SOURCE), Subwords.load(folder / TARGET)


class Trainer:
    """One run: trains the model, validates it, logs and saves."""

    def __init__(
        self,
        bundle: Bundle,
        text: TrainingText,
        folder: Path,
        stopping: Stopping,
        state: State | None,
        ranks: Ranks,
        *,
        start: str | None,
        tokenizer: str,
        device: torch.device,
        quiet: bool,
    ) -> None:
        self.bundle, self.text, self.folder, self.stopping, self.device = bundle, text, folder, stopping, device
        self.recipe, self.settings, self.ranks = bundle.recipe, bundle.recipe.training, ranks
        self.is_new, self.start = state is None, start
        self.progress = Progress() if state is None else state.progress
        self.progress.tokenizer = tokenizer
        self.precision = choose_precision(self.settings.precision, device)
        check_precision(self.precision, bundle.model, device)
        filters, quiet = self.recipe.data.filters, quiet or not ranks.is_first
        show = partial(
            with_rate, what="encoding", total=len(text.train), unit="pairs", quiet=quiet, size=attrgetter("total")
        )
        self.corpus = encode_corpus(text.train, bundle.source, bundle.target, filters, watch=show)
        self.epoch = self._plan_epoch(min(self.progress.epoch, self.settings.epochs - 1), quiet=quiet)

        links = None
        if text.links is not None:
            links = TokenLinks(text.links, self.corpus, bundle.source, bundle.target, splits_of(text.train))
        self.weights = weights_of(bundle.model)
        self.average = MovingAverage(self.weights, self.settings.ema) if self.settings.ema else None
        self.train_step = TrainStep(bundle, links, precision=self.precision, device=device, ranks=ranks)
        if state is not None:
            restore_state(state, folder, self.weights, self.average, self.train_step)

        self.validator = Validator(bundle, text.valid, tokenizer, precision=self.precision, device=device, ranks=ranks)
        written = folder if ranks.is_first else None
        self.best = BestCheckpoints(written, self.progress, self.settings.validation.keep_best)
        self.new_metrics = self.best.start_anew(self.validator.metrics)
        updates = int(min(len(self.epoch.groups) * self.settings.epochs, self.settings.updates or math.inf))
        board = self.settings.tensorboard
        self.log = Log(written, updates=updates, done=self.progress.update, quiet=quiet, tensorboard=board)
        self.meter = Meter(self.progress)
        self.pending: deque[tuple[int, PendingStats]] = deque()
        """The updates, by number, whose losses have not been read: at most one, while a GPU computes it."""
        self.saved_at = time.monotonic()
        self.says_divergence = True

    def data_description(self) -> DataDescription:
        """The texts of this run, and what the filters removed from them."""
        return DataDescription(
            train=TextDescription.of(self.text.train, self.corpus.report),
            valid=TextDescription.of(self.text.valid, self.validator.corpus.report),
        )

    # --- the loop ------------------------------------------------------------------------------------------------

    def run(self) -> TrainingResult:
        """Train until the last update, or until validation no longer improves."""
        with self.log, Yielding():
            self._log_introduction()
            self.meter.start()
            try:
                self._run()
            except Stop:
                self._stop()
            except LostRank as lost:
                if self.stopping.signal is not None:
                    self._stop()
                if not self.ranks.is_first:
                    raise  # the first rank tells the user
                self.save()
                raise DataError(f"{lost} {self._saved()}") from None
        progress, metric = self.progress, self.settings.validation.metrics[0]
        best = 0.0 if progress.best is None else abs(progress.best[0])
        return TrainingResult(self.folder, metric, best, progress.update, progress.seconds)

    def _run(self) -> None:
        if self.is_new:
            self.save()  # a folder with weights but without a state then belongs to no run
        else:
            self.log.truncate(self.progress.records)
            if self.new_metrics:
                self.log.show(
                    f"Validation now compares {', then '.join(self.validator.metrics)}: best and patience start anew."
                )
            self.best.remove_others()
            self._validate_if_due()  # the run may have ended between an update and its validation
        self._validate_start()
        while not self._is_finished():
            with closing(self._prepared_groups()) as groups:
                for group in groups:
                    self._update(group)
                    self._validate_if_due()
                    self._check_signals()
                    if self._is_finished():
                        break
                    if time.monotonic() - self.saved_at > SAVE_EVERY:
                        self.save()
                else:
                    self._next_epoch()
        self._validate_mean()

    def _prepared_groups(self) -> Generator[PreparedGroup]:
        """The batches of the remaining updates of the epoch, built while the update before is computed."""
        groups, first = self.epoch.groups, self.progress.group
        prepare = partial(self.train_step.prepare, self.epoch.corpus)
        return ahead(prepare, (groups[number] for number in range(first, len(groups))))

    def _check_signals(self) -> None:
        """Raise Stop if a rank has received a signal or lost its launcher, so that all of them stop after the same update."""
        if self.ranks.any(self.stopping.signal is not None or is_orphan()):
            raise Stop

    def _is_finished(self) -> bool:
        settings, progress = self.settings, self.progress
        patience = settings.validation.patience
        return (
            progress.epoch >= settings.epochs
            or progress.update >= (settings.updates or math.inf)
            or (patience is not None and progress.stale >= patience)
        )

    def _next_epoch(self) -> None:
        self.progress.epoch += 1
        self.progress.group = 0
        if not self._is_finished():
            self.epoch = self._plan_epoch(self.progress.epoch, quiet=self.log.quiet or self.log.live is not None)

    def _plan_epoch(self, number: int, *, quiet: bool) -> Epoch:
        show = partial(
            with_rate, what="sampling subwords", total=len(self.corpus), unit="pairs", quiet=quiet, size=pairs_of
        )
        return plan_epoch(self.recipe, self.corpus, self.bundle.source, self.bundle.target, number, show)

    # --- one update ----------------------------------------------------------------------------------------------

    def _update(self, group: PreparedGroup) -> None:
        """Train on the batches of one update, or skip them; count and log it, or the one before while a GPU computes this one."""
        progress, update = self.progress, self.progress.update + 1
        try:
            stats = self.train_step.update(group, self._clock())
        except BadUpdate as reason:
            self._read_pending()
            self._skip(reason, update)
        else:
            if self.average is not None:
                self.average.add(self.weights, update)
            self.pending.append((update, stats))
        progress.update += 1
        progress.group += 1
        self._read_pending(but=1 if self.device.type == "cuda" else 0)
        if not self.meter.is_empty:
            self._log_update()

    def _read_pending(self, but: int = 0) -> None:
        """Read the losses of all updates but the last ones, and count these updates."""
        while len(self.pending) > but:
            update, pending = self.pending.popleft()
            try:
                stats = pending.read()
            except BadUpdate as reason:
                self._skip(reason, update)
            else:
                self.progress.bad = 0
                self.meter.add_update(stats)

    def _skip(self, reason: BadUpdate, update: int) -> None:
        """Count and log a bad update. Raises DataError if there were too many in a row."""
        progress = self.progress
        progress.bad += 1
        progress.skipped += 1
        self.meter.add_update(LossStats())
        self.log.skipped(
            {"epoch": progress.epoch + 1, "update": update, "reason": str(reason), "skipped": progress.skipped}
        )
        if progress.bad >= MAX_BAD_UPDATES:
            raise self._failure(reason, update, f", as in all of the last {MAX_BAD_UPDATES} updates")

    def _failure(self, reason: BadUpdate, update: int, repetition: str = "") -> DataError:
        return DataError(
            f"{reason.verdict} at update {update}: {reason}{repetition}. {reason.advice} The last good state is kept; "
            f"go on with: {resume_command(self.folder, self.device)} --force --set KEY=VALUE"
        )

    def _clock(self) -> Clock:
        progress, settings = self.progress, self.settings
        epochs = progress.epoch + progress.group / len(self.epoch.groups)
        fraction = max(epochs / settings.epochs, progress.update / settings.updates if settings.updates else 0.0)
        return Clock(progress.update, epochs, fraction, progress.plateaus)

    def _log_update(self) -> None:
        record = self._training_record()
        self.log.advance(record)
        if self.progress.update % self.settings.log_every == 0:
            self.log.trained(record)
            self.meter.reset()

    def _training_record(self) -> dict[str, Any]:
        progress, meter, sampling = self.progress, self.meter, self.settings.scheduled_sampling
        # The log has always called the teacher forcing ratio `gold_probability`.
        ratio = {} if sampling is None else {"gold_probability": teacher_forcing_ratio(sampling, progress.update)}
        validate_every = self.settings.validation.every or len(self.epoch.groups)
        return {
            "epoch": progress.epoch + 1,
            "update": progress.update,
            **meter.losses(),
            **ratio,
            "tokens_per_second": meter.tokens_per_second,
            "rate": self.train_step.rate,
            "seconds": progress.seconds,
            "seconds_left": meter.pace.seconds_left(self.log.updates - progress.update, validate_every=validate_every),
        }

    # --- validation ----------------------------------------------------------------------------------------------

    def _validate_if_due(self) -> None:
        """Validate every so many updates or at the end of each epoch, and after the last update."""
        settings, progress = self.settings, self.progress
        if progress.validated == progress.update:
            return
        every = settings.validation.every
        ends_epoch = progress.group == len(self.epoch.groups)
        ends_training = progress.update == settings.updates or (ends_epoch and progress.epoch + 1 == settings.epochs)
        if ends_training or (progress.update % every == 0 if every else ends_epoch):
            self._validate()

    def _validate_start(self) -> None:
        """Validate a pretrained model before the first update: it stays the model unless training improves it."""
        progress = self.progress
        if self.settings.pretrained is not None and progress.update == 0 and progress.best is None:
            self._validate()

    def _validate(self) -> None:
        """Validate the model, save it if it is among the best, and save the state."""
        self._read_pending()
        with self.meter.validation():
            with nullcontext() if self.average is None else use_weights(self.average.weights, self.weights):
                record, rank = self._figures()
                improved = self.best.add(self.weights, rank)
            self._update_plateau(improved=improved)
        self._log_validation(record, improved=improved)
        self._warn_if_diverged(record["perplexity"])
        self.progress.validated = self.progress.update
        self.save()

    def _validate_mean(self) -> None:
        """Save the mean of the best checkpoints as the model if it is better than each of them."""
        mean = self.ranks.from_first(self.best.mean)
        if mean is None or self.progress.best is None:
            return
        with use_weights(mean, self.weights):
            record, rank = self._figures()
            improved = rank > self.progress.best
            if improved:
                self.progress.best = rank
                self.best.save_model(self.weights)
        self._log_validation(record, improved=improved, note=f"mean of the best {len(self.progress.kept)}")

    def _figures(self) -> tuple[dict[str, Any], Rank]:
        """The figures of the current weights and their rank. A signal raises Stop at once.

        Raises:
            DataError: the loss is not finite, or memory ran out.
        """
        try:
            with self.stopping.at_once(), within_memory("a batch of the validation text"):
                record = self.validator.validate()
        except BadUpdate as reason:
            raise self._failure(reason, self.progress.update) from None
        return record, self.validator.rank(record)

    def _log_validation(self, record: dict[str, Any], *, improved: bool, **note: str) -> None:
        epoch = min(self.progress.epoch + 1, self.settings.epochs)  # the last epoch may have ended
        place = {"epoch": epoch, "update": self.progress.update, "seconds": self.progress.seconds}
        self.log.validated({**place, **record, "best": improved, **note})

    def _warn_if_diverged(self, perplexity: float) -> None:
        """Say once that the perplexity has exploded."""
        best = self.progress.best
        if self.says_divergence and best is not None and perplexity > EXPLOSION * -best[-1]:
            self.log.show(f"{Diverged.verdict}: perplexity is above {EXPLOSION} times the best. {Diverged.advice}")
            self.says_divergence = False

    def _update_plateau(self, *, improved: bool) -> None:
        """Count validations without improvement, and have a plateau schedule reduce the learning rate after `patience`."""
        progress, schedule = self.progress, self.settings.schedule
        progress.plateau = 0 if improved else progress.plateau + 1
        if schedule.kind == "plateau" and progress.plateau >= schedule.patience:
            progress.plateau, progress.plateaus = 0, progress.plateaus + 1

    # --- saving and stopping -------------------------------------------------------------------------------------

    def save(self) -> None:
        """Save the state, then remove checkpoints that are no longer among the best. Only the first rank does.

        After a bad update that no validation has followed nothing is saved, because the weights may be the cause.
        """
        self._read_pending()
        if not self.ranks.is_first or (self.progress.bad and self.progress.validated != self.progress.update):
            return
        self.progress.records = self.log.sync()
        save_state(self.folder, collect_state(self.progress, self.text, self.weights, self.average, self.train_step))
        self.saved_at = time.monotonic()
        self.best.remove_others()

    def _stop(self) -> NoReturn:
        """Save the state, and a model if there is none yet, and raise Interrupted."""
        self.save()
        if not self.progress.bad and not (self.folder / WEIGHTS).exists():
            self.best.save_model(self.weights if self.average is None else self.average.weights)
        raise Interrupted(self._saved(), self.stopping.signal or signal.SIGINT)

    def _saved(self) -> str:
        return f"The state is saved; go on with: {resume_command(self.folder, self.device)}"

    def _log_introduction(self) -> None:
        """Show corpus, metrics, model and machine, and advice if the model is too large."""
        self.log.show(f"{self.text.train.name}: {self.corpus.report}")
        if mixed := describe_mixture(self.recipe.data, self.corpus.parts):
            self.log.show(mixed)
        if split := split_tags_warning(self.recipe.data, self.bundle.source):
            self.log.show(split)
        if self.start is not None:
            self.log.show(self.start)
        if self.is_new and not self.log.quiet and (warning := overlap_warning(self.recipe.data, self.text)):
            self.log.show(warning)
        if self.is_new and not self.log.quiet and (crowded := several_sentences_warning(self.text.train)):
            self.log.show(crowded)
        for line in self.validator.introduction():
            self.log.show(line)
        size = self._size()
        self.log.show(
            f"{self.recipe.name}: {size.parameters / 1e6:.1f} M parameters, "
            f"{counted(len(self.epoch.groups), 'update')} per epoch, {self.precision} on {self.device}, "
            f"{self._machine()}; run folder {self.folder}"
        )
        if self.train_step.is_compiled:
            self.log.show("PyTorch compiles the steps of the model in the first updates, which takes about a minute.")
        if self.is_new and (advice := advise(self.recipe, size)):
            self.log.show(advice)

    def _machine(self) -> str:
        """Threads and processes."""
        threads = counted(torch.get_num_threads(), "thread")
        return threads if self.ranks.count == 1 else f"{self.ranks.count} processes of {threads}"

    def _size(self) -> TrainingSize:
        corpus, bundle = self.corpus, self.bundle
        return TrainingSize(len(corpus), corpus.tokens, (len(bundle.source), len(bundle.target)), bundle.parameters)
