"""Bad updates: a loss or gradient that is not finite, or a batch that does not fit into GPU memory.

A bad update is skipped. After `MAX_BAD_UPDATES` in a row the batch is not the cause, so training ends; the last good state and
model remain on disk.
"""

from __future__ import annotations

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
