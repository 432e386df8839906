"""Collect the state of a training in progress, and restore it when a run is resumed."""

from __future__ import annotations

import logging
from pathlib import Path

import torch
from torch import Tensor

from nmt.errors import DataError
from nmt.fast import arithmetic
from nmt.training.checkpoint import Progress, State, Tensors
from nmt.training.optim import MovingAverage, copy_weights
from nmt.training.text import TrainingText
from nmt.training.update import TrainStep

_log = logging.getLogger(__name__)


def collect_state(
    progress: Progress, text: TrainingText, weights: Tensors, average: MovingAverage | None, train_step: TrainStep
) -> State:
    """The current state of a training."""
    return State(
        progress,
        text.fingerprints,
        train_step.settings.optimizer.kind,
        weights,
        {} if average is None else average.weights,
        optimizer_tensors(train_step.optimizer),
        generator_states(train_step.device),
        torch.get_num_threads(),
        arithmetic(),
        train_step.ranks.count,
        train_step.scaler.state_dict(),
    )


def restore_state(
    state: State, folder: Path, weights: Tensors, average: MovingAverage | None, train_step: TrainStep
) -> None:
    """Restore everything in a state but its progress.

    The optimiser starts anew if the recipe now has another one, and the moving average starts from the weights if the run had
    none.

    Raises:
        DataError: the state belongs to a model of other shapes.
    """
    _warn_of_changed_arithmetic(state, folder, train_step.device, train_step.ranks.count)
    if difference := _shape_difference(weights, state.weights):
        raise DataError(
            f"The run in {folder} cannot go on with this recipe, not even by --force: {difference}. Train anew, "
            "in another folder."
        )
    copy_weights(state.weights, weights)
    if average is not None:
        copy_weights(state.average or state.weights, average.weights)
    if state.kind == train_step.settings.optimizer.kind:
        restore_optimizer(train_step.optimizer, state.optimizer)
    if state.scaler and train_step.scaler.is_enabled():
        train_step.scaler.load_state_dict(dict(state.scaler))
    restore_generators(state.generators, train_step.device)


def _warn_of_changed_arithmetic(state: State, folder: Path, device: torch.device, processes: int) -> None:
    """Warn if the run will round differently than before, which gives a slightly different model."""
    threads = torch.get_num_threads()
    if device.type == "cpu" and state.threads not in (None, threads):
        _log.warning(
            "The run in %s had --threads %d and goes on with %d: it will come to another model than one that was never ended.",
            folder,
            state.threads,
            threads,
        )
    if state.processes != processes:
        _log.warning(
            "The run in %s had --processes %d and goes on with %d: it will come to another model than one that was never ended.",
            folder,
            state.processes,
            processes,
        )
    if state.arithmetic not in (None, arithmetic()):
        _log.warning(
            "The run in %s computed with %s and goes on with %s: it will come to another model than one that was never ended.",
            folder,
            state.arithmetic,
            arithmetic(),
        )


def _shape_difference(expected: Tensors, stored: Tensors) -> str | None:
    """The first difference between the names and shapes of two sets of weights; None if there is none."""
    if names := sorted(expected.keys() ^ stored.keys()):
        return f"only one of the two has {names[0]}"
    for name, value in expected.items():
        if value.shape != stored[name].shape:
            return f"{name} is {list(stored[name].shape)} but would be {list(value.shape)}"
    return None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors per parameter, as `INDEX.NAME`."""
    per_parameter = optimizer.state_dict()["state"].items()
    return {
        f"{index}.{name}": value
        for index, tensors in per_parameter
        for name, value in tensors.items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """The inverse of `optimizer_tensors`. Learning rate and other settings stay those of the optimiser."""
    state: dict[int, dict[str, Tensor]] = {}
    for full_name, value in tensors.items():
        index, name = full_name.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def generator_states(device: torch.device) -> dict[str, Tensor]:
    """The states of the random number generators that training on a device uses."""
    states = {"cpu": torch.get_rng_state()}
    return {**states, "cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def restore_generators(states: Tensors, device: torch.device) -> None:
    """Restore the random number generators. A run that moves from the CPU to a GPU has no state for the GPU's generator."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
