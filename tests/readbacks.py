"""Counts where a program waits for the values of a tensor: on a GPU, each such place has the CPU wait for all work before it."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

ATEN = torch.ops.aten
_READING = {ATEN._local_scalar_dense.default, ATEN.nonzero.default, ATEN.masked_select.default, ATEN.equal.default}
"""Operations whose result, or its size, needs values; the first is item, float, int, bool and tolist."""


class ReadBacks(TorchDispatchMode):
    """A context that lists the operations that read values of tensors back."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        indices = args[1] if function in (ATEN.index.Tensor, ATEN.index_put_.default) else ()
        has_mask = any(isinstance(index, Tensor) and index.dtype == torch.bool for index in indices)
        if function in _READING or has_mask:
            self.operations.append(str(function))
        return function(*args, **kwargs or {})
