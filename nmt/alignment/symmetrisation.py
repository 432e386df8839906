"""Two sets of links, read off models of opposite directions, as one (Och and Ney 2003, section 3.3; Koehn et al. 2003).

Or their weights as one, before links are read off. The weights of one model can be asked for both directions too.

A model links each word that it writes to what it read, so its links are many to one; those of the opposite direction are
one to many. Where both agree a link is precise, where either has one it is perhaps missing otherwise.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Literal, assert_never

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from numpy.typing import ArrayLike

    from nmt.alignment.links import Links
    from nmt.alignment.weights import Matrix

Heuristic = Literal["intersection", "union", "grow-diag-final-and"]
Mean = Literal["mean", "geometric"]

_Point = tuple[int, int]
"""A link with its target position first, as the pseudo-code writes and orders them."""

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrise(forward: AbstractSet[_Point], backward: AbstractSet[_Point], heuristic: Heuristic) -> Links:
    """One set of links out of two.

    Args:
        forward: (source, target) links of the model that writes the target.
        backward: (source, target) links of the model that writes the source, so already flipped.
        heuristic: `intersection`, `union`, or `grow-diag-final-and`, which starts at the first and goes some way to the
            second.

    Returns:
        (source, target) links; they include the intersection and lie in the union.
    """
    match heuristic:
        case "intersection":
            return frozenset(forward & backward)
        case "union":
            return frozenset(forward | backward)
        case "grow-diag-final-and":
            return grow_diag_final_and(forward, backward)
        case _:
            assert_never(heuristic)


def mean_weights(forward: ArrayLike, backward: ArrayLike, kind: Mean = "mean") -> Matrix:
    """The weights of two directions as one.

        mean        w_ij = (a_ij + b_ji) / 2
        geometric   w_ij = sqrt(a_ij b_ji)

    with a_ij how much of target word i was read from source word j, and b_ji how much of source word j was read from
    target word i by a model of the other direction. The geometric mean, whose square Liang et al. (2006) decode with, is what
    both agree on; the mean keeps a link of which one model is sure and the other has no idea.

    Args:
        forward: [T S].
        backward: [S T].
        kind: which mean.

    Returns:
        [T S].

    Raises:
        ValueError: shapes that are not each other's transpose.
    """
    one, other = np.asarray(forward, dtype=np.float64), np.asarray(backward, dtype=np.float64).T
    if one.shape != other.shape:
        raise ValueError(f"backward must be [S T] for forward [T S] = {one.shape}, but is {other.shape[::-1]}.")
    joined: Matrix = (one + other) / 2 if kind == "mean" else np.sqrt(one * other)
    return joined


def mutual_weights(weights: ArrayLike) -> Matrix:
    """How much the words of a pair choose each other, by one model.

        m_ij = sqrt(a_ij a_ij / sum_k a_kj)

    with a_ij how much of target word i was read from source word j: the geometric mean of what it gives to that source word,
    and of its share in all that the source word is given. A comma or an article that every target word looks at in passing so
    loses to a word that is read once. Each of n target words that are read from one source word alone has sqrt(1 / n).

    Args:
        weights: [T S], not negative.

    Returns:
        [T S].
    """
    matrix = np.asarray(weights, dtype=np.float64)
    totals = matrix.sum(axis=0, keepdims=True)
    mutual: Matrix = matrix / np.sqrt(np.where(totals > 0, totals, 1.0))
    return mutual


def grow_diag_final_and(forward: AbstractSet[_Point], backward: AbstractSet[_Point]) -> Links:
    """The heuristic of Koehn et al. (2003, section 4.5; 2005, IWSLT), in the order of Moses, on which its result depends.

        A = forward & backward
        repeat until nothing is added:                                              (grow-diag)
            for each target word e, for each source word f with (e, f) in A:
                for each (e', f') of the 8 neighbours of (e, f):
                    if (e' has no link in A or f' has none) and (e', f') in forward | backward:
                        add (e', f') to A
        for links in (forward, backward):                                           (final-and)
            for each (e', f') of links, by e' and then f':
                if e' has no link in A and f' has none:
                    add (e', f') to A

    A neighbour that was refused once is refused for ever, since words only gain links. So each link is looked at once
    here, in the round and at the place in it where the loops first meet it.
    """
    union = {(target, source) for source, target in forward | backward}
    grown = _Grown((target, source) for source, target in forward & backward)
    _grow_diag(grown, union)
    for links in (forward, backward):
        for point in sorted((target, source) for source, target in links):
            if point[0] not in grown.targets and point[1] not in grown.sources:
                grown.add(point)
    return frozenset((source, target) for target, source in grown.points)


class _Grown:
    """Links so far, and the words that have one."""

    def __init__(self, points: Iterable[_Point]) -> None:
        self.points = set(points)
        self.targets = {target for target, _ in self.points}
        self.sources = {source for _, source in self.points}

    def add(self, point: _Point) -> None:
        self.points.add(point)
        self.targets.add(point[0])
        self.sources.add(point[1])

    def has_both(self, point: _Point) -> bool:
        """Whether both words have a link, if not to each other."""
        return point[0] in self.targets and point[1] in self.sources


def _grow_diag(grown: _Grown, union: AbstractSet[_Point]) -> None:
    """Add what touches a link and is some word's first, round by round."""
    this_round = list(grown.points)
    while this_round:
        next_round: list[_Point] = []
        heapify(this_round)
        while this_round:
            point = heappop(this_round)
            for row, column in _NEIGHBOURS:
                beside = point[0] + row, point[1] + column
                if beside in union and not grown.has_both(beside):
                    grown.add(beside)
                    # The loops come to what lies ahead of them in the same round, to what lies behind in the next.
                    heappush(this_round if beside > point else next_round, beside)
        this_round = next_round
