"""Keep the best weights of a run, by validation: the model itself, the best checkpoints, and the mean of those.

The mean of the best checkpoints often translates better than each of them, at no cost in decoding (Junczys-Dowmunt et al. 2016).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.bundle.folder import WEIGHTS, Bundle, load_tensors, save_tensors
from nmt.errors import DataError, UsageError
from nmt.runtime.files import sync
from nmt.training.data_file import DATA
from nmt.training.folder import BEST, Tensors, load_state

Rank = tuple[float, ...]
"""The figures that order validations, the most important first; higher is better."""


class BestCheckpoints:
    """The best validation of a run, its model, and the `count` best checkpoints; without a folder nothing is written.

    The state, which says which checkpoints are the best, is saved after their files.

    Args:
        run: the run folder.
        count: number of checkpoints to keep.
        metrics: what the figures of a rank are, in their order.
    """

    def __init__(self, run: Path | None, count: int, metrics: list[str]) -> None:
        self.run, self.count, self.metrics = run, count, metrics
        self.rank: Rank | None = None
        """That of the model."""
        self.stale = 0
        """Validations since the best one."""
        self.checkpoints: list[tuple[Rank, int]] = []
        """Rank and update of the best checkpoints, best first."""

    def state_dict(self) -> dict[str, Any]:
        """The best validations, under the names that they have always had in the state."""
        return {"best": self.rank, "stale": self.stale, "kept": self.checkpoints, "metrics": self.metrics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`; but best and patience start anew if validation now compares other figures."""
        best = state.get("best")
        if best is None or state.get("metrics") != self.metrics:
            return
        self.rank, self.stale = tuple(best), state.get("stale", 0)
        for rank, update in state.get("kept", []):
            # The run may have kept one checkpoint before, the model, which needs no file.
            if self.run is None or self.count == 1 or checkpoint_file(self.run, update).is_file():
                self.checkpoints.append((tuple(rank), update))

    def add(self, weights: Tensors, rank: Rank, update: int) -> bool:
        """Save validated weights as the model if they are the best so far, and as a checkpoint if they are among the best.

        The checkpoint that a new one replaces stays until `remove_others`.

        Returns:
            Whether they are the best so far.
        """
        improved = self.improve(weights, rank)
        self.stale = 0 if improved else self.stale + 1
        # Of two with equal rank the earlier one is better.
        ranking = sorted([*self.checkpoints, (rank, update)], key=lambda entry: (entry[0], -entry[1]), reverse=True)
        self.checkpoints = ranking[: self.count]
        if self.run is not None and self.count > 1 and (rank, update) in self.checkpoints:
            save_tensors(weights, checkpoint_file(self.run, update))
        return improved

    def improve(self, weights: Tensors, rank: Rank) -> bool:
        """Save validated weights as the model if they are the best so far, and return whether they are."""
        if self.rank is not None and rank <= self.rank:
            return False
        self.rank = rank
        self.save_model(weights)
        return True

    def save_model(self, weights: Tensors) -> None:
        """Save weights as the model of the run folder."""
        if self.run is not None:
            save_tensors(weights, self.run / WEIGHTS)

    def mean(self) -> dict[str, Tensor] | None:
        """The mean of the best checkpoints; None unless there are several. Raises DataError if one is damaged."""
        if self.run is None or len(self.checkpoints) < 2:
            return None
        return mean_weights([load_tensors(checkpoint_file(self.run, update)) for _, update in self.checkpoints])

    def remove_others(self) -> None:
        """Remove checkpoints that are no longer among the best. Call it only after the state that says so is saved."""
        if self.run is None or not self.checkpoints:
            return  # by other metrics than before: the previous ones stay until another is saved
        current = {checkpoint_file(self.run, update) for _, update in self.checkpoints}
        for path in (self.run / BEST).glob("*.safetensors"):
            if path not in current and path.stem.isdigit():  # files that a user has named stay
                path.unlink(missing_ok=True)


def checkpoint_file(run: Path, update: int) -> Path:
    """The file of a checkpoint among the best."""
    return run / BEST / f"{update:08}.safetensors"


def mean_weights(checkpoints: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each parameter, computed in float64 so that the mean of a single checkpoint is that checkpoint."""
    return {
        name: torch.stack([checkpoint[name].double() for checkpoint in checkpoints]).mean(0).to(value.dtype)
        for name, value in checkpoints[0].items()
    }


def average_run(run: Path, output: Path, *, best: int | None = None) -> int:
    """Write a model folder whose weights are the mean of a run's best checkpoints, atomically.

    Args:
        run: a run trained with `training.validation.keep_best` above 1.
        output: the new model folder.
        best: number of checkpoints to average; all if None.

    Returns:
        The number of checkpoints averaged.

    Raises:
        DataError: the run has no such checkpoints, or the folder cannot be written.
        UsageError: `output` exists, or `best` is out of range.
    """
    files = [checkpoint_file(run, update) for _, update in load_state(run).progress.get("kept", [])]
    files = [path for path in files if path.is_file()]
    if not files:
        raise DataError(f"{run} kept no checkpoints to average: train with training.validation.keep_best above 1.")
    count = len(files) if best is None else best
    if not 1 <= count <= len(files):
        raise UsageError(f"--best must be between 1 and {len(files)}, the checkpoints that {run} kept, but is {count}.")
    _write_model(run, output, mean_weights([load_tensors(path) for path in files[:count]]))
    return count


def save_last(run: Path, output: Path) -> int:
    """Write a model folder with the last weights that a run has saved, or their moving average if it has one, atomically.

    The run may have ended in any way, or go on.

    Returns:
        The number of updates that they have had.

    Raises:
        DataError: `run` is no run, or the folder cannot be written.
        UsageError: `output` exists.
    """
    state = load_state(run)
    _write_model(run, output, state.average or state.weights)
    return int(state.progress["update"])


def _write_model(run: Path, output: Path, weights: Tensors) -> None:
    """Write a model folder with the recipe and subwords of a run and these weights, atomically."""
    if output.exists():
        raise UsageError(f"{output} exists already: choose another folder.")
    unfinished = output.with_name(f".{output.name}.{os.getpid()}.new")
    try:
        Bundle.load(run, weights=False).save_description(unfinished)
        if (run / DATA).is_file():
            shutil.copy(run / DATA, unfinished)
        save_tensors(weights, unfinished / WEIGHTS)
        unfinished.rename(output)
        sync(output.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
