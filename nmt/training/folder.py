"""The run folder: its lock, the state of the run, and checks of what is in it before training starts or resumes.

The state is `state.safetensors`, one file that is replaced atomically. The model and the best checkpoints are written before it. A run
that is killed in between resumes from the previous state and writes the same bytes again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.bundle.folder import RECIPE, SOURCE, TARGET, WEIGHTS, check_folder, load_tensors, save_tensors
from nmt.errors import DataError, UsageError
from nmt.recipe import FOUND_IN_TRAINING, LENGTH_PENALTY, MBR_BETA, MBR_SAMPLES, Recipe, changed_keys
from nmt.runtime.files import locked, remove_unfinished
from nmt.runtime.json_files import parse_json

STATE = "state.safetensors"
_NUMBERS = "numbers"
"""The tensor that holds everything but tensors, as JSON bytes."""
Tensors = Mapping[str, Tensor]
GIVEN = "given.yaml"
"""The recipe of a training with monolingual text (`nmt.training.back_translation`)."""
BEST = "best"
"""The folder of the best checkpoints."""
LOCK = ".lock"
"""The file whose lock a training holds. It stays in a run folder when the training has ended."""
_EXTENSIBLE = (
    *(f"decoding.{name}" for name in FOUND_IN_TRAINING),
    LENGTH_PENALTY,
    MBR_SAMPLES,
    MBR_BETA,
    "training.epochs",
    "training.updates",
    "training.log_every",
    "training.tensorboard",
    "training.validation.every",
    "training.validation.patience",
    "training.validation.keep_best",
)
"""Settings of how long a run goes on, how it decodes and what is noted of it. Changing them makes no other run of it."""


@dataclass(frozen=True)
class State:
    """Everything that the coming updates depend on, apart from recipe and text.

    Attributes:
        progress: the counters and figures of the parts of the trainer, by name.
        text: hash of each training text, by the setting that names it.
        kind: optimizer, as in the recipe.
        weights: parameters by name.
        average: their moving average; empty without one.
        optimizer: the optimizer's tensors per parameter, as `INDEX.NAME`.
        generators: state of the random number generator of each device type.
        threads: number of CPU threads; None if unknown.
        processes: number of processes that train together.
        scaler: scale of the loss in fp16, and since when.
        arithmetic: implementation that computed the updates (`nmt.fast.arithmetic`); None if unknown.
    """

    progress: dict[str, Any]
    text: Mapping[str, str]
    kind: str
    weights: Tensors
    average: Tensors
    optimizer: Tensors
    generators: Tensors
    threads: int | None = None
    arithmetic: str | None = None
    processes: int = 1
    scaler: Mapping[str, float] = field(default_factory=dict)


_GROUPS = ("weights", "average", "optimizer", "generators")


def save_state(run: Path, state: State) -> None:
    """Write the state of a run atomically. Raises DataError, and leaves the previous state, if it cannot be written."""
    numbers = {name: value for name, value in vars(state).items() if name not in _GROUPS}
    tensors = {f"{group}.{name}": value for group in _GROUPS for name, value in getattr(state, group).items()}
    tensors[_NUMBERS] = torch.tensor(list(json.dumps(numbers).encode()), dtype=torch.uint8)
    save_tensors(tensors, run / STATE)


def load_state(run: Path) -> State:
    """Read the state of a run. Raises DataError if there is none or it is damaged."""
    if not has_state(run):
        raise DataError(f"{run} holds no {STATE} of an unfinished or finished training run.")
    tensors = load_tensors(run / STATE)
    try:
        numbers = parse_json(bytes(tensors.pop(_NUMBERS).tolist()))
        groups: dict[str, Any] = {group: {} for group in _GROUPS}
        for full_name, value in tensors.items():
            group, _, name = full_name.partition(".")
            groups[group][name] = value
        return State(**{**numbers, "progress": dict(numbers["progress"])}, **groups)
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{run / STATE} is damaged: {error}.") from None


def has_state(run: Path) -> bool:
    """Whether the run has begun to train."""
    return (run / STATE).is_file()


def lock_folder(folder: Path) -> AbstractContextManager[None]:
    """A context in which this process alone writes to a folder, which is made if necessary. Raises UsageError and DataError."""
    busy = f"Another training is at work in {folder}: wait for it or stop it, or choose another folder with --out."
    return locked(folder / LOCK, busy)


def open_folder(recipe: Recipe, folder: Path, *, resume: bool, force: bool) -> State | None:
    """The state to resume from; None if training starts from the beginning.

    A run that ended before its first state also starts from the beginning. Files that a killed process left half written are
    removed, so the folder must be locked.

    Raises:
        UsageError: the folder is not empty and `resume` is off, or the recipe is another one (more updates or epochs, longer
            patience and the like extend the run) and `force` is off.
        DataError: the folder holds a model but no run, or the state is damaged.
    """
    if not resume:
        if any(path.name != LOCK for path in folder.iterdir()):
            raise UsageError(f"{folder} exists already: go on with --resume, or choose another folder with --out.")
        return None
    if not has_state(folder):
        if (folder / GIVEN).exists():
            raise UsageError(f"{folder} was begun with --monolingual: add that, or leave out all but --resume.")
        if (folder / WEIGHTS).exists():
            raise DataError(f"{folder} holds a model, but no state of a training to go on from: choose another --out.")
        remove_unfinished(folder)
        return None
    check_folder(folder, [RECIPE, SOURCE, TARGET])
    keys = [key for key in changed_keys(recipe, folder / RECIPE) if key not in _EXTENSIBLE]
    if keys and not force:
        raise UsageError(
            f"The recipe differs from that of the run in {folder} in {', '.join(keys)}: undo that, or add --force."
        )
    remove_unfinished(folder)
    remove_unfinished(folder / BEST)
    return load_state(folder)


def check_weights(state: State, weights: Tensors, folder: Path) -> None:
    """Raise DataError if the run trained weights of other names or shapes."""
    new, stored = ({(name, tuple(weight.shape)) for name, weight in side.items()} for side in (weights, state.weights))
    if new != stored:
        name, shape = min(new ^ stored)
        raise DataError(
            f"The run in {folder} cannot go on with this recipe, not even by --force: {name} of shape {list(shape)} is only "
            f"in its {'state' if (name, shape) in stored else 'new model'}. Train anew, in another folder."
        )
