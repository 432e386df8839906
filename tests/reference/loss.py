"""Cross-entropy of the output layer."""

import math

from tests.reference.algebra import Array, product


def smoothed_cross_entropy(
    readouts: Array, weight: Array, bias: Array, gold: list[int], smoothing: float
) -> tuple[float, float]:
    """sum_i -sum_v q(v) log p(v), q = (1 - eps) onehot(y_i) + eps / V (Szegedy et al. 2016, section 7); the same with eps = 0."""
    smoothed = plain = 0.0
    for readout, y in zip(readouts, gold, strict=True):
        logits = product(weight, readout) + bias
        z = sum(math.exp(logit) for logit in logits)
        for v, logit in enumerate(logits):
            log_p = math.log(math.exp(logit) / z)
            smoothed -= ((1 - smoothing) * (v == y) + smoothing / len(logits)) * log_p
            plain -= (v == y) * log_p
    return smoothed, plain
