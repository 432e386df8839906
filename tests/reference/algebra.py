"""Linear algebra for the equations."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = dict[str, Array]


def under(weights: Weights, prefix: str) -> Weights:
    """The weights whose names start with `prefix.`, without it."""
    return {name.removeprefix(f"{prefix}."): array for name, array in weights.items() if name.startswith(f"{prefix}.")}


def inner(left: Array, right: Array) -> float:
    """left^T right."""
    total = 0.0
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        total += a * b
    return total


def product(matrix: Array, vector: Array) -> Array:
    """A matrix times a column vector."""
    result = np.zeros(len(matrix))
    for k in range(len(matrix)):
        result[k] = inner(matrix[k], vector)
    return result


def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def layer_norm(a: Array, gain: Array, bias: Array, epsilon: float = 1e-5) -> Array:
    """g (a - mu) / sigma + b over the units of a layer (Ba et al. 2016, eq. 3 and 4); epsilon under the root as in PyTorch."""
    mu = sum(a.tolist()) / len(a)
    variance = sum((unit - mu) ** 2 for unit in a.tolist()) / len(a)
    return np.array([gain[k] * (a[k] - mu) / math.sqrt(variance + epsilon) + bias[k] for k in range(len(a))])
