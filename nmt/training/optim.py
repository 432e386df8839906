"""Optimisers, learning-rate schedules and the moving average of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, assert_never

import torch
from torch import Tensor, nn

from nmt import recipe


def build_optimizer(chosen: recipe.OptimizerConfig, model: nn.Module) -> torch.optim.Optimizer:
    """The optimiser of a recipe. Weight decay is decoupled in adamw (Loshchilov and Hutter 2019) and L2 elsewhere."""
    groups = parameter_groups(model)
    match chosen:
        case recipe.AdamConfig():
            kind = torch.optim.AdamW if chosen.kind == "adamw" else torch.optim.Adam
            return kind(
                groups,
                lr=chosen.rate,
                betas=chosen.betas,
                eps=chosen.epsilon,
                weight_decay=chosen.weight_decay,
                fused=True,
            )
        case recipe.SgdConfig():
            return torch.optim.SGD(
                groups, lr=chosen.rate, momentum=chosen.momentum, weight_decay=chosen.weight_decay, fused=True
            )
        case _:
            assert_never(chosen)


def parameter_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Parameters that weight decay shrinks, which are matrices, and those that it spares: biases, norms and embeddings."""
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    parameters = list(model.parameters())
    spared = [each for each in parameters if each.ndim < 2 or id(each) in embeddings]
    decayed = [each for each in parameters if each.ndim >= 2 and id(each) not in embeddings]
    return [{"params": decayed}, {"params": spared, "weight_decay": 0.0}]


@dataclass(frozen=True)
class Clock:
    """How far training has come."""

    update: int
    """Updates done before the one to come."""
    epochs: float
    """Epochs done, with the part of the current one."""
    share: float
    """Of the whole training, from 0 to 1."""
    plateaus: int
    """How often validation has stood still for as long as a plateau schedule waits."""


def rate_factor(schedule: recipe.ScheduleConfig, clock: Clock) -> float:
    """What the recipe's rate is multiplied with for the update to come."""
    update = clock.update + 1
    warm = min(1.0, update / schedule.warmup) if schedule.warmup else 1.0
    match schedule:
        case recipe.ConstantScheduleConfig():
            return warm
        case recipe.InverseSqrtScheduleConfig():
            return min(warm, math.sqrt(schedule.warmup / update))
        case recipe.CosineScheduleConfig():
            return warm * (schedule.final + (1 - schedule.final) * (1 + math.cos(math.pi * min(clock.share, 1.0))) / 2)
        case recipe.PlateauScheduleConfig():
            return warm * float(schedule.factor**clock.plateaus)
        case recipe.HalvingScheduleConfig():
            halvings = math.floor((clock.epochs - schedule.start) / schedule.every) + 1
            return warm * 0.5 ** max(halvings, 0)
        case _:
            assert_never(schedule)


class MovingAverage:
    """w_ema <- d w_ema + (1 - d) w after every update, with d = min(decay, (1 + u) / (10 + u)) so that the start is forgotten."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.detach().clone() for name, value in weights.items()}

    def follow(self, weights: Mapping[str, Tensor], update: int) -> None:
        """Take in the weights after update number `update`."""
        decay = min(self.decay, (1 + update) / (10 + update))
        torch._foreach_lerp_(list(self.weights.values()), [weights[name] for name in self.weights], 1 - decay)


@contextmanager
def using(weights: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> Iterator[None]:
    """Put `weights` into the parameters of the same names for a while."""
    before = {name: value.clone() for name, value in parameters.items()}
    copy_into(parameters, weights)
    try:
        yield
    finally:
        copy_into(parameters, before)


@torch.no_grad()
def copy_into(parameters: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Overwrite parameters with the weights of the same names."""
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
