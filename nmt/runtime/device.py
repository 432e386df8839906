"""Choose the device and the precision, whatever a program has chosen for PyTorch as a whole."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, overload

import torch

from nmt.errors import UsageError
from nmt.runtime.arguments import PrecisionName, described
from nmt.runtime.wording import counted, did_you_mean

Precision = Literal["fp32", "bf16", "fp16"]
"""Precision of matrix products in training."""
DecodingPrecision = Literal["fp32", "bf16", "fp16", "int8"]
"""Precision of matrix products in decoding."""
PRODUCT_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Environment variables: how many compiled products oneDNN and PyTorch keep."""
DTYPES: dict[DecodingPrecision, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.int8,
}


def bound_compiled_products() -> None:
    """Have PyTorch keep few of the matrix products that oneDNN compiles, in bf16 on a CPU, unless the environment says how many.

    oneDNN compiles one for each shape. It and PyTorch keep 1,024 each, in training a gigabyte and more; but there, shapes hardly
    return after an update. The first product of a process fixes the numbers.
    """
    for cache in PRODUCT_CACHES:
        os.environ.setdefault(cache, "128")


def choose_device(name: str) -> torch.device:
    """Choose a device by name: `auto` (CUDA if available, else the CPU), `cpu`, `cuda`, `cuda:N` or `mps`.

    Turns off TF32 in cuDNN, so that fp32 has full precision on a GPU too.

    Raises:
        UsageError: the name is unknown, or this machine has no such device.
    """
    torch.backends.cudnn.allow_tf32 = False
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch("cpu|cuda(:[0-9]{1,3})?|mps", name):
        guess = did_you_mean(name.lower(), ("auto", "cpu", "cuda", "mps"))
        raise UsageError(f"There is no device '{name}': use auto, cpu, cuda, cuda:N or mps{guess}")
    if name == "mps" and not torch.backends.mps.is_available():
        raise UsageError("Cannot compute on mps: PyTorch finds no Metal (MPS), which takes a Mac with Apple silicon.")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name.startswith("cuda") and int(name[5:] or 0) >= gpus:
        raise UsageError(f"Cannot compute on {name}: PyTorch finds {counted(gpus, 'CUDA device')}, numbered from 0.")
    return torch.device(name)


def as_device(device: object) -> torch.device:
    """Convert a device or its name to a torch.device. Raises UsageError."""
    if isinstance(device, str | torch.device):
        return choose_device(str(device))
    raise UsageError(f"device must be auto, cpu, cuda, cuda:N, mps or a torch.device, but is {described(device)}.")


@overload
def choose_precision(precision: Literal["auto", "fp32", "bf16", "fp16"], device: torch.device) -> Precision: ...


@overload
def choose_precision(precision: PrecisionName, device: torch.device) -> DecodingPrecision: ...


def choose_precision(precision: PrecisionName, device: torch.device) -> DecodingPrecision:
    """Resolve `auto`: bf16 on GPUs from Ampere on and on CPUs that are fast in bf16, fp16 on Volta and Turing, else fp32.

    Raises:
        UsageError: fp16 on a CPU, where it is slow.
    """
    if precision == "fp16" and device.type == "cpu":
        raise UsageError("fp16 needs a GPU: use fp32 or bf16 on a CPU.")
    if precision != "auto":
        return precision
    if device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        return "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "fp32"
    # Products on a CPU with AMX are 6 times as fast in bf16 as in fp32; with AVX-512 BF16 3 to 4 times on AMD, but half as fast on Intel.
    has_fast_avx = torch.cpu._is_avx512_bf16_supported() and "Intel" not in processor(device)
    return "bf16" if device.type == "cpu" and (torch.cpu._is_amx_tile_supported() or has_fast_avx) else "fp32"


def check_precision(precision: DecodingPrecision, model: torch.nn.Module, device: torch.device) -> None:
    """Raise UsageError if PyTorch cannot run the model's LSTM layers in bf16: on a CPU it leaves them to oneDNN."""
    if precision != "bf16" or device.type != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return
    if any(isinstance(module, torch.nn.LSTM) for module in model.modules()):
        raise UsageError("This processor has no bf16 for LSTM layers: use precision fp32, or auto, which chooses it.")


def processor(device: torch.device) -> str:
    """The name of the GPU or the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return cpu_info("model name") or platform.processor() or platform.machine()


def cpu_info(*keys: str) -> str | None:
    """The first value in Linux's /proc/cpuinfo under one of the keys; None if there is none."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in keys and value.strip():
                return value.strip()
    return None


def autocast(precision: DecodingPrecision, device: torch.device) -> AbstractContextManager[object]:
    """A context in which matrix products run in bf16 or fp16 if that is the precision. int8 uses layers of its own instead."""
    is_half = precision in ("bf16", "fp16")
    return torch.autocast(device.type, dtype=DTYPES[precision] if is_half else None, enabled=is_half)


_SHARED_TOKENS = 256
"""Fewest tokens that are worth a second thread: below, threads wait for each other, which spins, longer than they compute."""


@contextmanager
def threads_for(tokens: int) -> Iterator[None]:
    """A context with one thread if a batch has few tokens: beside busy processes the others would hold their cores in vain."""
    threads = torch.get_num_threads()
    if threads == 1 or tokens >= _SHARED_TOKENS:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def torch_defaults() -> Iterator[None]:
    """A context, and decorator, with PyTorch's own defaults: fp32, no autocast, new tensors on the CPU, gradients on.

    A program may have set others for a model of its own.
    """
    with ExitStack() as stack:
        if torch.get_default_dtype() != torch.float32:
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        if torch.get_default_device().type != "cpu":  # a context of torch.device slows every operation down
            stack.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield
