"""The best checkpoints of a run, by validation, and their mean.

The mean is often better than any of them, and free at decoding time (Junczys-Dowmunt et al. 2016).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from nmt.errors import DataError
from nmt.model_folder import load_tensors, save_tensors
from nmt.training.checkpoint import Progress, Rank, Tensors, load_state

BEST = "best"
_OWN = re.compile(r"[0-9]{8,}\.safetensors")
"""The names that `best_file` gives: no other file is removed."""


class BestCheckpoints:
    """The few best checkpoints in a run folder; which they are is part of the progress, which is saved after them."""

    def __init__(self, run: Path, progress: Progress, count: int) -> None:
        self.run, self.progress, self.count = run, progress, count

    def consider(self, weights: Tensors, rank: Rank) -> None:
        """Keep the weights of this update if they are among the best; what they drive out stays until it is removed."""
        progress = self.progress
        ranked = sorted([*progress.kept, (rank, progress.update)], key=lambda kept: (kept[0], -kept[1]), reverse=True)
        progress.kept = ranked[: self.count]
        if self.count > 1 and (rank, progress.update) in progress.kept:
            save_tensors(weights, best_file(self.run, progress.update))

    def mean(self) -> dict[str, Tensor] | None:
        """The mean of all that are kept, if they are several. Raises DataError if one is damaged."""
        files = [best_file(self.run, update) for _, update in self.progress.kept]
        return mean_of(files) if len(files) > 1 else None

    def remove_others(self) -> None:
        """Remove the files of all that are no longer kept. Not before the state that says so is saved."""
        kept = {best_file(self.run, update) for _, update in self.progress.kept}
        for path in (self.run / BEST).glob("*.safetensors"):
            if path not in kept and _OWN.fullmatch(path.name):
                with suppress(OSError):  # it is tried again after the next save
                    path.unlink()


def mean_weights(checkpoints: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each parameter, taken in float64 so that the mean of one checkpoint is that checkpoint."""
    return {
        name: torch.stack([checkpoint[name].double() for checkpoint in checkpoints]).mean(0).to(value.dtype)
        for name, value in checkpoints[0].items()
    }


def mean_of(files: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of checkpoints. Raises DataError if one is damaged."""
    return mean_weights([load_tensors(path) for path in files])


def best_file(run: Path, update: int) -> Path:
    """Where the weights of a kept checkpoint are."""
    return run / BEST / f"{update:08}.safetensors"


def kept_checkpoints(run: Path) -> list[Path]:
    """The weights of the best checkpoints that a run kept, best first. Raises DataError if it kept none."""
    files = [path for _, update in load_state(run).progress.kept if (path := best_file(run, update)).is_file()]
    if not files:
        raise DataError(f"{run} kept no checkpoints to average: train with training.validation.keep_best above 1.")
    return files
