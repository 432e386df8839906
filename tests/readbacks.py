"""Counts where a program waits for the values of a tensor: on a GPU, each such place has the CPU wait for all work before it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_READING = {
    torch.ops.aten._local_scalar_dense.default,  # item, float, int, bool, tolist
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten.equal.default,
    torch.ops.aten.unique_consecutive.default,
    torch.ops.aten._unique2.default,
    torch.ops.aten.bincount.default,
    torch.ops.aten.repeat_interleave.Tensor,
}


class ReadBacks(TorchDispatchMode):
    """A context that lists the places where values of tensors are read back: operations whose result, or its size, needs them."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function in _READING or _has_boolean_index(function, args):
            self.places.append("".join(traceback.format_stack(limit=8)[:-1]))
        return function(*args, **kwargs or {})


def _has_boolean_index(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    if function not in (torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default):
        return False
    return any(isinstance(index, Tensor) and index.dtype == torch.bool for index in args[1] if index is not None)
