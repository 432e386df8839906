"""What resuming needs on top of the bundle: `state/` with the last weights, the optimiser, the generators and the counters.

Everything is tensors (safetensors) and numbers (JSON). The folder is written beside and swapped in by renaming; if the
program ends between the two renames, the old one is still there as `state.old`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.bundle import load_tensors, save_tensors, sync, write_atomically
from nmt.errors import DataError

STATE, BEST = "state", "best"


@dataclass
class Progress:
    """The counters of a run: plain numbers, saved as JSON."""

    epoch: int = 0
    """Epochs done."""
    group: int = 0
    """Updates done in the current epoch."""
    update: int = 0
    """Updates done in all."""
    nll: float = 0.0
    """Negative log-likelihood of the words since the last line of the log, in nats."""
    words: int = 0
    """Target pieces since the last line of the log."""
    guidance: float = 0.0
    """Cross-entropy of the attention of linked pieces since the last line of the log, in nats."""
    guided: int = 0
    """Linked target pieces since the last line of the log."""
    best: float | None = None
    """The best validation figure so far."""
    stale: int = 0
    """Validations since the best one."""
    plateau: int = 0
    """Validations without improvement that the plateau schedule has counted since its last reduction."""
    plateaus: int = 0
    """Reductions of the plateau schedule."""
    kept: list[tuple[float, int]] = field(default_factory=list)
    """Figure and update number of the best checkpoints kept, best first."""
    seconds: float = 0.0
    """Time spent training so far, over all sittings."""


@dataclass(frozen=True)
class State:
    """Everything that decides what the updates to come will do."""

    progress: Progress
    weights: Mapping[str, Tensor]
    average: Mapping[str, Tensor] | None
    optimizer: dict[str, Any]


def save_state(run: Path, state: State) -> None:
    """Write `state/` of a run. Raises DataError, leaving the last one, if the disk is full or not writable."""
    new, old, final = (run / name for name in (f"{STATE}.new", f"{STATE}.old", STATE))
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        save_tensors(state.weights, new / "weights.safetensors")
        if state.average is not None:
            save_tensors(state.average, new / "average.safetensors")
        tensors, numbers = _split(state.optimizer["state"])
        save_tensors(tensors, new / "optimizer.safetensors")
        save_tensors({"torch": torch.get_rng_state()}, new / "generators.safetensors")
        content = {"progress": asdict(state.progress), "optimizer": numbers, "groups": state.optimizer["param_groups"]}
        write_atomically(new / "progress.json", lambda path: path.write_text(json.dumps(content), encoding="utf-8"))
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            os.rename(final, old)
        os.rename(new, final)
        sync(run)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise DataError(f"Cannot save the training state in {run}: {error.strerror or error}.") from None


def load_state(run: Path) -> State:
    """Read the last complete state of a run and set torch's generator. Raises DataError if there is none."""
    folder = _last_state(run)
    content, progress = _read_progress(folder)
    average = folder / "average.safetensors"
    optimizer = _join(load_tensors(folder / "optimizer.safetensors"), content["optimizer"])
    torch.set_rng_state(load_tensors(folder / "generators.safetensors")["torch"])
    return State(
        progress,
        load_tensors(folder / "weights.safetensors"),
        load_tensors(average) if average.is_file() else None,
        {"state": optimizer, "param_groups": content["groups"]},
    )


def best_file(run: Path, update: int) -> Path:
    """Where the weights of a kept checkpoint are."""
    return run / BEST / f"{update:08}.safetensors"


def kept_checkpoints(run: Path) -> list[Path]:
    """The weights of the best checkpoints that a run kept, best first. Raises DataError if it kept none."""
    progress = _read_progress(_last_state(run))[1]
    files = [path for _, update in progress.kept if (path := best_file(run, update)).is_file()]
    if not files:
        raise DataError(f"{run} kept no checkpoints to average: train with training.validation.keep_best above 1.")
    return files


def has_state(run: Path) -> bool:
    """Whether a run has got as far as saving a state."""
    return _find_state(run) is not None


def _find_state(run: Path) -> Path | None:
    return next((run / name for name in (STATE, f"{STATE}.old") if (run / name / "progress.json").is_file()), None)


def _last_state(run: Path) -> Path:
    folder = _find_state(run)
    if folder is None:
        raise DataError(f"{run} holds no {STATE}/ folder of an unfinished or finished training run.")
    return folder


def _read_progress(folder: Path) -> tuple[dict[str, Any], Progress]:
    path = folder / "progress.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        progress = Progress(**content["progress"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path} is damaged: {error}.") from None
    progress.kept = [(figure, update) for figure, update in progress.kept]
    return content, progress


def _split(state: Mapping[int, Mapping[str, Any]]) -> tuple[dict[str, Tensor], dict[str, dict[str, Any]]]:
    """An optimiser's state as named tensors and the plain numbers beside them."""
    tensors = {
        f"{index}.{key}": value
        for index, own in state.items()
        for key, value in own.items()
        if isinstance(value, Tensor)
    }
    numbers = {
        str(index): {key: value for key, value in own.items() if not isinstance(value, Tensor)}
        for index, own in state.items()
    }
    return tensors, numbers


def _join(tensors: Mapping[str, Tensor], numbers: Mapping[str, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """The inverse of `_split`."""
    state: dict[int, dict[str, Any]] = {int(index): dict(own) for index, own in numbers.items()}
    for name, value in tensors.items():
        index, key = name.split(".", 1)
        state[int(index)][key] = value
    return state
