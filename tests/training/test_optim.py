"""Learning-rate schedules against values computed by hand, and the moving average against its equation."""

import numpy as np
import pytest
import torch

from nmt import recipe
from nmt.training.optim import Clock, MovingAverage, build_optimizer, rate_factor
from tests.reference.adadelta import adadelta


def clock(update: int = 0, epochs: float = 0.0, fraction: float = 0.0, plateaus: int = 0) -> Clock:
    return Clock(update, epochs, fraction, plateaus)


@pytest.mark.parametrize(
    ("schedule", "at", "expected"),
    [
        (recipe.ConstantScheduleConfig(), clock(999), 1.0),
        (recipe.ConstantScheduleConfig(warmup=10), clock(4), 0.5),
        (recipe.InverseSqrtScheduleConfig(warmup=100), clock(24), 0.25),
        (recipe.InverseSqrtScheduleConfig(warmup=100), clock(399), 0.5),
        (recipe.CosineScheduleConfig(), clock(fraction=0.5), 0.5),
        (recipe.CosineScheduleConfig(final=0.1), clock(fraction=1.0), 0.1),
        (recipe.PlateauScheduleConfig(factor=0.5), clock(plateaus=3), 0.125),
        (recipe.HalvingScheduleConfig(start=5), clock(epochs=4.99), 1.0),
        (recipe.HalvingScheduleConfig(start=5), clock(epochs=5.0), 0.5),
        (recipe.HalvingScheduleConfig(start=8, every=0.5), clock(epochs=9.2), 0.125),
    ],
)
def test_rate(schedule: recipe.ScheduleConfig, at: Clock, expected: float) -> None:
    assert rate_factor(schedule, at) == pytest.approx(expected)


def test_moving_average_follows_its_equation() -> None:
    weights = {"w": torch.zeros(1)}
    average = MovingAverage(weights, decay=0.5)
    expected = 0.0
    for update in range(1, 30):
        weights["w"] += 1.0
        average.add(weights, update)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * update
    assert float(average.weights["w"]) == pytest.approx(expected)


class Layer(torch.nn.Module):
    """A matrix, a bias, a norm, and an embedding tied to the output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.norm = torch.nn.LayerNorm(2)
        self.embedding = torch.nn.Embedding(5, 2)
        self.output = torch.nn.Linear(2, 5)
        self.output.weight = self.embedding.weight
        for parameter in self.parameters():
            torch.nn.init.constant_(parameter, 2.0)


OPTIMIZERS = [
    recipe.AdamConfig(rate=0.1),
    recipe.AdamConfig(kind="adamw", rate=0.1),
    recipe.AdadeltaConfig(rate=10),
    recipe.SgdConfig(rate=0.1, momentum=0.9),
]


def test_adadelta_follows_its_algorithm() -> None:
    generator = np.random.default_rng(1)
    start, gradients = generator.normal(size=4), [generator.normal(size=4) for _ in range(5)]
    layer = torch.nn.Linear(4, 1, bias=False).double()
    torch.nn.init.zeros_(layer.weight)
    layer.weight.detach().add_(torch.from_numpy(start))
    optimizer = build_optimizer(recipe.AdadeltaConfig(rho=0.95, epsilon=1e-6), layer)
    for gradient in gradients:
        layer.weight.grad = torch.from_numpy(gradient).unsqueeze(0)
        optimizer.step()
    expected = adadelta(start, gradients, rho=0.95, epsilon=1e-6)
    np.testing.assert_allclose(layer.weight.detach().numpy()[0], expected, rtol=0, atol=1e-12)


def step_of(config: recipe.OptimizerConfig, gradient: float) -> dict[str, float]:
    """The parameters of a layer, all 2 before, after one step with the same gradient everywhere."""
    layer = Layer()
    optimizer = build_optimizer(config, layer)
    for parameter in layer.parameters():
        parameter.grad = torch.full_like(parameter, gradient)
    optimizer.step()
    return {name: parameter.flatten()[0].item() for name, parameter in layer.named_parameters()}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # L2: the gradient becomes 0.5 + 0.2 x 2 = 0.9, and the step is the rate times that.
        (recipe.SgdConfig(rate=0.1, weight_decay=0.2), 2 - 0.1 * 0.9),
        # In Adam's first step the size of the gradient does not matter, so neither does what L2 adds to it.
        (recipe.AdamConfig(rate=0.1, weight_decay=0.2), 2 - 0.1),
        # Decoupled: the weight shrinks by rate x decay, whatever the gradient.
        (recipe.AdamConfig(kind="adamw", rate=0.1, weight_decay=0.2), 2 * (1 - 0.1 * 0.2) - 0.1),
    ],
)
def test_weight_decay_of_matrices_follows_the_optimizer(config: recipe.OptimizerConfig, expected: float) -> None:
    assert step_of(config, 0.5)["linear.weight"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("config", OPTIMIZERS)
def test_biases_norms_and_embeddings_have_no_weight_decay(config: recipe.OptimizerConfig) -> None:
    plain, decayed = (step_of(config.model_copy(update={"weight_decay": decay}), 0.0) for decay in (0.0, 0.5))
    assert {name for name, value in plain.items() if decayed[name] != value} == {"linear.weight"}
