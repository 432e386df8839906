"""Whether links are as often right as their confidence says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nmt.alignment.links import ConfidentLinks, GoldLinks

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Where one class of confidences ends and the next begins. The last class includes 1."""


def reliability(links: Sequence[ConfidentLinks], gold: Sequence[GoldLinks]) -> str:
    """A table of how many links of each confidence are possible links of the gold standard (Niculescu-Mizil and Caruana 2005).

    Below it stands the expected calibration error (Naeini et al. 2015):
    sum_c n_c / N |mean confidence of class c - share of its links that are correct|.
    """
    scored = [
        (confidence, link in right.possible)
        for pair, right in zip(links, gold, strict=True)
        for link, confidence in pair.items()
    ]
    confidences, correct = np.array(scored, dtype=np.float64).reshape(-1, 2).T
    class_of = np.searchsorted(EDGES[1:-1], confidences, side="right")
    rows, error = ["confidence     links    mean  correct"], 0.0
    for number, (low, high) in enumerate(pairwise(EDGES)):
        inside = class_of == number
        if not inside.any():
            continue
        count, mean, share = int(inside.sum()), confidences[inside].mean(), correct[inside].mean()
        rows.append(f"{low:.2f}-{high:.2f}  {count:>9,}  {100 * mean:>5.1f}%  {100 * share:>6.1f}%")
        error += count / len(scored) * abs(mean - share)
    return "\n".join([*rows, f"expected calibration error {100 * error:.1f}%"])
