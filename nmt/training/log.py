"""Log a training: `metrics.jsonl` for programs, a live display or plain lines on stderr for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import Progress, TaskID, TextColumn
from rich.table import Column

from nmt.errors import DataError, UsageError
from nmt.evaluation.metrics import VALIDATION_SCORES
from nmt.runtime.display import fitting_progress
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_records
from nmt.runtime.wording import perplexity

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

METRICS = "metrics.jsonl"
Record = Mapping[str, Any]


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
        self.writer = _open_summary_writer(run, done) if tensorboard and run is not None else None
        self.live = self._build_display() if self.console.is_terminal and not quiet else None
        self.last_validation = ""
        self.task: TaskID | None = None

    def state_dict(self) -> dict[str, Any]:
        """The number of records."""
        return {"records": self.records}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after so many records: a resumed run repeats the updates after its last saved state."""
        self.records = state.get("records", 0)

    def __enter__(self) -> Self:
        self._truncate()
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
            self.show("  ".join([*_training_figures(record), f"{_duration(record['seconds_left'])} left"]))

    def validated(self, record: Record) -> None:
        """Log a validation."""
        self._write({"kind": "valid", **record})
        self.show(_validation_line(record))
        for name, figures in record.get("languages", {}).items():
            self.show(f"valid  {name}  ppl {perplexity(figures['perplexity'])}  {validation_scores(figures)}".rstrip())
        self.last_validation = validation_scores(record) or f"valid ppl {perplexity(record['perplexity'])}"

    def advance(self, record: Record) -> None:
        """Show an update in the live display, if there is one."""
        if self.live is None:
            return
        if self.task is None:
            self.task = self.live.add_task("", total=self.updates, left="", figures=[])
        left, figures = _duration(record["seconds_left"]), _live_figures(record, self.last_validation)
        self.live.update(self.task, completed=record["update"], left=left, figures=figures)

    def skipped(self, record: Record) -> None:
        """Log a bad update."""
        self._write({"kind": "skip", **record})
        self.show(f"Update {record['update']} is skipped: {record['reason']} ({record['skipped']} so far).")

    def sync(self) -> None:
        """Flush all records to disk."""
        if self.path is not None and self.records:
            with _readable_errors(self.path), self.path.open("rb") as file:
                os.fsync(file.fileno())

    def _truncate(self) -> None:
        """Keep only the records before the state that the run goes on from."""
        if self.path is not None and self.path.is_file():
            with _readable_errors(self.path):
                lines = self.path.read_bytes().split(b"\n")[:-1][: self.records]  # without an incomplete last line
            write_content(self.path, b"".join(line + b"\n" for line in lines))
            self.records = len(lines)

    def _write(self, record: Record) -> None:
        if self.path is None:
            return
        with _readable_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self.records += 1
        if self.writer is not None:
            pairs = record.get("languages", {}).items()
            each = {f"{pair}/{name}": value for pair, figures in pairs for name, value in figures.items()}
            for name, value in {**record, **each}.items():
                if isinstance(value, int | float) and name != "update":
                    self.writer.add_scalar(f"{record['kind']}/{name}", value, record["update"])

    def _build_display(self) -> Progress:
        left = TextColumn("{task.fields[left]} left ", table_column=Column(no_wrap=True))
        return fitting_progress(self.console, counts="{task.percentage:>3.0f}%", time=left, transient=False)


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


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from None


def validation_scores(record: Record) -> str:
    """The metrics of a validation that compare translations, with their names."""
    return "  ".join(f"{name} {record[key]:.2f}" for key, name in VALIDATION_SCORES.items() if key in record)


def _training_figures(record: Record) -> tuple[str, str, str, str, str]:
    return (
        f"epoch {record['epoch']}",
        f"update {record['update']}",
        f"loss {record['loss']:.3f}",
        f"ppl {perplexity(record['perplexity'])}",
        f"{record['tokens_per_second']:,.0f} tokens/s",
    )


def _live_figures(record: Record, last_validation: str) -> list[str]:
    """The figures of the live display, the most important first, because a narrow terminal shows only some of them."""
    epoch, update, loss, ppl, speed = _training_figures(record)
    return [epoch, ppl, last_validation, speed, update, loss]


def _validation_line(record: Record) -> str:
    figures = f"valid  epoch {record['epoch']}  update {record['update']}  ppl {perplexity(record['perplexity'])}"
    parts = [figures, validation_scores(record), "(best)" if record["best"] else "", record.get("note", "")]
    return "  ".join(part for part in parts if part)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _open_summary_writer(run: Path, done: int) -> SummaryWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UsageError(
            'training.tensorboard needs the package tensorboard: pip install "attentional-nmt[tensorboard]".'
        ) from None
    return SummaryWriter(str(run / "tensorboard"), purge_step=done + 1 if done else None)
