"""Where to compute and with how many digits."""

from __future__ import annotations

import difflib
import logging
import os
import platform
import re
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Literal, overload

import torch

from nmt.arguments import described
from nmt.errors import UsageError
from nmt.wording import counted

logger = logging.getLogger(__name__)

Precision = Literal["fp32", "bf16"]
"""Of matrix products in training."""
DecodingPrecision = Literal["fp32", "bf16", "int8"]
"""Of matrix products in decoding."""
_DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES: dict[DecodingPrecision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}


def choose_device(name: str) -> torch.device:
    """The device of a name: `auto` (CUDA's if there is one, else the CPU), `cpu`, `cuda`, `cuda:N` or `mps`.

    fp32 then is fp32 on a GPU too: cuDNN's recurrent layers would otherwise round what they multiply to 11 bits (TF32).

    Raises:
        UsageError: there is no such name, or no such device here.
    """
    torch.backends.cudnn.allow_tf32 = False
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch("cpu|cuda(:[0-9]{1,3})?|mps", name):
        raise UsageError(f"There is no device '{name}': use auto, cpu, cuda, cuda:N or mps{_nearest(name)}")
    if reason := _missing(name):
        raise UsageError(f"Cannot compute on {name}: {reason}.")
    return torch.device(name)


def _nearest(name: str) -> str:
    close = ["cuda"] if name.lower() in ("gpu", "nvidia") else difflib.get_close_matches(name.lower(), _DEVICES, n=1)
    return f"; did you mean {close[0]}?" if close else "."


def _missing(name: str) -> str | None:
    """Why there is no such device here; None if there is."""
    kind, _, number = name.partition(":")
    if kind == "mps" and not torch.backends.mps.is_available():
        return "this PyTorch or this machine has no Metal (MPS), which takes a Mac with Apple silicon"
    if kind != "cuda":
        return None
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        return "this PyTorch was built without CUDA; install one that was built with it, or use --device cpu"
    if not torch.cuda.is_available():
        return "PyTorch finds no CUDA device; look for the driver with nvidia-smi, or use --device cpu"
    count = torch.cuda.device_count()
    return f"PyTorch finds {count} CUDA devices, numbered from 0" if int(number or 0) >= count else None


def usable_cores() -> int:
    """The number of CPU cores that this process may run on, where the system says so, else of all."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def at_most_cores(threads: int) -> int:
    """So many threads, or one per usable core if these are fewer, which a warning then says: more would only wait for one another."""
    cores = usable_cores()
    if threads > cores:
        logger.warning("This process may use %s: %d threads become %d.", counted(cores, "core"), threads, cores)
    return min(threads, cores)


def as_device(device: object) -> torch.device:
    """A device that may be given by name. Raises UsageError."""
    if isinstance(device, str | torch.device):
        return choose_device(str(device))
    raise UsageError(f"device must be auto, cpu, cuda, cuda:N, mps or a torch.device, but is {described(device)}.")


@overload
def choose_precision(asked: Literal["auto", "fp32", "bf16"], device: torch.device) -> Precision: ...


@overload
def choose_precision(asked: Literal["auto", "fp32", "bf16", "int8"], device: torch.device) -> DecodingPrecision: ...


def choose_precision(asked: Literal["auto", "fp32", "bf16", "int8"], device: torch.device) -> DecodingPrecision:
    """`auto` is bf16 where the machine is fast at it (a CPU as `_is_fast_in_bf16` says, a GPU from Ampere on), else fp32."""
    if asked != "auto":
        return asked
    if device.type == "cuda":
        return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp32"
    return "bf16" if device.type == "cpu" and _is_fast_in_bf16(processor(device)) else "fp32"


def _is_fast_in_bf16(name: str) -> bool:
    """Whether a CPU multiplies faster in bf16: with AMX six times, with AVX-512 BF16 three to four times on AMD's.

    Intel's cores spend so long on that instruction of AVX-512 that without AMX, which a virtual machine may hide, bf16 takes
    twice the time of fp32.
    """
    return torch.cpu._is_amx_tile_supported() or (torch.cpu._is_avx512_bf16_supported() and "Intel" not in name)


def processor(device: torch.device) -> str:
    """The name of the accelerator, or of the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return cpu_info("model name") or platform.processor() or platform.machine()


def cpu_info(*keys: str) -> str | None:
    """What Linux says of the processor under the first of some keys that it knows; None where it says nothing."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in keys and value.strip():
                return value.strip()
    return None


def autocast(precision: DecodingPrecision, device: torch.device) -> AbstractContextManager[object]:
    """The context in which matrix products run in the given precision; those in int8 are no context but layers of their own."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
