"""Links of two directions as one: by hand, and against the pseudo-code of Moses written down loop by loop."""

import random
from math import sqrt

import numpy as np
import pytest

from nmt.alignment.symmetrization import grow_diag_final_and, mean_weights, mutual_weights, symmetrize

Links = frozenset[tuple[int, int]]


class PseudoCode:
    """GROW-DIAG-FINAL-AND as the manual of Moses has it, over a table of booleans."""

    neighboring = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

    def __init__(self, forward: Links, backward: Links, sources: int, targets: int) -> None:
        self.union = forward | backward
        self.cells = [(e, f) for e in range(targets) for f in range(sources)]
        self.table = {(e, f): (f, e) in forward and (f, e) in backward for e, f in self.cells}
        while self.grow_diag():
            pass
        self.final_and(forward)
        self.final_and(backward)

    @property
    def links(self) -> Links:
        return frozenset((f, e) for e, f in self.cells if self.table[e, f])

    def aligned_target(self, e: int) -> bool:
        return any(linked for (row, _), linked in self.table.items() if row == e)

    def aligned_source(self, f: int) -> bool:
        return any(linked for (_, column), linked in self.table.items() if column == f)

    def grow_diag(self) -> bool:
        added = False
        for e, f in self.cells:
            for down, right in self.neighboring if self.table[e, f] else ():
                new = e + down, f + right
                if new not in self.table or self.table[new] or (new[1], new[0]) not in self.union:
                    continue
                if not self.aligned_target(new[0]) or not self.aligned_source(new[1]):
                    self.table[new] = added = True
        return added

    def final_and(self, links: Links) -> None:
        for e, f in self.cells:
            if (f, e) in links and not self.aligned_target(e) and not self.aligned_source(f):
                self.table[e, f] = True


def random_directions(generator: random.Random) -> tuple[Links, Links, int, int]:
    """Mostly near a diagonal, where links touch; many to one and one to many, or any."""
    sources, targets = generator.randint(1, 9), generator.randint(1, 9)
    spread = generator.choice([1, 2, 9])

    def near(place: int, size: int) -> int:
        return min(max(place + generator.randint(-spread, spread), 0), size - 1)

    if generator.random() < 0.3:
        share = generator.random() * 0.5
        cells = [(f, e) for f in range(sources) for e in range(targets)]
        directions = [{cell for cell in cells if generator.random() < share} for _ in range(2)]
    else:
        forward = {(near(e, sources), e) for e in range(targets) if generator.random() < 0.9}
        directions = [forward, {(f, near(f, targets)) for f in range(sources) if generator.random() < 0.9}]
    return frozenset(directions[0]), frozenset(directions[1]), sources, targets


def test_growing_is_the_pseudo_code_whatever_the_links() -> None:
    generator = random.Random(11)
    seen = set()
    for _ in range(1000):
        forward, backward, sources, targets = random_directions(generator)
        result = grow_diag_final_and(forward, backward)
        assert result == PseudoCode(forward, backward, sources, targets).links
        assert forward & backward <= result <= forward | backward
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
    with pytest.raises(ValueError, match=r"backward must be \[S T\] for forward \[T S\] = \(2, 3\), but is \(2, 3\)"):
        mean_weights(forward, forward)


def test_mutual_weights_share_a_source_word_out() -> None:
    weights = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.5, 0.0]]
    expected = [
        [sqrt(weight * weight / total) if total else 0.0 for weight, total in zip(row, (0.75, 2.0, 0.0), strict=True)]
        for row in weights
    ]
    np.testing.assert_allclose(mutual_weights(weights), expected, atol=1e-12)
    assert mutual_weights(np.zeros((0, 3))).shape == (0, 3)
