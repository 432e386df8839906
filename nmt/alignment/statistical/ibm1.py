"""IBM model 1: word translation probabilities learned from parallel text.

    t(y | x) ~ c(y, x) = sum over pairs, j, i with y_j = y, x_i = x of  t(y_j | x_i) / sum_i' t(y_j | x_i')

where x_0 of every source is the empty word (Brown et al. 1993, 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmt.alignment.statistical.word_pairs import Cells, Floats


@dataclass(frozen=True)
class TranslationTable:
    """Translation probabilities t, or expected counts.

    Attributes:
        translation: t(y | x), or the expected count, of each entry.
        empty: the same for the empty word and each target word.
    """

    translation: Floats
    empty: Floats

    def normalized(self, cells: Cells) -> TranslationTable:
        """Turn counts into relative frequencies."""
        of_source = np.bincount(cells.source, self.translation)
        return TranslationTable(self.translation / of_source[cells.source], self.empty / self.empty.sum())


def learn_counts(cells: Cells, *, rounds: int = 5) -> TranslationTable:
    """Expected counts after some rounds of expectation maximization, started from uniform probabilities."""
    words = 1 + int(cells.target.max(initial=-1))
    counts = TranslationTable(np.ones(len(cells.source)), np.ones(words))
    for number in range(rounds):
        counts = _expected_counts(cells, counts.normalized(cells) if number else counts)
    return counts


def _expected_counts(cells: Cells, table: TranslationTable) -> TranslationTable:
    """Expected number of links between each two word types, c(y, x)."""
    counts, empty = np.zeros_like(table.translation), np.zeros_like(table.empty)
    for block in cells.blocks():
        shares = table.translation[block.entry]
        for group in block.groups:
            share, unlinked = group.of(shares), table.empty[group.targets]
            total = share.sum(axis=-1) + unlinked
            share /= total[:, :, None]
            empty += np.bincount(group.targets.reshape(-1), (unlinked / total).reshape(-1), len(empty))
        counts += block.sums(shares)
    return TranslationTable(counts, empty)
