"""The losses of an update, which a GPU computes while the CPU goes on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.training.guard import check_finite


@dataclass
class LossStats:
    """Losses of an update as sums, with the number of tokens that they are sums over."""

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
        tokens: the target tokens of the update.
        figures: negative log-likelihood, alignment loss, linked tokens, and the norm of the gradient.
    """

    def __init__(self, tokens: int, figures: Float[Tensor, "4"]) -> None:
        self.tokens, self.figures = tokens, figures
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
        check_finite(nll, "the loss")
        check_finite(norm, "the gradient")
        return LossStats(self.tokens, nll, alignment_loss, int(linked_tokens))
