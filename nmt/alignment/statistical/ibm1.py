"""IBM model 1: which target word translates which source word, learnt from pairs of sentences alone.

    t(y | x) ~ c(y, x) = sum over pairs, j, i with y_j = y, x_i = x of  t(y_j | x_i) / sum_i' t(y_j | x_i')

where x_0 of every source is the empty word (Brown et al. 1993, 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmt.alignment.statistical.cells import Cells, Floats


@dataclass(frozen=True)
class Lexicon:
    """t: what a source word is translated by.

    Attributes:
        translation: t(y | x) of each entry, or how often it is expected to have happened.
        empty: the same of the empty word, for each target word.
    """

    translation: Floats
    empty: Floats

    def normalised(self, cells: Cells) -> Lexicon:
        """Counts to relative frequencies."""
        of_source = np.bincount(cells.source, self.translation)
        return Lexicon(self.translation / of_source[cells.source], self.empty / self.empty.sum())


def learn_counts(cells: Cells, *, rounds: int = 5) -> Lexicon:
    """Expected counts after some rounds of expectation maximisation from equal probabilities."""
    words = 1 + int(cells.target.max(initial=-1))
    count = Lexicon(np.ones(len(cells.source)), np.ones(words))
    chance = count
    for done in range(rounds):
        if done:
            chance = count.normalised(cells)
        count = _expected(cells, chance)
    return count


def _expected(cells: Cells, chance: Lexicon) -> Lexicon:
    """How often each two words are expected to have been linked, c(y, x)."""
    shares = chance.translation[cells.entry]
    empty = np.zeros_like(chance.empty)
    for group in cells.groups:
        share, unlinked = group.of(shares), chance.empty[group.targets]
        total = share.sum(axis=-1) + unlinked
        share /= total[:, :, None]
        empty += np.bincount(group.targets.reshape(-1), (unlinked / total).reshape(-1), len(empty))
    return Lexicon(cells.sums(shares), empty)
