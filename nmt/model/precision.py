"""Number types: what is multiplied in few digits, and what needs more."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_fp32(values: Tensor) -> Tensor:
    """Values in fp32 where they were computed in a shorter type: positions and softmaxes need the digits."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def matmul_type(values: Tensor) -> torch.dtype:
    """What matrix products of such values are computed in: the autocast type if one is on, else their own."""
    device = values.device.type
    if torch.is_autocast_enabled(device) and values.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return values.dtype
