"""Where to compute and with how many digits."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Literal

import torch

from nmt.errors import UsageError

Precision = Literal["fp32", "bf16"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


def choose_device(name: str) -> torch.device:
    """`auto` is the GPU if there is one, else the CPU; any other name is torch's. Raises UsageError.

    fp32 then is fp32 on a GPU too: cuDNN's recurrent layers would otherwise round what they multiply to 11 bits (TF32).
    """
    torch.backends.cudnn.allow_tf32 = False
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"Cannot compute on device '{name}': {str(error).splitlines()[0]}.") from None
    return device


def choose_precision(asked: Literal["auto", "fp32", "bf16"], device: torch.device) -> Precision:
    """`auto` is bf16 where the machine has instructions for it (AVX-512 BF16, AMX, a GPU from Ampere on), else fp32."""
    if asked != "auto":
        return asked
    if device.type == "cuda":
        return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp32"
    return "bf16" if device.type == "cpu" and torch.cpu._is_avx512_bf16_supported() else "fp32"


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The context in which matrix products run in the given precision."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
