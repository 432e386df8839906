"""Detect bad updates: a loss or gradient that is not finite, or a batch that does not fit into GPU memory.

A bad update is skipped. After `MAX_BAD_UPDATES` in a row the batch is not the cause, so training ends; the last good state and
model remain on disk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

MAX_BAD_UPDATES = 5
"""Bad updates in a row after which training ends."""


class BadUpdate(Exception):  # noqa: N818 -- the reason for skipping, not an error that a user sees
    """The reason why an update is skipped, and the advice for when it happens repeatedly."""

    verdict: str
    advice: str


class Diverged(BadUpdate):
    """A loss or gradient is infinite or not a number."""

    verdict = "Training diverged"
    advice = "Lower training.optimizer.rate, lengthen training.schedule.warmup, or lower training.clip_norm."


class OutOfMemory(BadUpdate):
    """A batch does not fit into GPU memory."""

    verdict = "Memory ran out"
    advice = "Lower training.batch_tokens or training.batch_sentences (training.accumulate makes up for it) or data.filters.max_length."


def check_finite(value: float, name: str) -> None:
    """Raise Diverged unless the value is a finite number."""
    if not math.isfinite(value):
        raise Diverged(f"{name} is not a finite number")


@contextmanager
def within_memory(name: str) -> Iterator[None]:
    """A context that turns PyTorch's OutOfMemoryError into OutOfMemory, with the name of what did not fit."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise OutOfMemory(f"{name} does not fit into memory") from None
