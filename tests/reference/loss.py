"""Probabilities and cross-entropy of the output layer."""

import math

import numpy as np

from tests.reference.algebra import Array, product


def log_softmax(logits: Array) -> Array:
    """log p(v) = log(exp(l_v) / sum_u exp(l_u))."""
    z = sum(math.exp(logit) for logit in logits)
    return np.array([math.log(math.exp(logit) / z) for logit in logits])


def smoothed_cross_entropy(
    readouts: Array, weight: Array, bias: Array, gold: list[int], smoothing: float
) -> tuple[float, float]:
    """sum_i -sum_v q(v) log p(v), q = (1 - eps) onehot(y_i) + eps / V (Szegedy et al. 2016, section 7); the same with eps = 0."""
    smoothed = plain = 0.0
    for readout, y in zip(readouts, gold, strict=True):
        for v, log_p in enumerate(log_softmax(product(weight, readout) + bias)):
            smoothed -= ((1 - smoothing) * (v == y) + smoothing / len(weight)) * log_p
            plain -= (v == y) * log_p
    return smoothed, plain
