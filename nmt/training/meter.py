"""The losses of an update, and what the log says of the updates since its last line: mean losses, speed, time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.training.bad_updates import Diverged

WINDOW = 100
"""Updates over which the time per update is averaged, so that the time left follows a machine that becomes slower."""


@dataclass
class LossStats:
    """Losses as sums, with the number of tokens that they are sums over."""

    tokens: int = 0
    """Target tokens, end marks included."""
    nll: float = 0.0
    """Negative log-likelihood of the target tokens, in nats, without label smoothing."""
    alignment_loss: float = 0.0
    """Alignment loss of the linked target tokens, in nats, without its weight."""
    linked_tokens: int = 0
    """Target tokens with a link."""


class PendingStats:
    """The losses of an update. From a GPU they are copied when they are ready; only `read` waits for them.

    Args:
        update: the number of the update, from 1.
        tokens: the target tokens of the update.
        figures: negative log-likelihood, alignment loss, linked tokens, and the norm of the gradient.
    """

    def __init__(self, update: int, tokens: int, figures: Float[Tensor, "4"]) -> None:
        self.update, self.tokens, self.figures = update, tokens, figures
        self._is_copied: torch.cuda.Event | None = None
        if figures.device.type == "cuda":
            self.figures = torch.empty_like(figures, device="cpu", pin_memory=True).copy_(figures, non_blocking=True)
            self._is_copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._is_copied.record(torch.cuda.current_stream(figures.device))

    def read(self) -> LossStats:
        """The losses. Raises Diverged if the loss or the gradient is not finite."""
        if self._is_copied is not None:
            self._is_copied.synchronize()
        nll, alignment_loss, linked_tokens, norm = self.figures.tolist()
        if not math.isfinite(nll):
            raise Diverged("the loss is not a finite number")
        if not math.isfinite(norm):
            raise Diverged("the gradient is not a finite number")
        return LossStats(self.tokens, nll, alignment_loss, int(linked_tokens))


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
        self._seconds_per_update = self._seconds_of_validation = 0.0  # a resumed run measures them anew

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
        self.seconds = state.get("seconds", 0.0)
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
        self._updates += 1  # the plain mean of the first `WINDOW` updates, after that an exponential one
        self._seconds_per_update += (self._tick() - self._seconds_per_update) / min(self._updates, WINDOW)

    @contextmanager
    def validation(self) -> Iterator[None]:
        """A context for a validation: its time counts as training time, but not for the tokens per second."""
        self._tick()
        since_log = self.seconds - self._logged_at
        yield
        self._seconds_of_validation = self._tick()
        self._logged_at = self.seconds - since_log

    def _tick(self) -> float:
        """Add the seconds since the last tick to the training time, and return them."""
        now = time.monotonic()
        elapsed, self._last_tick = now - self._last_tick, now
        self.seconds += elapsed
        return elapsed

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

    def times(self, updates_left: int, *, validate_every: float) -> dict[str, float]:
        """Target tokens per second without validation, the training time, and an estimate of the time left."""
        per_update = self._seconds_per_update + self._seconds_of_validation / validate_every
        return {
            "tokens_per_second": self.stats.tokens / max(self.seconds - self._logged_at, 1e-9),
            "seconds": self.seconds,
            "seconds_left": updates_left * per_update,
        }

    def reset(self) -> None:
        """Begin the figures of the next line of the log."""
        self.stats, self._logged_at = LossStats(), self.seconds
