"""Dropout of single values and of whole token embeddings."""

from __future__ import annotations

import torch
from jaxtyping import Num
from torch import Tensor, nn
from torch.nn import functional


class Dropout(nn.Module):
    """Dropout over values [B ... D]: a new mask per position, or a `variational` one per sentence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float, *, variational: bool) -> None:
        super().__init__()
        self.rate = rate
        self.variational = variational

    def forward(self, values: Tensor) -> Tensor:
        return values * self.mask(values) if self.training and self.rate else values

    def mask(self, values: Tensor) -> Tensor:
        """A mask of 0 and 1 / (1 - rate) for values [B ... D]: [B ... D], or [B 1... D] if variational."""
        return functional.dropout(values.new_ones(self.mask_shape(values)), self.rate)

    def mask_shape(self, values: Tensor) -> tuple[int, ...]:
        """The shape of a mask for values [B ... D]."""
        inner = [1] * (values.dim() - 2) if self.variational else values.shape[1:-1]
        return (values.shape[0], *inner, values.shape[-1])


class WordDropout(nn.Module):
    """Dropout of whole tokens: an embedding [... E] becomes zero, or is scaled by 1 / (1 - rate) (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, embedded: Num[Tensor, "... E"]) -> Num[Tensor, "... E"]:
        if not self.training or self.rate == 0:
            return embedded
        return embedded * functional.dropout(torch.ones_like(embedded[..., :1]), self.rate)
