"""Log a training: `metrics.jsonl` for programs, a live display or plain lines on stderr for people."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import Progress, TaskID, TextColumn

from nmt.errors import UsageError
from nmt.evaluation.metrics import VALIDATION_SCORES
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_records
from nmt.runtime.progress import progress_bar
from nmt.runtime.wording import perplexity
from nmt.training.losses import LossStats

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

METRICS = "metrics.jsonl"
Record = Mapping[str, Any]


class Meter:
    """Adds up the losses and the time of updates."""

    def __init__(self) -> None:
        self.stats = LossStats()
        """Losses since the last line of the log."""
        self.stats_since_validation = LossStats()
        self.seconds = 0.0
        """Training time in total, before and after each resumption."""
        self._last_tick = time.monotonic()
        self._logged_at = 0.0
        """Training time at the last line of the log, plus the time of validations since then."""
        self._updates = 0
        self._seconds_before = 0.0
        """Training time before this process began, which counted no updates."""

    def state_dict(self) -> dict[str, Any]:
        """The losses and the time, under the names that they have always had in the state."""
        stats = self.stats
        losses = {
            "nll": stats.nll,
            "words": stats.tokens,
            "guidance": stats.alignment_loss,
            "guided": stats.linked_tokens,
        }
        since = {"nll": self.stats_since_validation.nll, "tokens": self.stats_since_validation.tokens}
        return {**losses, "since_validation": since, "seconds": self.seconds, "logged_at": self._logged_at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`."""
        numbers = (state.get(name, 0) for name in ("words", "nll", "guidance", "guided"))
        self.stats = LossStats(*numbers)
        self.stats_since_validation = LossStats(**state.get("since_validation", {}))
        self.seconds = self._seconds_before = state.get("seconds", 0.0)
        self._logged_at = state.get("logged_at", self.seconds)

    def start(self) -> None:
        """Start the clock; the time before does not count as training time."""
        self._last_tick = time.monotonic()

    def add(self, stats: LossStats) -> None:
        """Add an update that has just ended."""
        for total in (self.stats, self.stats_since_validation):
            total.nll += stats.nll
            total.tokens += stats.tokens
        self.stats.alignment_loss += stats.alignment_loss
        self.stats.linked_tokens += stats.linked_tokens
        self._updates += 1
        self._tick()

    @contextmanager
    def validation(self) -> Iterator[None]:
        """A context for a validation: its time counts as training time, but not for the tokens per second."""
        self._tick()
        since_log = self.seconds - self._logged_at
        yield
        self._tick()
        self._logged_at = self.seconds - since_log

    def _tick(self) -> None:
        """Add the seconds since the last tick to the training time."""
        now = time.monotonic()
        self.seconds += now - self._last_tick
        self._last_tick = now

    def losses(self) -> dict[str, float]:
        """Loss and perplexity per target token, and with guided alignment the alignment loss per linked token."""
        stats = self.stats
        loss = stats.nll / stats.tokens
        alignment = {"alignment_loss": stats.alignment_loss / stats.linked_tokens} if stats.linked_tokens else {}
        return {"loss": loss, "perplexity": math.exp(min(loss, 100)), **alignment}

    def since_validation(self) -> dict[str, float]:
        """The training perplexity since the last call, if a token was trained on."""
        stats, self.stats_since_validation = self.stats_since_validation, LossStats()
        return {"train_perplexity": math.exp(min(stats.nll / stats.tokens, 100))} if stats.tokens else {}

    def times(self, updates_left: int) -> dict[str, float]:
        """Target tokens per second without validation, the training time, and an estimate of the time left."""
        return {
            "tokens_per_second": self.stats.tokens / max(self.seconds - self._logged_at, 1e-9),
            "seconds": self.seconds,
            "seconds_left": updates_left * (self.seconds - self._seconds_before) / max(self._updates, 1),
        }

    def reset(self) -> None:
        """Begin the figures of the next line of the log."""
        self.stats, self._logged_at = LossStats(), self.seconds


class Log:
    """Writes each record to `metrics.jsonl` and shows it on stderr: a live line on a terminal, plain lines elsewhere.

    Args:
        run: the run folder; None writes nothing.
        updates: number of updates of the whole training.
        done: number of updates completed before.
        quiet: show nothing on stderr.
        tensorboard: also write TensorBoard event files.
    """

    def __init__(self, run: Path | None, *, updates: int, done: int, quiet: bool, tensorboard: bool) -> None:
        self.path = None if run is None else run / METRICS
        self.records = 0
        self.updates = updates
        self.quiet = quiet
        self.console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self.writer: SummaryWriter | None = None
        if tensorboard and run is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise UsageError(
                    'training.tensorboard needs the package tensorboard: pip install "attentional-nmt[tensorboard]".'
                ) from None
            self.writer = SummaryWriter(str(run / "tensorboard"), purge_step=done + 1 if done else None)
        self.live: Progress | None = None
        if self.console.is_terminal and not quiet:
            left = TextColumn("{task.fields[left]} left ")
            self.live = progress_bar(self.console, "{task.percentage:>3.0f}%", left, transient=False)
        self.last_validation = ""
        self.task: TaskID | None = None

    def state_dict(self) -> dict[str, Any]:
        """The number of records."""
        return {"records": self.records}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after so many records: a resumed run repeats the updates after its last saved state."""
        self.records = state.get("records", 0)

    def __enter__(self) -> Self:
        """Keep only the records before the state that the run goes on from, and start the display."""
        if self.path is not None and self.path.is_file():
            lines = self.path.read_bytes().split(b"\n")[:-1][: self.records]  # without an incomplete last line
            write_content(self.path, b"".join(line + b"\n" for line in lines))
            self.records = len(lines)
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()
        if self.writer is not None:
            self.writer.close()

    def show(self, text: str) -> None:
        """Print a line on stderr, unless quiet."""
        if not self.quiet:
            self.console.print(text, markup=False, emoji=False)

    def trained(self, record: Record) -> None:
        """Log the updates since the last such record: loss, perplexity, tokens per second."""
        self._write({"kind": "train", **record})
        if self.live is None:
            epoch, ppl, speed, update, loss = _training_figures(record)
            self.show(f"{epoch}  {update}  {loss}  {ppl}  {speed}  {_duration(record['seconds_left'])} left")

    def validated(self, record: Record) -> None:
        """Log a validation."""
        self._write({"kind": "valid", **record})
        scores = validation_scores(record)
        figures = f"valid  epoch {record['epoch']}  update {record['update']}  ppl {perplexity(record['perplexity'])}"
        notes = [figures, scores, "(best)" if record["best"] else "", record.get("note", "")]
        self.show("  ".join(filter(None, notes)))
        for name, of_pair in record.get("languages", {}).items():
            self.show(f"valid  {name}  ppl {perplexity(of_pair['perplexity'])}  {validation_scores(of_pair)}".rstrip())
        self.last_validation = scores or f"valid ppl {perplexity(record['perplexity'])}"

    def advance(self, record: Record) -> None:
        """Show an update in the live display, if there is one. A narrow terminal shows the first figures."""
        if self.live is None:
            return
        if self.task is None:
            self.task = self.live.add_task("", total=self.updates, left="", figures="")
        epoch, ppl, *figures = _training_figures(record)
        shown = "  ".join(filter(None, [epoch, ppl, self.last_validation, *figures]))
        self.live.update(self.task, completed=record["update"], left=_duration(record["seconds_left"]), figures=shown)

    def skipped(self, record: Record) -> None:
        """Log a bad update."""
        self._write({"kind": "skip", **record})
        self.show(f"Update {record['update']} is skipped: {record['reason']} ({record['skipped']} so far).")

    def sync(self) -> None:
        """Flush all records to disk."""
        if self.path is not None and self.records:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())

    def _write(self, record: Record) -> None:
        if self.path is None:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self.records += 1
        if self.writer is not None:
            pairs = record.get("languages", {}).items()
            of_pairs = {f"{pair}/{name}": value for pair, figures in pairs for name, value in figures.items()}
            for name, value in {**record, **of_pairs}.items():
                if isinstance(value, int | float) and name != "update":
                    self.writer.add_scalar(f"{record['kind']}/{name}", value, record["update"])


def read_validations(folder: Path) -> list[dict[str, Any]]:
    """The records of validations in a run folder's log. Raises DataError if it is damaged."""
    path = folder / METRICS
    records = read_records(path) if path.is_file() else []
    return [record for _, record in records if record.get("kind") == "valid"]


def best_validation(records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The record of the best validation, that of the weights; None if there is none."""
    return next((record for record in reversed(records) if record.get("best")), None)


def best_of_each_language(records: Iterable[Record], metric: str) -> str:
    """The best validation of each pair of languages by a metric; empty if the run has one pair."""
    best: dict[str, tuple[float, int]] = {}
    sign = -1 if metric == "perplexity" else 1
    for record in records:
        for name, figures in record.get("languages", {}).items():
            value = figures.get(metric)  # a resumed run may have had other metrics
            if value is not None and (name not in best or sign * value > sign * best[name][0]):
                best[name] = value, record["update"]
    label = VALIDATION_SCORES.get(metric, metric)
    return ", ".join(f"{name} {label} {value:.2f} (update {update:,})" for name, (value, update) in best.items())


def validation_scores(record: Record) -> str:
    """The metrics of a validation that compare translations, with their names."""
    return "  ".join(f"{name} {record[key]:.2f}" for key, name in VALIDATION_SCORES.items() if key in record)


def _training_figures(record: Record) -> list[str]:
    """The figures of some updates, the most important first."""
    return [
        f"epoch {record['epoch']}",
        f"ppl {perplexity(record['perplexity'])}",
        f"{record['tokens_per_second']:,.0f} tokens/s",
        f"update {record['update']}",
        f"loss {record['loss']:.3f}",
    ]


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(max(seconds, 0))))
