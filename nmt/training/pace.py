"""How long a run still takes."""

from __future__ import annotations

from dataclasses import dataclass

RECENT = 100
"""Updates over which the rate is averaged: a machine that slows down or a longer batch shows within them."""


@dataclass
class Pace:
    """The recent time per update, and that of the last validation, in seconds; both start anew when a run is resumed."""

    update: float = 0.0
    validation: float = 0.0
    updates: int = 0

    def follow(self, seconds: float) -> None:
        """Count one more update: an exponential mean, of the first updates their plain mean."""
        self.updates += 1
        self.update += (seconds - self.update) / min(self.updates, RECENT)

    def left(self, updates: int, *, between_validations: float) -> float:
        """Seconds for so many updates and the validations on the way."""
        return updates * (self.update + self.validation / between_validations)
