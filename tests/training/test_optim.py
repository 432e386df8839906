"""Schedules against values worked out by hand, and the moving average against its equation."""

import math

import pytest
import torch

from nmt import recipe
from nmt.training.optim import Clock, MovingAverage, build_optimizer, rate_factor, using


def clock(update: int = 0, epochs: float = 0.0, share: float = 0.0, plateaus: int = 0) -> Clock:
    return Clock(update, epochs, share, plateaus)


@pytest.mark.parametrize(
    ("schedule", "at", "expected"),
    [
        (recipe.ConstantSchedule(), clock(999), 1.0),
        (recipe.ConstantSchedule(warmup=10), clock(4), 0.5),
        (recipe.InverseSqrtSchedule(warmup=100), clock(24), 0.25),
        (recipe.InverseSqrtSchedule(warmup=100), clock(399), 0.5),
        (recipe.CosineSchedule(), clock(share=0.5), 0.5),
        (recipe.CosineSchedule(final=0.1), clock(share=1.0), 0.1),
        (recipe.PlateauSchedule(factor=0.5), clock(plateaus=3), 0.125),
        (recipe.HalvingSchedule(start=5), clock(epochs=4.99), 1.0),
        (recipe.HalvingSchedule(start=5), clock(epochs=5.0), 0.5),
        (recipe.HalvingSchedule(start=8, every=0.5), clock(epochs=9.2), 0.125),
    ],
)
def test_rate(schedule: recipe.Schedule, at: Clock, expected: float) -> None:
    assert rate_factor(schedule, at) == pytest.approx(expected)


def test_moving_average_follows_its_equation() -> None:
    weights = {"w": torch.zeros(1)}
    average = MovingAverage(weights, decay=0.5)
    expected = 0.0
    for update in range(1, 30):
        weights["w"] += 1.0
        average.follow(weights, update)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * update
    assert float(average.weights["w"]) == pytest.approx(expected)


def test_using_puts_the_weights_back_even_after_an_error() -> None:
    weights = {"w": torch.ones(2)}
    with pytest.raises(KeyError), using({"w": torch.zeros(2)}, weights):  # noqa: PT012
        assert float(weights["w"].sum()) == 0
        raise KeyError
    assert float(weights["w"].sum()) == 2


@pytest.mark.parametrize(
    "chosen", [recipe.Adam(rate=0.1), recipe.Adam(kind="adamw", rate=0.1), recipe.Sgd(rate=0.1, momentum=0.9)]
)
def test_every_optimiser_goes_downhill(chosen: recipe.Optimizer) -> None:
    weight = torch.nn.Parameter(torch.tensor([3.0]))
    optimizer = build_optimizer(chosen, [weight])
    for _ in range(100):
        optimizer.zero_grad()
        torch.autograd.backward((weight**2).sum())
        optimizer.step()
    assert math.fabs(weight.item()) < 0.5
