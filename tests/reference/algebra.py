"""The little linear algebra that the equations need."""

import math

import numpy as np

Array = np.ndarray
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
