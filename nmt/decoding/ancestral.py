"""Settings and random numbers of ancestral sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from nmt.errors import UsageError


@dataclass(frozen=True)
class Sampling:
    """Draw translations, y_t ~ p(y_t | y_<t, x)^(1 / temperature), instead of searching for the best.

    The random numbers depend only on the seed, the line number and the number of the sample. A line therefore gets the same
    samples whatever lines are decoded with it, and the first of five samples equals a single sample.

    Raises:
        UsageError: a number is out of range.
    """

    temperature: float = 1.0
    """Below 1 probable tokens become more probable, above 1 less."""
    top_k: int | None = None
    """Draw only from the k most probable tokens; None draws from all."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0.001 <= self.temperature <= 1000:
            raise UsageError(f"temperature must be between 0.001 and 1000, but is {self.temperature}.")
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top_k must be at least 1, but is {self.top_k}.")
        if self.seed < 0:
            raise UsageError(f"seed must be at least 0, but is {self.seed}.")

    def uniform(self, places: Sequence[tuple[int, int]], samples: int, length: int) -> Float[Tensor, "B n L"]:
        """Random numbers in [0, 1) for each text, sample and step.

        Args:
            places: line number, and number of the part of the line, of each text.
            samples: n, samples per text.
            length: L, steps per sample.
        """
        rows = [
            [np.random.default_rng([self.seed, *place, number]).random(length, np.float32) for number in range(samples)]
            for place in places
        ]
        return torch.from_numpy(np.array(rows, dtype=np.float32).reshape(len(places), samples, length))
