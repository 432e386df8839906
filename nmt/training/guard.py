"""Updates that cannot be taken: a loss or gradient that is not a number, a batch that does not fit into memory.

One of them is skipped, and training goes on with the next batch. Several in a row say that it is not the batch: training
ends, and the last good state and model stay as they were saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

LIMIT = 5
"""Updates in a row that cannot be taken, after which training ends."""


class BadUpdate(Exception):  # noqa: N818 -- not an error of its own, only the reason of one
    """Why an update cannot be taken, and what to do if that goes on."""

    verdict: str
    advice: str


class Diverged(BadUpdate):
    """Something that should be a number is infinite or not a number."""

    verdict = "Training diverged"
    advice = "Lower training.optimizer.rate, lengthen training.schedule.warmup, or lower training.clip_norm."


class TooLarge(BadUpdate):
    """The memory of the accelerator does not hold a batch."""

    verdict = "Memory ran out"
    advice = "Lower training.batch_tokens (training.accumulate makes up for it) or data.filters.max_length."


def check_finite(value: float, what: str) -> None:
    """Raise Diverged unless the value is a finite number."""
    if not math.isfinite(value):
        raise Diverged(f"{what} is not a finite number")


@contextmanager
def within_memory(what: str) -> Iterator[None]:
    """Raises TooLarge where the accelerator's memory runs out."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise TooLarge(f"{what} does not fit into memory") from None
