"""Hidden Markov word alignment by enumerating all alignments: no recursion, no scaling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.reference.algebra import Array

Floats = NDArray[np.floating[Any]]


def posteriors(
    emission: Floats, empty: Sequence[float], transition: Floats, p_0: float
) -> tuple[float, Array, Array, Array]:
    """p(y | x), and the posterior probabilities of each link [T S], of NULL for each y_j [T], and of each jump [S + 1, S].

    Row 0 of `transition` is the distribution of the first position, also if the first word comes from NULL.
    """
    steps, length = emission.shape
    links, unlinked, jumps = np.zeros((steps, length)), np.zeros(steps), np.zeros((length + 1, length))
    total = 0.0
    for states in product(range(length), [True, False], repeat=steps):
        positions, linked = states[::2], states[1::2]
        probability, previous = 1.0, 0
        for j in range(steps):
            if linked[j]:
                probability *= (1 - p_0) * transition[previous, positions[j]] * emission[j, positions[j]]
            elif j == 0:
                probability *= p_0 * transition[0, positions[0]] * empty[0]
            else:
                probability *= p_0 * float(positions[j] == positions[j - 1]) * empty[j]
            previous = positions[j] + 1
        total += probability
        previous = 0
        for j in range(steps):
            if linked[j]:
                links[j, positions[j]] += probability
                jumps[previous, positions[j]] += probability
            else:
                unlinked[j] += probability
            previous = positions[j] + 1
    return total, links / total, unlinked / total, jumps / total
