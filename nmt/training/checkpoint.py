"""What resuming needs on top of the bundle: `state.safetensors` with the last weights, the optimiser, the generators, the counters.

It is one file, replaced at once, so that there is always one that belongs together. The model and the best checkpoints are
written before it: a run that is killed in between does them again, to the same bytes, when it goes on from the last state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from nmt.errors import DataError
from nmt.model_folder import load_tensors, save_tensors

STATE = "state.safetensors"
_NUMBERS = "numbers"
Tensors = Mapping[str, Tensor]
Rank = tuple[float, ...]
"""The figures that validations are compared by, the one that decides first; higher is better."""


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
    records: int = 0
    """Lines of the log."""
    bad: int = 0
    """Updates in a row that could not be taken, the last one included."""
    skipped: int = 0
    """Updates that could not be taken, in all."""
    validated: int = 0
    """The update that was validated last."""
    best: Rank | None = None
    """The rank of the best validation so far."""
    tokenizer: str | None = None
    """sacreBLEU's, which the validations are compared with wherever the run goes on."""
    stale: int = 0
    """Validations since the best one."""
    plateau: int = 0
    """Validations without improvement that the plateau schedule has counted since its last reduction."""
    plateaus: int = 0
    """Reductions of the plateau schedule."""
    kept: list[tuple[Rank, int]] = field(default_factory=list)
    """Rank and update number of the best checkpoints kept, best first."""
    seconds: float = 0.0
    """Time spent training so far, over all sittings."""


@dataclass(frozen=True)
class State:
    """Everything that decides what the updates to come will do.

    Attributes:
        progress: the counters.
        text: a hash of each text trained on, under the setting that names it.
        kind: of the optimiser, as in the recipe.
        weights: the parameters by name.
        average: their moving average; empty without one.
        optimizer: what the optimiser keeps of each parameter, as `INDEX.NAME`.
        generators: the state of the random generator of each device, under its type.
        threads: of the CPU that it was computed with; None if it is not known.
        arithmetic: what computed it, see `nmt.fast.arithmetic`; None if it is not known.
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


_GROUPS = ("weights", "average", "optimizer", "generators")


def save_state(run: Path, state: State) -> None:
    """Write the state of a run. Raises DataError, leaving the last one, if the disk is full or not writable."""
    numbers = {
        "progress": asdict(state.progress),
        "text": dict(state.text),
        "kind": state.kind,
        "threads": state.threads,
        "arithmetic": state.arithmetic,
    }
    named = {f"{group}.{name}": value for group in _GROUPS for name, value in getattr(state, group).items()}
    named[_NUMBERS] = torch.tensor(list(json.dumps(numbers).encode()), dtype=torch.uint8)
    save_tensors(named, run / STATE)


def load_state(run: Path) -> State:
    """Read the state of a run. Raises DataError if there is none or it is damaged."""
    if not has_state(run):
        raise DataError(f"{run} holds no {STATE} of an unfinished or finished training run.")
    named = load_tensors(run / STATE)
    try:
        numbers = json.loads(bytes(named.pop(_NUMBERS).tolist()))
        progress = Progress(**numbers["progress"])
        progress.best = None if progress.best is None else tuple(progress.best)
        progress.kept = [(tuple(rank), update) for rank, update in progress.kept]
        groups: dict[str, dict[str, Tensor]] = {group: {} for group in _GROUPS}
        for name, value in named.items():
            group, _, own = name.partition(".")
            groups[group][own] = value
        threads, arithmetic = numbers.get("threads"), numbers.get("arithmetic")
        return State(progress, numbers["text"], numbers["kind"], **groups, threads=threads, arithmetic=arithmetic)
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{run / STATE} is damaged: {error}.") from None


def has_state(run: Path) -> bool:
    """Whether a run has begun to train."""
    return (run / STATE).is_file()


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser keeps of each parameter, as `INDEX.NAME`."""
    kept = optimizer.state_dict()["state"].items()
    return {f"{index}.{name}": value for index, own in kept for name, value in own.items() if value is not None}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """The inverse of `optimizer_tensors`; rates and other settings stay those of the optimiser."""
    state: dict[int, dict[str, Tensor]] = {}
    for place, value in tensors.items():
        index, name = place.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def generator_states(device: torch.device) -> dict[str, Tensor]:
    """The states of the random generators that training on a device draws from."""
    states = {"cpu": torch.get_rng_state()}
    return {**states, "cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def restore_generators(states: Tensors, device: torch.device) -> None:
    """Put the generators back into these states; one that has none goes on as it is."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
