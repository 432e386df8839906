"""The run folder: lock it, and check what is in it before training starts or resumes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from nmt.bundle.folder import RECIPE, SOURCE, TARGET, WEIGHTS, check_folder
from nmt.errors import DataError, UsageError
from nmt.recipe import LENGTH_PENALTY, MBR_BETA, MBR_SAMPLES, Recipe, changed_keys
from nmt.runtime.files import locked, remove_unfinished
from nmt.training.best import BEST
from nmt.training.checkpoint import State, Tensors, has_state, load_state
from nmt.training.text import TrainingText

LOCK = ".lock"
"""The file whose lock a training holds. It stays in a run folder when the training has ended."""
_DESCRIPTION = (RECIPE, SOURCE, TARGET)
_EXTENSIBLE = (
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
"""Settings of how long a run goes on and what is noted of it. Changing them makes no other run of it."""


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
        if (folder / WEIGHTS).exists():
            raise DataError(f"{folder} holds a model, but no state of a training to go on from: choose another --out.")
        remove_unfinished(folder)
        return None
    check_folder(folder, list(_DESCRIPTION))
    keys = [key for key in changed_keys(recipe, folder / RECIPE) if key not in _EXTENSIBLE]
    if keys and not force:
        raise UsageError(
            f"The recipe differs from that of the run in {folder} in {', '.join(keys)}: undo that, or add --force."
        )
    remove_unfinished(folder)
    remove_unfinished(folder / BEST)
    return load_state(folder)


def check_text(state: State, text: TrainingText, folder: Path) -> None:
    """Raise DataError if the run was trained on another text."""
    changed = sorted({name for name, _ in text.fingerprints.items() ^ state.text.items()})
    if changed:
        raise DataError(
            f"What {' and '.join(changed)} name has changed since the run in {folder} was trained on it: "
            "bring it back, or add --force."
        )


def check_weights(state: State, weights: Tensors, folder: Path) -> None:
    """Raise DataError if the run trained weights of other names or shapes."""
    new, stored = ({(name, tuple(weight.shape)) for name, weight in side.items()} for side in (weights, state.weights))
    if new != stored:
        name, shape = min(new ^ stored)
        raise DataError(
            f"The run in {folder} cannot go on with this recipe, not even by --force: {name} of shape {list(shape)} is only "
            f"in its {'state' if (name, shape) in stored else 'new model'}. Train anew, in another folder."
        )
