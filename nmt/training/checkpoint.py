"""The state of a run on disk: `state.safetensors`, one file that is replaced atomically.

The model and the best checkpoints are written before the state. A run that is killed in between resumes from the previous state
and writes the same bytes again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from nmt.bundle.folder import load_tensors, save_tensors
from nmt.errors import DataError
from nmt.runtime.json_files import parse_json

STATE = "state.safetensors"
_NUMBERS = "numbers"
"""The tensor that holds everything but tensors, as JSON bytes."""
Tensors = Mapping[str, Tensor]
Rank = tuple[float, ...]
"""The figures that order validations, the most important first; higher is better."""


@dataclass
class Progress:
    """The counters of a run. Their names are those in the state file."""

    epoch: int = 0
    """Epochs completed."""
    group: int = 0
    """Updates in the current epoch."""
    update: int = 0
    """Updates in total."""
    nll: float = 0.0
    """Negative log-likelihood of the target tokens since the last line of the log, in nats."""
    words: int = 0
    """Target tokens since the last line of the log."""
    guidance: float = 0.0
    """Alignment loss of the linked target tokens since the last line of the log, in nats."""
    guided: int = 0
    """Linked target tokens since the last line of the log."""
    records: int = 0
    """Lines of the log."""
    bad: int = 0
    """Consecutive bad updates up to now."""
    skipped: int = 0
    """Bad updates in total."""
    validated: int = 0
    """The last update that was validated."""
    best: Rank | None = None
    """Rank of the best validation."""
    metrics: list[str] | None = None
    """What the figures of the ranks are, in their order; None in states of earlier versions."""
    tokenizer: str | None = None
    """sacreBLEU's tokeniser for all validations of the run, even if it is resumed elsewhere."""
    stale: int = 0
    """Validations since the best one."""
    plateau: int = 0
    """Validations without improvement since the last reduction of the plateau schedule."""
    plateaus: int = 0
    """Reductions of the plateau schedule."""
    kept: list[tuple[Rank, int]] = field(default_factory=list)
    """Rank and update of the best checkpoints, best first."""
    seconds: float = 0.0
    """Training time in total, before and after each resumption."""


@dataclass(frozen=True)
class State:
    """Everything that the coming updates depend on, apart from recipe and text.

    Attributes:
        progress: the counters.
        text: hash of each training text, by the setting that names it.
        kind: optimiser, as in the recipe.
        weights: parameters by name.
        average: their moving average; empty without one.
        optimizer: the optimiser's tensors per parameter, as `INDEX.NAME`.
        generators: state of the random number generator of each device type.
        threads: number of CPU threads; None if unknown.
        processes: number of processes that train together.
        scaler: scale of the loss in fp16, and since when.
        arithmetic: implementation that computed the updates (`nmt.fast.arithmetic`); None if unknown.
    """

    progress: Progress
    text: Mapping[str, str]
    kind: str
    weights: Tensors
    average: Tensors
    optimizer: Tensors
    generators: Tensors
    threads: int | None
    arithmetic: str | None = None
    processes: int = 1
    scaler: Mapping[str, float] = field(default_factory=dict)


_GROUPS = ("weights", "average", "optimizer", "generators")


def save_state(run: Path, state: State) -> None:
    """Write the state of a run atomically. Raises DataError, and leaves the previous state, if it cannot be written."""
    numbers = {
        "progress": asdict(state.progress),
        "text": dict(state.text),
        "kind": state.kind,
        "threads": state.threads,
        "arithmetic": state.arithmetic,
        "processes": state.processes,
        "scaler": dict(state.scaler),
    }
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
        progress = Progress(**numbers["progress"])
        progress.best = None if progress.best is None else tuple(progress.best)
        progress.kept = [(tuple(rank), update) for rank, update in progress.kept]
        groups: dict[str, dict[str, Tensor]] = {group: {} for group in _GROUPS}
        for full_name, value in tensors.items():
            group, _, name = full_name.partition(".")
            groups[group][name] = value
        return State(
            progress,
            numbers["text"],
            numbers["kind"],
            **groups,
            threads=numbers.get("threads"),
            arithmetic=numbers.get("arithmetic"),
            processes=numbers.get("processes", 1),
            scaler=numbers.get("scaler", {}),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{run / STATE} is damaged: {error}.") from None


def has_state(run: Path) -> bool:
    """Whether the run has begun to train."""
    return (run / STATE).is_file()
