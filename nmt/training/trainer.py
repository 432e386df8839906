"""The training loop, and all that happens around one update."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from nmt.bundle import WEIGHTS, Bundle, check_folder, load_tensors, save_tensors, weights_of
from nmt.data.batching import Batch, make_batch, plan_batches
from nmt.data.encoded import encode_corpus
from nmt.device import autocast, choose_precision
from nmt.errors import DataError, NmtError, UsageError
from nmt.recipe import Recipe, changed_keys
from nmt.training.average import mean_weights
from nmt.training.checkpoint import BEST, Progress, State, best_file, has_state, load_state, save_state
from nmt.training.guidance import guided_cross_entropy, weight_in_epoch
from nmt.training.links import PieceLinks
from nmt.training.log import Log
from nmt.training.loss import loss_of_batch
from nmt.training.optim import Clock, MovingAverage, build_optimizer, copy_into, rate_factor, using
from nmt.training.sampling import gold_probability, mix
from nmt.training.text import Encoded, TrainingText, corpus_of_epoch
from nmt.training.validation import Validator


@dataclass(frozen=True)
class Result:
    """What a finished run came to."""

    folder: Path
    metric: str
    best: float
    updates: int
    seconds: float


class Interrupted(NmtError):  # noqa: N818 -- not an error
    """Training was stopped by a signal, and its state is saved."""

    def __init__(self, folder: Path, signal_number: int) -> None:
        super().__init__(
            f"Stopped. The state is saved; go on with: nmt train {folder}/recipe.yaml --out {folder} --resume"
        )
        self.exit_status = 128 + signal_number


def train(
    recipe: Recipe,
    folder: Path,
    *,
    device: torch.device,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> Result:
    """Train the model of a recipe into a run folder, which is a model folder from the first validation on.

    Args:
        recipe: what to train on, with and how.
        folder: new, empty, or (with `resume`) that of an earlier run.
        device: where to compute.
        resume: go on from the state in the folder.
        force: resume even if the recipe is not the one that the run was started with.
        quiet: say nothing on stderr.

    Raises:
        DataError: the text, or the folder, cannot be used.
        UsageError: the folder holds a run already, or the recipe contradicts it.
        Interrupted: a signal asked to stop; the state is saved.
    """
    _check_target_folder(recipe, folder, resume=resume, force=force)
    text = TrainingText.load(recipe)
    if resume:
        bundle = Bundle.load(folder, device, weights=False)
        bundle = Bundle(recipe, bundle.source, bundle.target, bundle.model)
    else:
        bundle = Bundle.fresh(recipe, *text.subwords(recipe))
        bundle.model.to(device)
    bundle.save_description(folder)
    trainer = Trainer(bundle, text, folder, device=device, quiet=quiet)
    if resume and has_state(folder):  # else it was stopped before its first save: begin again
        trainer.restore(load_state(folder))
    return trainer.run()


def _check_target_folder(recipe: Recipe, folder: Path, *, resume: bool, force: bool) -> None:
    if not resume:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} exists already: go on with --resume, or choose another folder with --out.")
        return
    check_folder(folder, ["recipe.yaml", "source.model", "target.model"])
    changed = changed_keys(recipe, folder / "recipe.yaml")
    if changed and not force:
        raise UsageError(
            f"The recipe differs from that of the run in {folder} in {', '.join(changed)}: undo that, or add --force."
        )


@dataclass(frozen=True)
class Epoch:
    """The corpus as an epoch sees it, and the batches of each of its updates."""

    corpus: Encoded
    groups: list[list[list[int]]]


class Trainer:
    """One run: the model, what moves it, what judges it, and where it is written."""

    def __init__(self, bundle: Bundle, text: TrainingText, folder: Path, *, device: torch.device, quiet: bool) -> None:
        self.bundle, self.text, self.folder, self.device = bundle, text, folder, device
        self.recipe, self.settings = bundle.recipe, bundle.recipe.training
        self.model = bundle.model
        self.weights = weights_of(self.model)
        self.optimizer = build_optimizer(self.settings.optimizer, self.model.parameters())
        self.average = MovingAverage(self.weights, self.settings.ema) if self.settings.ema else None
        self.precision = choose_precision(self.settings.precision, device)
        self.corpus = encode_corpus(text.train, bundle.source, bundle.target, self.recipe.data.filters)
        self.links: PieceLinks | None = None
        if text.links is not None:
            self.links = PieceLinks(text.links, self.corpus, bundle.source, bundle.target)
        self.validator = Validator(bundle, text.valid, precision=self.precision, device=device)
        self.progress = Progress()
        self.epoch = self._open_epoch(0)
        updates = min(len(self.epoch.groups) * self.settings.epochs, self.settings.updates or math.inf)
        self.log = Log(folder, updates=int(updates), quiet=quiet, tensorboard=self.settings.tensorboard)
        self.timer = time.monotonic()
        self.logged_at = 0.0
        self.asked_to_stop: int | None = None

    # --- the loop ------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Train to the end, or until validation stands still."""
        with self.log, self._signals():
            self._introduce()
            while not self._finished():
                for group in self.epoch.groups[self.progress.group :]:
                    self._update(group)
                    if self._due():
                        self._validate()
                    if self.asked_to_stop is not None:
                        self._stop(self.asked_to_stop)
                    if self._finished():
                        break
                else:
                    self._end_epoch()
            self._average_best()
        progress = self.progress
        return Result(
            self.folder, self.settings.validation.metric, progress.best or 0.0, progress.update, progress.seconds
        )

    def _finished(self) -> bool:
        settings, progress = self.settings, self.progress
        patience = settings.validation.patience
        return (
            progress.epoch >= settings.epochs
            or progress.update >= (settings.updates or math.inf)
            or (patience is not None and progress.stale >= patience)
        )

    def _open_epoch(self, number: int) -> Epoch:
        corpus = corpus_of_epoch(self.recipe, self.corpus, self.bundle.source, self.bundle.target, number)
        plan = plan_batches(
            corpus.source_lengths,
            corpus.target_lengths,
            batch_tokens=self.settings.batch_tokens,
            seed=self.recipe.seed,
            epoch=number,
        )
        size = self.settings.accumulate
        batches = [rows.tolist() for rows in plan]
        return Epoch(corpus, [batches[start : start + size] for start in range(0, len(batches), size)])

    def _due(self) -> bool:
        """Whether this update is followed by a validation: every so often, and at the end."""
        settings, progress = self.settings, self.progress
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
        """Gradients of the mean loss a target piece over the group, clipped, and a step of the optimiser."""
        self.model.train()
        for own in self.optimizer.param_groups:
            own["lr"] = self.settings.optimizer.rate * rate_factor(self.settings.schedule, self._clock())
        batches = [self._batch(rows) for rows in group]
        words = sum(batch.tokens for batch in batches)
        nll = 0.0
        for batch in batches:
            loss, plain = self._loss(batch)
            torch.autograd.backward(loss / words)
            nll += float(plain)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm or math.inf)
        if not math.isfinite(nll) or not math.isfinite(float(norm)):
            raise DataError(
                f"Training diverged at update {self.progress.update + 1}: the loss or its gradient is no longer a number. "
                "Lower training.optimizer.rate, lengthen training.schedule.warmup, or lower training.clip_norm."
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._count(nll, words)

    def _batch(self, rows: Sequence[int]) -> Batch:
        """Rows of the epoch's corpus, with links if training is guided and words of the model's own if that is scheduled."""
        pairs = self.epoch.corpus[rows]
        links = None if self.links is None else self.links.of_batch(pairs, rows)
        batch = make_batch(pairs, rows, links).to(self.device)
        decay = self.settings.scheduled_sampling
        if decay is None:
            return batch
        with autocast(self.precision, self.device):
            return replace(batch, target_in=mix(self.model, batch, gold_probability(decay, self.progress.update)))

    def _loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What a batch is trained on, and its plain loss, each the sum over its target pieces."""
        with autocast(self.precision, self.device):
            readouts, alignment = self.model(batch.source, batch.source_mask, batch.target_in)
            smoothing = self.settings.label_smoothing
            loss, plain = loss_of_batch(readouts, self.model.output, batch, smoothing=smoothing)
        if self.settings.guided_alignment is not None and batch.links is not None:
            guidance, guided = guided_cross_entropy(alignment, batch.links)
            loss = loss + weight_in_epoch(self.settings.guided_alignment, self.progress.epoch) * guidance
            self.progress.guidance += float(guidance.detach())
            self.progress.guided += guided
        return loss, plain

    def _clock(self) -> Clock:
        progress, settings = self.progress, self.settings
        epochs = progress.epoch + progress.group / len(self.epoch.groups)
        share = max(epochs / settings.epochs, progress.update / settings.updates if settings.updates else 0.0)
        return Clock(progress.update, epochs, share, progress.plateaus)

    def _count(self, nll: float, words: int) -> None:
        progress = self.progress
        progress.update += 1
        progress.group += 1
        progress.nll += nll
        progress.words += words
        if self.average is not None:
            self.average.follow(self.weights, progress.update)
        self._tick()
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
        sampling = {} if decay is None else {"gold_probability": gold_probability(decay, progress.update)}
        return {
            "epoch": progress.epoch + 1,
            "update": progress.update,
            "loss": loss,
            "perplexity": math.exp(min(loss, 100)),
            **alignment,
            **sampling,
            "tokens_per_second": progress.words / seconds,
            "rate": self.optimizer.param_groups[0]["lr"],
            "seconds": progress.seconds,
            "seconds_per_update": progress.seconds / progress.update,
        }

    def _tick(self) -> None:
        """Add the time since the last tick to that spent training."""
        now = time.monotonic()
        self.progress.seconds += now - self.timer
        self.timer = now

    # --- validation ----------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        """Judge the model, keep it if it is among the best, and save the state to resume from."""
        self._tick()
        logged_for = self.progress.seconds - self.logged_at
        with using(self.average.weights, self.weights) if self.average is not None else _as_it_is():
            record = self.validator.judge()
            figure = self.validator.figure(record)
            improved = self.progress.best is None or figure > self.progress.best
            self._keep(figure, improved=improved)
        self._follow_plateau(improved=improved)
        self._tick()
        self.logged_at = self.progress.seconds - logged_for  # validation does not count as training speed
        self.log.validated({**self._where(), **record, "best": improved})
        self.save()

    def _where(self) -> dict[str, Any]:
        epoch = min(self.progress.epoch + 1, self.settings.epochs)  # the last one may have ended
        return {"epoch": epoch, "update": self.progress.update, "seconds": self.progress.seconds}

    def _keep(self, figure: float, *, improved: bool) -> None:
        """Save the weights as the model if they are the best, and among the best few if they belong there."""
        progress = self.progress
        if improved:
            progress.best, progress.stale = figure, 0
            save_tensors(self.weights, self.folder / WEIGHTS)
        else:
            progress.stale += 1
        ranked = sorted([*progress.kept, (figure, progress.update)], key=lambda kept: (-kept[0], kept[1]))
        progress.kept = ranked[: self.settings.validation.keep_best]
        if self.settings.validation.keep_best > 1 and (figure, progress.update) in progress.kept:
            save_tensors(self.weights, best_file(self.folder, progress.update))

    def _follow_plateau(self, *, improved: bool) -> None:
        progress, schedule = self.progress, self.settings.schedule
        progress.plateau = 0 if improved else progress.plateau + 1
        if schedule.kind == "plateau" and progress.plateau >= schedule.patience:
            progress.plateau, progress.plateaus = 0, progress.plateaus + 1

    def _average_best(self) -> None:
        """Let the mean of the best checkpoints be the model if it validates better than each of them."""
        kept = self.progress.kept
        if len(kept) < 2 or self.progress.best is None:
            return
        last = {name: value.clone() for name, value in self.weights.items()}
        copy_into(self.weights, mean_weights([load_tensors(best_file(self.folder, update)) for _, update in kept]))
        record = self.validator.judge()
        improved = self.validator.figure(record) > self.progress.best
        if improved:
            self.progress.best = self.validator.figure(record)
            save_tensors(self.weights, self.folder / WEIGHTS)
        self.log.validated({**self._where(), **record, "best": improved, "note": f"mean of the best {len(kept)}"})
        copy_into(self.weights, last)

    # --- saving and stopping -------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the state to resume from, then remove checkpoints that are no longer among the best."""
        average = None if self.average is None else self.average.weights
        save_state(self.folder, State(self.progress, self.weights, average, self.optimizer.state_dict()))
        kept = {best_file(self.folder, update) for _, update in self.progress.kept}
        for path in (self.folder / BEST).glob("*.safetensors"):
            if path not in kept:
                path.unlink()

    def restore(self, state: State) -> None:
        """Go on from a saved state."""
        self.progress = state.progress
        if self.progress.epoch and not self._finished():
            self.epoch = self._open_epoch(self.progress.epoch)
        copy_into(self.weights, state.weights)
        if self.average is not None and state.average is not None:
            self.average.weights = dict(state.average)
        self.optimizer.load_state_dict(state.optimizer)
        self.logged_at = self.progress.seconds
        self.log.forget_after(self.progress.update)

    def _stop(self, signal_number: int) -> None:
        self.save()
        if not (self.folder / WEIGHTS).exists():
            save_tensors(self.weights, self.folder / WEIGHTS)
        raise Interrupted(self.folder, signal_number)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM stop after the update at hand; a second Ctrl-C stops at once."""

        def ask(number: int, _: FrameType | None) -> None:
            if self.asked_to_stop is not None:
                raise KeyboardInterrupt
            self.asked_to_stop = number

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _introduce(self) -> None:
        self.log.say(f"{self.text.train.name}: {self.corpus.report}")
        parameters = sum(value.numel() for value in self.weights.values())
        self.log.say(
            f"{self.recipe.name}: {parameters / 1e6:.1f} M parameters, {len(self.epoch.groups)} updates an epoch, "
            f"{self.precision} on {self.device}, {torch.get_num_threads()} threads; run folder {self.folder}"
        )
        self.timer = time.monotonic()


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield
