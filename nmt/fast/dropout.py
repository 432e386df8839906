"""Dropout with 16 random bits per number. PyTorch draws 64, which takes a tenth of the time of training on a CPU."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nmt.model.dropout import Dropout

_CHOICES = 2**16


class FastDropout(Dropout):
    """Dropout at a rate rounded to a 65,536th."""

    def mask(self, values: Tensor) -> Tensor:
        shape = self.mask_shape(values)
        count = math.prod(shape)
        survivors = min(max(round((1 - self.rate) * _CHOICES), 1), _CHOICES - 1)
        four_each = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
        survives = four_each.view(torch.int16)[:count].view(shape) < survivors - _CHOICES // 2
        return survives.to(values.dtype).mul_(_CHOICES / survivors)
