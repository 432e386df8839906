"""Optimizers, learning-rate schedules and the moving average of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, assert_never

import torch
from torch import Tensor, nn

from nmt import recipe


def build_optimizer(config: recipe.OptimizerConfig, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of a recipe. Weight decay is decoupled in adamw (Loshchilov and Hutter 2019) and L2 elsewhere."""
    groups = parameter_groups(model)
    match config:
        case recipe.AdamConfig():
            kind = torch.optim.AdamW if config.kind == "adamw" else torch.optim.Adam
            return kind(
                groups,
                lr=config.rate,
                betas=config.betas,
                eps=config.epsilon,
                weight_decay=config.weight_decay,
                fused=True,
            )
        case recipe.AdadeltaConfig():
            return torch.optim.Adadelta(
                groups, lr=config.rate, rho=config.rho, eps=config.epsilon, weight_decay=config.weight_decay
            )
        case recipe.SgdConfig():
            sgd = torch.optim.SGD(
                groups, lr=config.rate, momentum=config.momentum, weight_decay=config.weight_decay, fused=True
            )
            if config.momentum:  # PyTorch leaves it uninitialized if the first step is skipped
                for weight in model.parameters():
                    sgd.state[weight] = {"momentum_buffer": torch.zeros_like(weight)}
            return sgd
        case _:
            assert_never(config)


def parameter_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Two groups of parameters: matrices, which have weight decay, and biases, norms and embeddings, which have none."""
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    parameters = list(model.parameters())
    decayed = [parameter for parameter in parameters if parameter.ndim >= 2 and id(parameter) not in embeddings]
    not_decayed = [parameter for parameter in parameters if parameter.ndim < 2 or id(parameter) in embeddings]
    return [{"params": decayed}, {"params": not_decayed, "weight_decay": 0.0}]


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's tensors per parameter, as `INDEX.NAME`."""
    per_parameter = optimizer.state_dict()["state"].items()
    return {
        f"{index}.{name}": value
        for index, tensors in per_parameter
        for name, value in tensors.items()
        if value is not None
    }


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `optimizer_tensors`. Learning rate and other settings stay those of the optimizer."""
    state: dict[int, dict[str, Tensor]] = {}
    for full_name, value in tensors.items():
        index, name = full_name.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@dataclass(frozen=True)
class Clock:
    """How far training has come when an update begins."""

    update: int
    """Updates completed."""
    epochs: float
    """Epochs completed, including the fraction of the current one."""
    fraction: float
    """Fraction of the whole training completed, from 0 to 1."""
    plateaus: int
    """Reductions of the plateau schedule so far."""


def rate_factor(schedule: recipe.ScheduleConfig, clock: Clock) -> float:
    """The factor of the recipe's learning rate for the next update."""
    update = clock.update + 1
    warmup = min(1.0, update / schedule.warmup) if schedule.warmup else 1.0
    match schedule:
        case recipe.ConstantScheduleConfig():
            return warmup
        case recipe.InverseSqrtScheduleConfig():
            return min(warmup, math.sqrt(schedule.warmup / update))
        case recipe.CosineScheduleConfig():
            return warmup * (
                schedule.final + (1 - schedule.final) * (1 + math.cos(math.pi * min(clock.fraction, 1.0))) / 2
            )
        case recipe.PlateauScheduleConfig():
            return warmup * float(schedule.factor**clock.plateaus)
        case recipe.HalvingScheduleConfig():
            halvings = math.floor((clock.epochs - schedule.start) / schedule.every) + 1
            return warmup * 0.5 ** max(halvings, 0)
        case _:
            assert_never(schedule)


class MovingAverage:
    """Exponential moving average of the weights: w_ema <- d w_ema + (1 - d) w after update u.

    d = min(decay, (1 + u) / (10 + u)), so that the initial weights are forgotten quickly.
    """

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.detach().clone() for name, value in weights.items()}

    def add(self, weights: Mapping[str, Tensor], update: int) -> None:
        """Add the weights after an update, counted from 1."""
        decay = min(self.decay, (1 + update) / (10 + update))
        torch._foreach_lerp_(list(self.weights.values()), [weights[name] for name in self.weights], 1 - decay)


@contextmanager
def use_weights(weights: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> Iterator[None]:
    """A context in which the parameters have the values of the weights of the same names."""
    original = {name: value.clone() for name, value in parameters.items()}
    copy_weights(weights, parameters)
    try:
        yield
    finally:
        copy_weights(original, parameters)


@torch.no_grad()
def copy_weights(weights: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> None:
    """Copy weights into the parameters of the same names."""
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
