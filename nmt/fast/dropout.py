"""Dropout with 16 random bits per number. PyTorch draws 64, which takes a tenth of the time of training on a CPU."""

from __future__ import annotations

import math

import torch
from jaxtyping import Int16
from torch import Tensor

from nmt.model.dropout import Dropout

_CHOICES = 2**16


class FastDropout(Dropout):
    """Dropout at a rate rounded to a 65,536th."""

    def mask(self, values: Tensor) -> Tensor:
        shape = self.mask_shape(values)
        survivors = min(max(round((1 - self.rate) * _CHOICES), 1), _CHOICES - 1)
        survives = _random_bits(math.prod(shape)).view(shape) < survivors - _CHOICES // 2
        return survives.to(values.dtype).mul_(_CHOICES / survivors)


def _random_bits(count: int) -> Int16[Tensor, " n"]:
    """Numbers of 16 random bits; four come from one draw of 64."""
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    return bits.view(torch.int16)[:count]
