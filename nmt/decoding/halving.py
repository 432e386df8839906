"""Decode a batch that does not fit into the memory of a GPU in halves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from nmt.errors import DataError

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)


@dataclass
class Halving(Generic[TaskT, ResultT]):
    """A function that decodes batches, and halves those that do not fit into memory, with one warning."""

    decode: Callable[[Sequence[TaskT]], Sequence[ResultT]]
    has_warned: bool = False

    def __call__(self, tasks: Sequence[TaskT]) -> Sequence[ResultT]:
        """The result of each task. Raises DataError if a single one does not fit."""
        try:
            return self.decode(tasks)
        except torch.OutOfMemoryError:
            if len(tasks) == 1:
                raise DataError(
                    "The memory of the GPU is too small for one of the sentences: try a smaller beam, --precision bf16 or --device cpu."
                ) from None
        # After the handler, whose traceback keeps the tensors of the attempt.
        torch.cuda.empty_cache()
        if not self.has_warned:
            logger.warning(
                "A batch does not fit into the memory of the GPU and is halved; fewer --batch-tokens are faster."
            )
            self.has_warned = True
        middle = len(tasks) // 2
        return [*self(tasks[:middle]), *self(tasks[middle:])]
