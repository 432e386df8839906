"""Show the progress of training processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import typer

from nmt.runtime.progress import is_watched
from nmt.runtime.wording import perplexity

if TYPE_CHECKING:
    from nmt.comparison.plan import Candidate


def say(line: str, *, quiet: bool) -> None:
    """Print a line on stderr, unless quiet."""
    if not quiet:
        typer.echo(line, err=True)


class TrainingProgress:
    """Shows trainings as a live line each on a terminal, as plain lines elsewhere, and not if quiet.

    Args:
        count: number of trainings; None if it is not known.
        finished: how many of them have ended before.
        quiet: show nothing.
    """

    def __init__(self, count: int | None, finished: int = 0, *, quiet: bool) -> None:
        self.quiet, self.count, self.finished = quiet, count, finished
        self.live: Any = _bars() if is_watched(quiet=quiet) and finished != count else None
        self.tasks: dict[str, Any] = {}
        self.last: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def started(self, candidate: Candidate) -> None:
        """A training was started or resumed."""
        if self.live is None:
            self._say(f"{candidate.name}: training")
        else:
            total = candidate.recipe.training.updates or candidate.recipe.training.epochs
            self.tasks[candidate.name] = self.live.add_task("", total=total, figures=[candidate.name, "starting"])

    def moved(self, candidate: Candidate, records: Sequence[Any]) -> None:
        """A training has logged new records."""
        from nmt.training.log import validation_scores

        for record in records:
            is_validation = record["kind"] == "valid"
            if is_validation:
                scores = validation_scores(record) or f"ppl {perplexity(record['perplexity'])}"
                self.last[candidate.name] = scores
            figures = [f"epoch {record['epoch']}", self.last.get(candidate.name, ""), f"update {record['update']:,}"]
            if self.live is not None:
                epochs = record["epoch"] - (not is_validation)
                completed = record["update"] if candidate.recipe.training.updates else epochs
                self.live.update(self.tasks[candidate.name], completed=completed, figures=[candidate.name, *figures])
            elif is_validation:
                self._say(f"{candidate.name}: {'  '.join(figures)}")

    def ended(self, candidate: Candidate, problem: str | None) -> None:
        """A training has finished or failed."""
        if self.live is not None:
            self.live.remove_task(self.tasks.pop(candidate.name))
        self.finished += 1
        outcome = "trained" if problem is None else f"failed: {problem} See {candidate.log}."
        self._say(f"{candidate.name}: {outcome}" + (f"  ({self.finished} of {self.count})" if self.count else ""))

    def _say(self, line: str) -> None:
        if self.live is not None:
            self.live.console.print(line, markup=False, emoji=False, highlight=False, soft_wrap=True)
        else:
            say(line, quiet=self.quiet)


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import TimeElapsedColumn

    from nmt.runtime.display import fitting_progress

    counts = "{task.completed}/{task.total}"
    return fitting_progress(Console(stderr=True), counts=counts, time=TimeElapsedColumn(), transient=True)
