"""How the compiled kernels are called."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CDLL, c_double, c_int64, c_void_p
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.native.build import library

_SHARED = 2**17
"""Numbers from which on threads share them."""


def call(name: str, tensors: tuple[Tensor | None, ...], *numbers: int) -> float:
    """Call a kernel with the addresses of tensors, and numbers; of most the answer is nothing."""
    kernels = library()
    assert kernels is not None
    kernel = _kernel(kernels, name, len(tensors), len(numbers))
    return kernel(*[None if tensor is None else tensor.data_ptr() for tensor in tensors], *numbers)


@cache
def _kernel(kernels: CDLL, name: str, addresses: int, numbers: int) -> Callable[..., float]:
    kernel: Any = getattr(kernels, name)
    kernel.argtypes, kernel.restype = [c_void_p] * addresses + [c_int64] * numbers, c_double
    return kernel  # type: ignore[no-any-return]


@cache
def number(value: float) -> Float[Tensor, ""]:
    """A number with an address, for kernels: their other numbers are whole."""
    return torch.tensor(value)


def threads_for(work: int) -> int:
    """How many to share so many numbers: to wake a thread takes as long as some ten thousand of them."""
    return torch.get_num_threads() if work > _SHARED else 1
