"""What a run folder may hold when a training begins or goes on in it."""

from __future__ import annotations

import shlex
from pathlib import Path

import torch

from nmt.errors import DataError, UsageError
from nmt.files import remove_unfinished
from nmt.model_folder import RECIPE, SOURCE, TARGET, check_folder
from nmt.recipe import Recipe, changed_keys
from nmt.training.best import BEST
from nmt.training.checkpoint import State, has_state, load_state
from nmt.training.lock import LOCK
from nmt.training.text import TrainingText

_DESCRIPTION = (RECIPE, SOURCE, TARGET)
_BEFORE = (*_DESCRIPTION, "tensorboard")
"""What a run writes before it trains."""


def open_folder(recipe: Recipe, folder: Path, *, resume: bool, force: bool) -> State | None:
    """The state to go on from; None if training is to begin, as it also is in a folder of a run that ended before it trained.

    What a killed process left half written is removed, so the folder must be locked.

    Raises:
        UsageError: there is something in the folder and it is not to be resumed, or the recipe is another one.
        DataError: it holds something, but no run that can go on, or its state is damaged.
    """
    if not resume:
        if any(path.name != LOCK for path in folder.iterdir()):
            raise UsageError(f"{folder} exists already: go on with --resume, or choose another folder with --out.")
        return None
    if not has_state(folder):
        check_untrained(folder)
        remove_unfinished(folder)
        return None
    check_folder(folder, list(_DESCRIPTION))
    changed = changed_keys(recipe, folder / RECIPE)
    if changed and not force:
        raise UsageError(
            f"The recipe differs from that of the run in {folder} in {', '.join(changed)}: undo that, or add --force."
        )
    for place in (folder, folder / BEST):
        remove_unfinished(place)
    return load_state(folder)


def check_untrained(folder: Path) -> None:
    """Raises DataError if a folder without a state holds more than what a run writes before it trains."""
    others = sorted(path.name for path in folder.iterdir() if path.name not in _BEFORE and path.name[0] != ".")
    if others and not has_state(folder):
        raise DataError(
            f"{folder} holds {others[0]}, but no state of a training to go on from: choose another folder with --out."
        )


def check_text(state: State, text: TrainingText, folder: Path) -> None:
    """Raises DataError if the run was trained on other text than this."""
    now = text.fingerprints
    changed = [name for name in (*now, *state.text) if now.get(name) != state.text.get(name)]
    if changed:
        raise DataError(
            f"What {' and '.join(dict.fromkeys(changed))} name has changed since the run in {folder} was trained on it: "
            "bring it back, or add --force."
        )


def how_to_resume(folder: Path, device: torch.device) -> str:
    """The command that goes on with a run as it began, on the same device with as many threads."""
    machine = ["--device", str(device), *(["--threads", str(torch.get_num_threads())] if device.type == "cpu" else [])]
    return shlex.join(["nmt", "train", f"{folder}/{RECIPE}", "--out", str(folder), "--resume", *machine])
