"""Log a training: `metrics.jsonl` for programs, lines on stderr for people."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import UsageError
from nmt.evaluation.metrics import VALIDATION_SCORES
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_records
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
        self.update_seconds = 0.0
        """Time of updates since the last line of the log."""
        self._last_tick = time.monotonic()
        self._updates = 0
        self._seconds_before = 0.0
        """Training time before this process began, which counted no updates."""

    def state_dict(self) -> dict[str, Any]:
        """The losses and the time."""
        return {
            "stats": asdict(self.stats),
            "stats_since_validation": asdict(self.stats_since_validation),
            "seconds": self.seconds,
            "update_seconds": self.update_seconds,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`."""
        self.stats = LossStats(**state.get("stats", {}))
        self.stats_since_validation = LossStats(**state.get("stats_since_validation", {}))
        self.seconds = self._seconds_before = state["seconds"]
        self.update_seconds = state.get("update_seconds", 0.0)

    def tick(self) -> float:
        """Add the seconds since the last tick to the training time and return them."""
        now = time.monotonic()
        elapsed, self._last_tick = now - self._last_tick, now
        self.seconds += elapsed
        return elapsed

    def start(self) -> None:
        """Start the clock; the time before does not count as training time."""
        self._last_tick = time.monotonic()

    def add(self, stats: LossStats) -> None:
        """Add an update that has just ended."""
        self.stats += stats
        self.stats_since_validation += stats
        self._updates += 1
        self.update_seconds += self.tick()

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
            "tokens_per_second": self.stats.tokens / max(self.update_seconds, 1e-9),
            "seconds": self.seconds,
            "seconds_left": updates_left * (self.seconds - self._seconds_before) / max(self._updates, 1),
        }

    def reset(self) -> None:
        """Begin the figures of the next line of the log."""
        self.stats, self.update_seconds = LossStats(), 0.0


class Log:
    """Writes each record to `metrics.jsonl` and shows it on stderr.

    Args:
        run: the run folder; None writes nothing.
        quiet: show nothing on stderr.
        tensorboard: also write TensorBoard event files.
    """

    def __init__(self, run: Path | None, *, quiet: bool, tensorboard: bool = False) -> None:
        self.path = None if run is None else run / METRICS
        self.records = 0
        self.quiet = quiet
        self.writer: SummaryWriter | None = None
        if tensorboard and run is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                message = 'training.tensorboard needs TensorBoard: pip install "attentional-nmt[tensorboard]".'
                raise UsageError(message) from None
            self.writer = SummaryWriter(str(run / "tensorboard"))

    def state_dict(self) -> dict[str, Any]:
        """The number of records."""
        return {"records": self.records}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Keep only the records before the state: a resumed run repeats the updates after it."""
        if self.path is not None and self.path.is_file():
            lines = self.path.read_bytes().split(b"\n")[:-1][: state["records"]]  # without an incomplete last line
            write_content(self.path, b"".join(line + b"\n" for line in lines))
            self.records = len(lines)

    def show(self, text: str) -> None:
        """Print a line on stderr, unless quiet."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def trained(self, record: Record) -> None:
        """Log the updates since the last such record: loss, perplexity, tokens per second, and the time left."""
        self._write("train", record)
        self.show(
            f"epoch {record['epoch']}  update {record['update']}  loss {record['loss']:.3f}  "
            f"ppl {perplexity(record['perplexity'])}  {record['tokens_per_second']:,.0f} tokens/s  "
            f"{timedelta(seconds=round(record['seconds_left']))} left"
        )

    def validated(self, record: Record) -> None:
        """Log a validation."""
        self._write("valid", record)
        figures = f"valid  epoch {record['epoch']}  update {record['update']}  ppl {perplexity(record['perplexity'])}"
        notes = [figures, validation_scores(record), "(best)" if record["best"] else "", record.get("note", "")]
        self.show("  ".join(filter(None, notes)))
        for name, of_pair in record.get("languages", {}).items():
            self.show(f"valid  {name}  ppl {perplexity(of_pair['perplexity'])}  {validation_scores(of_pair)}".rstrip())

    def skipped(self, record: Record) -> None:
        """Log a bad update."""
        self._write("skip", record)
        self.show(f"Update {record['update']} is skipped: {record['reason']} ({record['skipped']} so far).")

    def sync(self) -> None:
        """Flush all records to disk."""
        if self.writer is not None:
            self.writer.flush()
        if self.path is not None and self.records:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())

    def _write(self, kind: str, record: Record) -> None:
        if self.path is None:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **record}) + "\n")
        self.records += 1
        if self.writer is not None:
            for name, value in record.items():
                if isinstance(value, int | float):
                    self.writer.add_scalar(f"{kind}/{name}", value, record["update"])


def read_validations(folder: Path) -> list[dict[str, Any]]:
    """The records of validations in a run folder's log. Raises DataError if it is damaged."""
    path = folder / METRICS
    records = read_records(path) if path.is_file() else []
    return [record for _, record in records if record.get("kind") == "valid"]


def best_validation(records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The record of the best validation, that of the weights; None if there is none."""
    return next((record for record in reversed(records) if record.get("best")), None)


def validation_scores(record: Record) -> str:
    """The metrics of a validation that compare translations, with their names."""
    return "  ".join(f"{name} {record[key]:.2f}" for key, name in VALIDATION_SCORES.items() if key in record)
