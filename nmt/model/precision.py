"""Number types: softmaxes and positions are computed in fp32 or better, matrix products may be shorter."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_fp32(values: Tensor) -> Tensor:
    """Convert bf16 and fp16 to fp32; leave other types as they are."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
