"""Cross-entropy of the attention against word links."""

import math

from tests.reference.algebra import Array


def guided_cross_entropy(alignment: Array, links: Array, floor: float) -> tuple[float, int]:
    """sum_t -sum_j A_tj log alpha_tj of one sentence, A_t uniform over the links of t (Chen et al. 2016); the number of linked t."""
    total, linked_tokens = 0.0, 0
    for weights, linked in zip(alignment.tolist(), links.tolist(), strict=True):
        positions = [j for j, is_linked in enumerate(linked) if is_linked]
        linked_tokens += bool(positions)
        for j in positions:
            total -= math.log(max(weights[j], floor)) / len(positions)
    return total, linked_tokens
