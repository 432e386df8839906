"""What a speed was measured on."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path

import torch


def processor(device: torch.device) -> str:
    """The name of the accelerator, or of the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()
