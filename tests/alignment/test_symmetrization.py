"""Links of two directions as one: by hand, and against the pseudo-code of Moses written down loop by loop."""

import random
from itertools import product
from math import sqrt

import numpy as np
import pytest

from nmt.alignment.symmetrization import grow_diag_final_and, mean_weights, mutual_weights, symmetrize

Links = frozenset[tuple[int, int]]
NEIGHBORING = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def pseudo_code(forward: Links, backward: Links, words: int) -> Links:
    """GROW-DIAG-FINAL-AND as the manual of Moses has it, over all pairs (f, e) of so many words on each side."""
    links = set(forward & backward)

    def free_words(cell: tuple[int, int]) -> list[bool]:
        """Whether each of its two words has no link."""
        return [all(link[side] != cell[side] for link in links) for side in (0, 1)]

    added = True
    while added:
        added = False
        for e, f in product(range(words), repeat=2):
            for down, right in NEIGHBORING if (f, e) in links else ():
                cell = f + right, e + down
                if cell not in links and cell in forward | backward and any(free_words(cell)):
                    links.add(cell)
                    added = True
    for direction in (forward, backward):
        for e, f in product(range(words), repeat=2):
            if (f, e) in direction and all(free_words((f, e))):
                links.add((f, e))
    return frozenset(links)


def random_directions(generator: random.Random) -> tuple[Links, Links]:
    """Up to nine words, linked many to one and one to many, mostly near a diagonal, where links touch."""
    words, spread = generator.randint(1, 9), generator.choice([1, 2, 9])

    def near(place: int) -> int:
        return min(max(place + generator.randint(-spread, spread), 0), words - 1)

    forward, backward = ([(near(i), i) for i in range(words) if generator.random() < 0.9] for _ in range(2))
    return frozenset(forward), frozenset((f, e) for e, f in backward)


def test_growing_is_the_pseudo_code_whatever_the_links() -> None:
    generator = random.Random(11)
    seen = set()
    for _ in range(1000):
        forward, backward = random_directions(generator)
        result = grow_diag_final_and(forward, backward)
        assert result == pseudo_code(forward, backward, 9)
        seen.add((result == forward & backward, result == forward | backward))
    assert len(seen) == 4  # both ends were reached, and what lies between


def test_the_heuristics_by_name() -> None:
    forward, backward = frozenset({(0, 0), (1, 0)}), frozenset({(0, 0), (3, 3)})
    assert symmetrize(forward, backward, "intersection") == {(0, 0)}
    for heuristic in ("union", "grow-diag-final-and"):
        assert symmetrize(forward, backward, heuristic) == {(0, 0), (1, 0), (3, 3)}
        assert symmetrize(frozenset(), frozenset(), heuristic) == set()


def test_the_mean_of_two_directions_by_hand() -> None:
    forward = [[0.5, 0.25, 0.0], [0.0, 0.0, 1.0]]  # two target words, three source words
    backward = [[1.0, 0.0], [0.25, 0.5], [0.0, 0.5]]
    assert mean_weights(forward, backward).tolist() == [[0.75, 0.25, 0.0], [0.0, 0.25, 0.75]]
    products = [
        [f * b for f, b in zip(row, column, strict=True)]
        for row, column in zip(forward, zip(*backward, strict=True), strict=True)
    ]
    assert (mean_weights(forward, backward, "geometric") ** 2).tolist() == [pytest.approx(row) for row in products]


def test_mutual_weights_share_a_source_word_out() -> None:
    weights = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.5, 0.0]]
    expected = [
        [sqrt(weight * weight / total) if total else 0.0 for weight, total in zip(row, (0.75, 2.0, 0.0), strict=True)]
        for row in weights
    ]
    np.testing.assert_allclose(mutual_weights(weights), expected, atol=1e-12)
    assert mutual_weights(np.zeros((0, 3))).shape == (0, 3)
