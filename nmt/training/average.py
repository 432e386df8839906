"""The mean of several checkpoints (Junczys-Dowmunt et al. 2016): often better than any of them, and free at decoding time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from nmt.bundle import WEIGHTS, Bundle, load_tensors, save_tensors
from nmt.errors import UsageError
from nmt.training.checkpoint import kept_checkpoints


def mean_weights(checkpoints: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each parameter, taken in float64 so that the mean of one checkpoint is that checkpoint."""
    return {
        name: torch.stack([checkpoint[name].double() for checkpoint in checkpoints]).mean(0).to(value.dtype)
        for name, value in checkpoints[0].items()
    }


def average_run(run: Path, output: Path, *, best: int | None = None) -> int:
    """Write a model folder whose weights are the mean of a run's best checkpoints; returns how many there were.

    Args:
        run: a run trained with `training.validation.keep_best` above 1.
        output: the new model folder.
        best: how many of the best checkpoints; all that were kept if None.

    Raises:
        DataError: the run kept no checkpoints.
        UsageError: `output` exists, or `best` is out of range.
    """
    if output.exists():
        raise UsageError(f"{output} exists already: choose another folder.")
    bundle = Bundle.load(run, weights=False)
    files = kept_checkpoints(run)
    count = len(files) if best is None else best
    if not 1 <= count <= len(files):
        raise UsageError(f"--best must be between 1 and {len(files)}, the checkpoints that {run} kept, but is {count}.")
    checkpoints = [load_tensors(path) for path in files[:count]]
    bundle.save_description(output)
    save_tensors(mean_weights(checkpoints), output / WEIGHTS)
    return count
