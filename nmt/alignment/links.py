"""Hard links: pairs of 0-based (source, target) word positions, extracted from weights or made by annotators."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from nmt.errors import DataError
from nmt.runtime.wording import counted

Links = frozenset[tuple[int, int]]
ConfidentLinks = Mapping[tuple[int, int], float]
"""Links with the probability that each is right."""


def argmax_links(weights: ArrayLike, threshold: float | None = None) -> Links:
    """Link each target word to the source word of the largest weight: {(argmax_j w_ij, i)}.

    The leftmost of equal weights wins. A row of zeros gets no link, nor does one whose largest weight is below the
    threshold.
    """
    matrix = np.asarray(weights, dtype=np.float64)
    if matrix.size == 0:
        return frozenset()
    best = matrix.argmax(axis=1)
    return frozenset(
        (int(source), target)
        for target, source in enumerate(best)
        if (weight := matrix[target, source]) > 0 and (threshold is None or weight >= threshold)
    )


def threshold_links(weights: ArrayLike, threshold: float) -> Links:
    """Link all words whose weight reaches the threshold: {(j, i) : w_ij >= threshold}. A word may get many links or none."""
    matrix = np.asarray(weights, dtype=np.float64)
    return frozenset((int(source), int(target)) for target, source in np.argwhere(matrix >= threshold))


@dataclass(frozen=True)
class GoldLinks:
    """The gold links of one sentence pair (Och and Ney 2003, section 5).

    Attributes:
        sure: unambiguous links.
        possible: links that may be there; always includes the sure ones.
    """

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        object.__setattr__(self, "sure", frozenset(self.sure))
        object.__setattr__(self, "possible", frozenset(self.possible) | self.sure)

    def flipped(self) -> Self:
        """The same links with source and target exchanged."""
        return type(self)(flip(self.sure), flip(self.possible))


def flip(links: AbstractSet[tuple[int, int]]) -> Links:
    """Exchange source and target of links."""
    return frozenset((target, source) for source, target in links)


def check_within(links: AbstractSet[tuple[int, int]], source_words: int, target_words: int, where: str) -> None:
    """Raise DataError if a link lies beyond the sentences; its message begins with `where`."""
    for source, target in sorted(links):
        if source >= source_words or target >= target_words:
            raise DataError(
                f"{where}: the link {source}-{target} lies beyond the sentences, which have {source_words} source and "
                f"{counted(target_words, 'target word')}, counted from 0. Take 1 from each number of a file "
                "that counts from 1; --gold-order target-source reads gold links of the other order."
            )
