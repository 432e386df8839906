"""Estimate the time left of a run."""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = 100
"""Updates over which the time per update is averaged, so that the estimate follows a machine that becomes slower."""


@dataclass
class Pace:
    """Recent time per update and per validation, in seconds. A resumed run measures them anew."""

    update: float = 0.0
    """Mean time of the recent updates."""
    validation: float = 0.0
    """Time of the last validation."""
    updates: int = 0
    """Number of updates measured."""

    def add_update(self, seconds: float) -> None:
        """Add the time of one update: to the plain mean of the first `WINDOW` updates, after that to an exponential mean."""
        self.updates += 1
        self.update += (seconds - self.update) / min(self.updates, WINDOW)

    def seconds_left(self, updates: int, *, validate_every: float) -> float:
        """Estimated time of the remaining updates, and of the validations among them."""
        return updates * (self.update + self.validation / validate_every)
