"""Keep the best weights of a run, by validation: the model itself, the best checkpoints, and the mean of those.

The mean of the best checkpoints often translates better than each of them, at no cost in decoding (Junczys-Dowmunt et al. 2016).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from nmt.bundle.folder import WEIGHTS, load_tensors, save_tensors
from nmt.errors import DataError
from nmt.training.checkpoint import Progress, Rank, Tensors, load_state

BEST = "best"
_CHECKPOINT_NAME = re.compile(r"[0-9]{8,}\.safetensors")
"""The names that `checkpoint_file` gives. Files of other names are never removed."""


class BestCheckpoints:
    """The model and the `count` best checkpoints of a run folder; without a folder nothing is written.

    `progress` records which ones they are. It is saved with the state, after the files that it names.
    """

    def __init__(self, run: Path | None, progress: Progress, count: int) -> None:
        self.run, self.progress, self.count = run, progress, count

    def start_anew(self, metrics: list[str]) -> bool:
        """Forget the ranks, and the patience, if validation now compares other figures than before.

        Returns:
            Whether there was a best validation by other figures.
        """
        progress = self.progress
        previous, progress.metrics = progress.metrics, metrics
        if progress.best is None or previous == metrics:
            return False
        progress.best, progress.stale, progress.plateau = None, 0, 0
        progress.kept = []
        return True

    def add(self, weights: Tensors, rank: Rank) -> bool:
        """Save validated weights as the model if they are the best so far, and as a checkpoint if they are among the best.

        Returns:
            Whether they are the best so far.
        """
        progress = self.progress
        improved = progress.best is None or rank > progress.best
        if improved:
            progress.best, progress.stale = rank, 0
            self.save_model(weights)
        else:
            progress.stale += 1
        self._add_checkpoint(weights, rank)
        return improved

    def save_model(self, weights: Tensors) -> None:
        """Save weights as the model of the run folder."""
        if self.run is not None:
            save_tensors(weights, self.run / WEIGHTS)

    def _add_checkpoint(self, weights: Tensors, rank: Rank) -> None:
        """Save a checkpoint if it is among the best. The one it replaces stays until `remove_others`."""
        progress = self.progress
        checkpoint = (rank, progress.update)
        # Of two with equal rank the earlier one is better.
        ranking = sorted([*progress.kept, checkpoint], key=lambda entry: (entry[0], -entry[1]), reverse=True)
        progress.kept = ranking[: self.count]
        if self.run is not None and self.count > 1 and checkpoint in progress.kept:
            save_tensors(weights, checkpoint_file(self.run, progress.update))

    def mean(self) -> dict[str, Tensor] | None:
        """The mean of the best checkpoints; None unless there are several. Raises DataError if one is damaged."""
        if self.run is None:
            return None
        files = [checkpoint_file(self.run, update) for _, update in self.progress.kept]
        return mean_of_files(files) if len(files) > 1 else None

    def remove_others(self) -> None:
        """Remove checkpoints that are no longer among the best. Call it only after the state that says so is saved."""
        if self.run is None or not self.progress.kept:
            return  # after `start_anew` the previous ones stay until another is saved
        current = {checkpoint_file(self.run, update) for _, update in self.progress.kept}
        for path in (self.run / BEST).glob("*.safetensors"):
            if path not in current and _CHECKPOINT_NAME.fullmatch(path.name):
                with suppress(OSError):  # the next call tries again
                    path.unlink()


def mean_weights(checkpoints: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each parameter, computed in float64 so that the mean of a single checkpoint is that checkpoint."""
    return {
        name: torch.stack([checkpoint[name].double() for checkpoint in checkpoints]).mean(0).to(value.dtype)
        for name, value in checkpoints[0].items()
    }


def mean_of_files(files: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of stored checkpoints. Raises DataError if one is damaged."""
    return mean_weights([load_tensors(path) for path in files])


def checkpoint_file(run: Path, update: int) -> Path:
    """The file of a checkpoint among the best."""
    return run / BEST / f"{update:08}.safetensors"


def best_checkpoint_files(run: Path) -> list[Path]:
    """The files of the best checkpoints of a run, best first. Raises DataError if there are none."""
    files = [checkpoint_file(run, update) for _, update in load_state(run).progress.kept]
    files = [path for path in files if path.is_file()]
    if not files:
        raise DataError(f"{run} kept no checkpoints to average: train with training.validation.keep_best above 1.")
    return files
