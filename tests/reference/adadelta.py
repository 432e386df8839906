"""Adadelta (Zeiler 2012, algorithm 1)."""

import math

from tests.reference.algebra import Array


def adadelta(x: Array, gradients: list[Array], rho: float, epsilon: float) -> Array:
    """x after a step with each gradient: dx = -RMS(dx) / RMS(g) g, where RMS(v) = sqrt(E[v^2] + epsilon)."""
    x = x.copy()
    squares, squared_steps = [0.0] * len(x), [0.0] * len(x)
    for gradient in gradients:
        for k in range(len(x)):
            squares[k] = rho * squares[k] + (1 - rho) * gradient[k] ** 2
            step = -math.sqrt(squared_steps[k] + epsilon) / math.sqrt(squares[k] + epsilon) * gradient[k]
            squared_steps[k] = rho * squared_steps[k] + (1 - rho) * step**2
            x[k] += step
    return x
