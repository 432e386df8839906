"""The state of a run on disk: `state.safetensors`, one file that is replaced atomically.

The model and the best checkpoints are written before the state. A run that is killed in between resumes from the previous state
and writes the same bytes again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.bundle.folder import load_tensors, save_tensors
from nmt.errors import DataError
from nmt.runtime.json_files import parse_json

STATE = "state.safetensors"
_NUMBERS = "numbers"
"""The tensor that holds everything but tensors, as JSON bytes."""
Tensors = Mapping[str, Tensor]


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
