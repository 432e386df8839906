"""Number types: softmaxes and positions need the digits of fp32, matrix products do not."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_fp32(values: Tensor) -> Tensor:
    """Values of a shorter type than fp32 as fp32, others as they are."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
