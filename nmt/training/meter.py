"""Measure a training between two lines of the log: mean losses, speed, time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nmt.training.checkpoint import Progress
from nmt.training.pace import Pace
from nmt.training.stats import LossStats


class Meter:
    """Adds the losses and the time of each update to `progress`, which is saved, and computes the figures of the log."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.pace = Pace()
        self._last_tick = time.monotonic()
        self._logged_at = progress.seconds
        """Training time at the last line of the log, plus the time of validations since then."""

    def start(self) -> None:
        """Start the clock; the time before does not count as training time."""
        self._last_tick = time.monotonic()

    def add_update(self, stats: LossStats) -> None:
        """Add an update that has just ended."""
        progress = self.progress
        progress.nll += stats.nll
        progress.words += stats.tokens
        progress.guidance += stats.alignment_loss
        progress.guided += stats.linked_tokens
        self.pace.add_update(self._tick())

    @contextmanager
    def validation(self) -> Iterator[None]:
        """A context for a validation: its time counts as training time, but not for the tokens per second."""
        self._tick()
        since_log = self.progress.seconds - self._logged_at
        yield
        self.pace.validation = self._tick()
        self._logged_at = self.progress.seconds - since_log

    def _tick(self) -> float:
        """Add the seconds since the last tick to the training time, and return them."""
        now = time.monotonic()
        elapsed, self._last_tick = now - self._last_tick, now
        self.progress.seconds += elapsed
        return elapsed

    @property
    def is_empty(self) -> bool:
        """Whether all updates since the last line of the log were skipped."""
        return not self.progress.words

    def losses(self) -> dict[str, float]:
        """Loss and perplexity per target token, and with guided alignment the alignment loss per linked token."""
        progress = self.progress
        loss = progress.nll / progress.words
        alignment = {"alignment_loss": progress.guidance / progress.guided} if progress.guided else {}
        return {"loss": loss, "perplexity": math.exp(min(loss, 100)), **alignment}

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second of training, without validation."""
        return self.progress.words / max(self.progress.seconds - self._logged_at, 1e-9)

    def reset(self) -> None:
        """Begin the figures of the next line of the log."""
        progress = self.progress
        progress.nll, progress.words, self._logged_at = 0.0, 0, progress.seconds
        progress.guidance, progress.guided = 0.0, 0
