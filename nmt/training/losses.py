"""The losses of an update, and the reasons why an update is skipped."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import torch
from jaxtyping import Float
from torch import Tensor

MAX_BAD_UPDATES = 5
"""Bad updates in a row after which training ends, because the batch is not the cause; the last good state and model remain."""


class BadUpdate(Exception):  # noqa: N818 -- the reason for skipping, not an error that a user sees
    """The reason why an update is skipped, and the advice for when it happens repeatedly."""

    verdict: str
    advice: str


class Diverged(BadUpdate):
    """A loss or gradient is infinite or not a number."""

    verdict = "Training diverged"
    advice = "Lower training.optimizer.rate, lengthen training.schedule.warmup, or lower training.clip_norm."


class OutOfMemory(BadUpdate):
    """A batch does not fit into GPU memory."""

    verdict = "Memory ran out"
    advice = "Lower training.batch_tokens or training.batch_sentences (training.accumulate makes up for it) or data.filters.max_length."


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

    def __add__(self, stats: LossStats) -> LossStats:
        return LossStats(*(total + value for total, value in zip(astuple(self), astuple(stats), strict=True)))


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
