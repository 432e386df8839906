"""Symmetrization: join the alignments of two models of opposite directions (Och and Ney 2003, 3.3; Koehn et al. 2003).

Either their links are joined, or their weights before links are extracted. `mutual_weights` symmetrizes a single model.

The links of one direction are many to one, those of the other one to many. The intersection is precise, the union has high
recall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nmt.alignment.links import Links
    from nmt.alignment.weights import Matrix

Heuristic = Literal["intersection", "union", "grow-diag-final-and"]
Mean = Literal["mean", "geometric"]

_NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrize(forward: Links, backward: Links, heuristic: Heuristic) -> Links:
    """Join two sets of links.

    Args:
        forward: (source, target) links of the source-to-target model.
        backward: (source, target) links of the target-to-source model, already flipped.
        heuristic: `intersection`, `union`, or `grow-diag-final-and`, which lies between the two.

    Returns:
        (source, target) links.
    """
    if heuristic == "intersection":
        return forward & backward
    return forward | backward if heuristic == "union" else grow_diag_final_and(forward, backward)


def mean_weights(forward: ArrayLike, backward: ArrayLike, kind: Mean = "mean") -> Matrix:
    """The mean of the weights of two directions.

        mean        w_ij = (a_ij + b_ji) / 2
        geometric   w_ij = sqrt(a_ij b_ji)

    with a_ij the weight of source word j for target word i, and b_ji the weight of target word i for source word j by a model
    of the other direction. The geometric mean is high where both models agree (Liang et al. 2006 use its square); the
    arithmetic mean keeps a link of which only one model is sure.

    Args:
        forward: [T S].
        backward: [S T].
        kind: `mean` (arithmetic) or `geometric`.

    Returns:
        [T S].
    """
    towards, back = np.asarray(forward, dtype=np.float64), np.asarray(backward, dtype=np.float64).T
    joined: Matrix = (towards + back) / 2 if kind == "mean" else np.sqrt(towards * back)
    return joined


def mutual_weights(weights: ArrayLike) -> Matrix:
    """The geometric mean of one model's weights normalized over source words and over target words.

        m_ij = sqrt(a_ij a_ij / sum_k a_kj)

    with a_ij the weight of source word j for target word i. A source word that gets some weight from every target word, such
    as a comma or an article, so scores lower than one that gets its weight from one target word. If n target words each put
    all their weight on the same source word, each scores sqrt(1 / n).

    Args:
        weights: [T S], not negative.

    Returns:
        [T S].
    """
    matrix = np.asarray(weights, dtype=np.float64)
    totals = matrix.sum(axis=0, keepdims=True)
    mutual: Matrix = matrix / np.sqrt(np.where(totals > 0, totals, 1.0))
    return mutual


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """The heuristic of Koehn et al. (2003, section 4.5; 2005, IWSLT), in the order of Moses, on which its result depends.

        A = forward & backward
        repeat until nothing is added:                                              (grow-diag)
            for each target word e, for each source word f with (e, f) in A:
                for each (e', f') of the 8 neighbors of (e, f):
                    if (e' has no link in A or f' has none) and (e', f') in forward | backward:
                        add (e', f') to A
        for links in (forward, backward):                                           (final-and)
            for each (e', f') of links, by e' and then f':
                if e' has no link in A and f' has none:
                    add (e', f') to A

    A grows while the loops run, and they see what it has gained.
    """
    union = {(target, source) for source, target in forward | backward}
    links = {(target, source) for source, target in forward & backward}
    targets, sources = {target for target, _ in links}, {source for _, source in links}

    def add(target: int, source: int) -> None:
        links.add((target, source))
        targets.add(target)
        sources.add(source)

    grown = True
    while grown:
        grown = False
        for target, source in sorted(union):
            if (target, source) not in links:
                continue
            for down, right in _NEIGHBORS:
                neighbor = target + down, source + right
                if neighbor in union and not (neighbor[0] in targets and neighbor[1] in sources):
                    add(*neighbor)
                    grown = True
    for direction in (forward, backward):
        for target, source in sorted((target, source) for source, target in direction):
            if target not in targets and source not in sources:
                add(target, source)
    return frozenset((source, target) for target, source in links)
