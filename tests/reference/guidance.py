"""Cross-entropy of the attention against given links."""

import math

from tests.reference.algebra import Array


def guided_cross_entropy(alignment: Array, links: Array, floor: float) -> tuple[float, int]:
    """sum_t -sum_j A_tj log alpha_tj of one sentence, A_t uniform over what t is linked to (Chen et al. 2016), and its linked t."""
    total, guided = 0.0, 0
    for weights, linked in zip(alignment.tolist(), links.tolist(), strict=True):
        places = [j for j, is_linked in enumerate(linked) if is_linked]
        guided += bool(places)
        for j in places:
            total -= math.log(max(weights[j], floor)) / len(places)
    return total, guided
