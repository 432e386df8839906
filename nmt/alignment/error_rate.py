"""Alignment error rate (AER) with a bootstrap confidence interval."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.alignment.links import GoldLinks
from nmt.errors import DataError
from nmt.runtime.wording import counted

_SEED = 12345
"""Seed of the bootstrap, the same as sacreBLEU's."""


@dataclass(frozen=True)
class AlignmentErrorRate:
    """AER, precision and recall of a corpus as fractions, with the counts behind them.

    Attributes:
        aer: 1 - (|A&S| + |A&P|) / (|A| + |S|); lower is better.
        precision: |A&P| / |A|.
        recall: |A&S| / |S|.
        links: |A|, predicted links.
        sure: |S|, sure links of the gold standard.
        sentences: number of sentence pairs.
        interval: ends of the central 95 % of the AER of bootstrap resamples; None without bootstrap.
    """

    aer: float
    precision: float
    recall: float
    links: int
    sure: int
    sentences: int
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        ends = "" if self.interval is None else " [{:.1f}, {:.1f}]".format(*(100 * end for end in self.interval))
        figures = (
            f"AER {100 * self.aer:.1f}%{ends}  precision {100 * self.precision:.1f}%  recall {100 * self.recall:.1f}%"
        )
        return f"{figures}  ({counted(self.links, 'link')}, {self.sure:,} sure, {counted(self.sentences, 'sentence pair')})"


def error_rate(
    links: Sequence[AbstractSet[tuple[int, int]]], gold: Sequence[GoldLinks], *, bootstrap: int = 0
) -> AlignmentErrorRate:
    """Compare predicted links with a gold standard over a whole corpus (Och and Ney 2003, section 5).

        AER(S, P; A) = 1 - (|A & S| + |A & P|) / (|A| + |S|),  P includes S

    with the counts summed over all sentences before dividing. With nothing to count, precision and recall are 1 and
    AER is 0.

    Args:
        links: A, one set of (source, target) links per sentence pair.
        gold: S and P, likewise.
        bootstrap: number of bootstrap resamples for the interval (Koehn 2004); below 2 there is no interval. The same data
            give the same interval.

    Raises:
        DataError: different numbers of sentence pairs, or none.
    """
    if len(links) != len(gold):
        raise DataError(
            f"There are alignments of {counted(len(links), 'sentence pair')}, but gold links of {len(gold)}."
        )
    if not links:
        raise DataError("There are no alignments to compare.")
    counts = np.array(
        [
            (len(predicted), len(pair.sure), len(predicted & pair.sure), len(predicted & pair.possible))
            for predicted, pair in zip(links, gold, strict=True)
        ],
        dtype=np.int64,
    )
    interval = None
    if bootstrap > 1:
        draw = np.random.default_rng(_SEED)
        resamples = (draw.integers(len(counts), size=len(counts)) for _ in range(bootstrap))
        low, high = np.quantile([_error_rate(counts[rows].sum(axis=0)) for rows in resamples], (0.025, 0.975))
        interval = float(low), float(high)
    found, sure, hits_sure, hits_possible = map(int, counts.sum(axis=0))
    aer, precision, recall = _error_rate(counts.sum(axis=0)), _ratio(hits_possible, found), _ratio(hits_sure, sure)
    return AlignmentErrorRate(aer, precision, recall, found, sure, len(links), interval)


def _error_rate(counts: NDArray[np.int64]) -> float:
    """The error rate of |A|, |S|, |A & S| and |A & P|."""
    found, sure, hits_sure, hits_possible = map(int, counts)
    return 1 - _ratio(hits_sure + hits_possible, found + sure)


def _ratio(hits: int, count: int) -> float:
    return hits / count if count else 1.0
