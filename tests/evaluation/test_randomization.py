"""The test of two systems against its definition, and on systems that are equally good."""

from itertools import product

import numpy as np
import pytest

from nmt.evaluation.randomization import randomization_test


def ratio(sums: np.ndarray) -> float:
    return float(100 * sums[0] / sums[1])


def test_the_p_value_is_the_share_of_all_swaps_that_differ_as_much() -> None:
    first, second = (np.array([[hits, 9] for hits in row]) for row in ((9, 7, 8, 5, 6, 9), (8, 7, 5, 6, 4, 7)))
    least = abs(ratio(first.sum(0)) - ratio(second.sum(0)))
    differences = []
    for swaps in product([False, True], repeat=len(first)):
        choice = np.array(swaps)[:, None]
        sides = [np.where(choice, *pair).sum(0) for pair in ((first, second), (second, first))]
        differences.append(abs(ratio(sides[0]) - ratio(sides[1])))
    exact = np.mean(np.array(differences) > least - 1e-9)
    generator = np.random.default_rng(1)
    assert randomization_test(first, second, ratio, shuffles=4000, generator=generator) == pytest.approx(
        exact, abs=0.03
    )


def test_of_equally_good_systems_one_in_twenty_differs() -> None:
    generator = np.random.default_rng(2)
    p_values = []
    for _ in range(300):
        first, second = (np.stack([generator.integers(10, size=50), np.full(50, 10)], axis=1) for _ in range(2))
        p_values.append(randomization_test(first, second, ratio, shuffles=100, generator=generator))
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.08
