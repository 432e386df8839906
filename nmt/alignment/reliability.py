"""Whether links are as often right as their confidence says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nmt.alignment.links import ConfidentLinks, GoldLinks

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Where one class of confidences ends and the next begins. The last class includes 1."""


@dataclass(frozen=True)
class Confidence:
    """The links whose confidence lies between two edges.

    Attributes:
        low: the lower edge.
        high: the upper edge.
        links: number of links.
        mean: their mean confidence.
        correct: the part of them that is a possible link of the gold standard.
    """

    low: float
    high: float
    links: int
    mean: float
    correct: float


@dataclass(frozen=True)
class Reliability:
    """The classes of confidences that have links, lowest first (a reliability diagram in numbers: Niculescu-Mizil and Caruana 2005)."""

    classes: tuple[Confidence, ...]

    @property
    def calibration_error(self) -> float:
        """The expected calibration error (Naeini et al. 2015): sum_c n_c / N |mean confidence of c - part of c that is correct|."""
        links = sum(part.links for part in self.classes)
        return sum(part.links * abs(part.mean - part.correct) for part in self.classes) / max(links, 1)

    def __str__(self) -> str:
        rows = [
            f"{part.low:.2f}-{part.high:.2f}  {part.links:>9,}  {100 * part.mean:>5.1f}%  {100 * part.correct:>6.1f}%"
            for part in self.classes
        ]
        head = "confidence     links    mean  correct"
        return "\n".join([head, *rows, f"expected calibration error {100 * self.calibration_error:.1f}%"])


def reliability(links: Sequence[ConfidentLinks], gold: Sequence[GoldLinks]) -> Reliability:
    """Compare the confidences of links with how many of them are possible links of the gold standard, over a whole corpus."""
    scored = [
        (confidence, link in right.possible)
        for pair, right in zip(links, gold, strict=True)
        for link, confidence in pair.items()
    ]
    confidences, correct = np.array(scored, dtype=np.float64).reshape(-1, 2).T
    place = np.searchsorted(EDGES[1:-1], confidences, side="right")
    classes = (
        Confidence(low, high, int(own.sum()), float(confidences[own].mean()), float(correct[own].mean()))
        for number, (low, high) in enumerate(pairwise(EDGES))
        if (own := place == number).any()
    )
    return Reliability(tuple(classes))
