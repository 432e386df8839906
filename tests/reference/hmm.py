"""Hidden Markov word alignment by trying every alignment: no recursion, no scaling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np


def posteriors(
    emission: np.ndarray, empty: Sequence[float], transition: np.ndarray, p_0: float
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """p(y | x), the chance that y_j is linked to x_i [T S], is from the empty word [T], and of each jump [S + 1, S].

    Row 0 of `transition` is for the first word; a first word from the empty word is given a position by it as well.
    """
    steps, length = emission.shape
    links, unlinked, jumps = np.zeros((steps, length)), np.zeros(steps), np.zeros((length + 1, length))
    total = 0.0
    for states in product(range(length), [True, False], repeat=steps):
        places, wrote = states[::2], states[1::2]
        chance, before = 1.0, 0
        for j in range(steps):
            if wrote[j]:
                chance *= (1 - p_0) * transition[before, places[j]] * emission[j, places[j]]
            elif j == 0:
                chance *= p_0 * transition[0, places[0]] * empty[0]
            else:
                chance *= p_0 * float(places[j] == places[j - 1]) * empty[j]
            before = places[j] + 1
        total += chance
        before = 0
        for j in range(steps):
            if wrote[j]:
                links[j, places[j]] += chance
                jumps[before, places[j]] += chance
            else:
                unlinked[j] += chance
            before = places[j] + 1
    return total, links / total, unlinked / total, jumps / total
