"""Word links by hidden Markov models (Vogel et al. 1996), two of them that are taught to agree (Liang et al. 2006).

A target sentence y_1 ... y_T is read off the source x_1 ... x_S from positions a_1 ... a_T, each near the one before:

    p(y, a | x) = prod_j  p(a_j | a_j-1, S) t(y_j | x_a_j)          p(i | i', S) = (1 - p_0) J(i - i') / sum_k J(k - i')

A word may instead come from the empty word, with probability p_0; the position is then kept for the next (Och and Ney 2003,
2.1.1). The first word jumps from position 0. The lexicon t and the jumps J are re-estimated by expectation maximisation,
started from IBM model 1. The lexicon has a sparse Dirichlet prior, so that a rare word is not taken for the translation of
everything it was seen with (Riley and Gildea 2012):

    t(y | x) = exp psi(c(x, y) + alpha) / exp psi(sum_y' c(x, y') + alpha Y)

Two models, one in each direction, are trained together: the expected count of a link is the product of its posteriors in
both. A pair of words is linked where the geometric mean of the two posteriors is at least `THRESHOLD`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from nmt.alignment.statistical.cells import Cells, Floats
from nmt.alignment.statistical.ibm1 import Lexicon, learn_counts

EMPTY = 0.2
"""p_0."""
ALPHA = 0.01
"""Of the lexicon's prior; below 1, few translations are preferred to many."""
SMOOTHING = 0.1
"""Share of every row of jumps that is even over the source."""
FLOOR = 1e-9
"""The least chance of a translation: no sentence is impossible."""
THRESHOLD = 0.5
ROUNDS = 5
Weights = npt.NDArray[np.float32]


@dataclass(frozen=True)
class HMM:
    """One direction: how target words are read off source words.

    Attributes:
        lexicon: t.
        jumps: J, [2 L + 1] with L the longest source; J(0) is in the middle.
    """

    lexicon: Lexicon
    jumps: Floats

    def transitions(self, length: int) -> Weights:
        """p(i | i', S) / (1 - p_0) for sources of S words, [S + 1, S]; row 0 is for the first target word."""
        chance = np.maximum(self.jumps[_jump(length, len(self.jumps))], FLOOR)
        chance /= chance.sum(axis=1, keepdims=True)
        return ((1 - SMOOTHING) * chance + SMOOTHING / length).astype(np.float32)


@dataclass(frozen=True)
class Posteriors:
    """What a model makes of the text that it knows: its expected counts.

    Attributes:
        links: p(a_j = i | y, x) of each cell.
        empty: how often each target word came from the empty word.
        jumps: how often each jump was made.
    """

    links: Weights
    empty: Floats
    jumps: Floats

    @classmethod
    def of(cls, model: HMM, cells: Cells) -> Posteriors:
        """Expectations under the model, by the forward-backward algorithm."""
        links = np.maximum(model.lexicon.translation, FLOOR).astype(np.float32)[cells.entry]
        empty, jumps = np.zeros_like(model.lexicon.empty), np.zeros_like(model.jumps)
        chance = np.maximum(model.lexicon.empty, FLOOR).astype(np.float32)
        for group in cells.groups:
            length = group.sources.shape[1]
            emission = group.of(links)
            linked, unlinked, jumped = forward_backward(emission, chance[group.targets], model.transitions(length))
            emission[:] = linked
            empty += np.bincount(group.targets.reshape(-1), unlinked.reshape(-1), len(empty))
            np.add.at(jumps, _jump(length, len(jumps)), jumped)
        return cls(links, empty, jumps)


def _jump(length: int, jumps: int) -> npt.NDArray[np.int64]:
    """Where in J the jump from position i' to i is, [S + 1, S]; row 0 is the start, before the first word."""
    place = np.arange(length) - np.arange(-1, length)[:, None] + jumps // 2
    # A jump further than any that was learnt is as rare as the furthest.
    return np.asarray(np.clip(place, 0, jumps - 1))


def forward_backward(emission: Weights, empty: Weights, transition: Weights) -> tuple[Weights, Weights, Weights]:
    """Posterior probabilities of pairs of the same lengths.

    Args:
        emission: t(y_j | x_i), [B T S].
        empty: t(y_j | empty word), [B T].
        transition: p(i | i', S) / (1 - p_0), [S + 1, S]; row 0 is for the first target word.

    Returns:
        p(a_j = i | y, x), [B T S]; that y_j came from the empty word, [B T]; how often each transition is expected, [S + 1, S].
    """
    (first, moved), steps = np.split(transition, [1]), range(emission.shape[1])
    linked, unlinked = (1 - EMPTY) * emission, EMPTY * empty[:, :, None]
    # alpha is kept apart for positions that wrote the word (reached) and those that were kept through the empty word.
    reached, kept = np.empty_like(linked), np.empty_like(linked)
    scale = np.empty_like(empty)
    for j in steps:
        before = None if j == 0 else reached[:, j - 1] + kept[:, j - 1]
        np.multiply(first if before is None else before @ moved, linked[:, j], out=reached[:, j])
        np.multiply(first if before is None else before, unlinked[:, j], out=kept[:, j])
        scale[:, j] = reached[:, j].sum(axis=1) + kept[:, j].sum(axis=1)
        reached[:, j] /= scale[:, j, None]
        kept[:, j] /= scale[:, j, None]
    beta = np.ones_like(linked[:, 0])
    jumped = np.zeros_like(transition)
    for j in reversed(steps):
        onward = linked[:, j] * beta / scale[:, j, None]
        before = None if j == 0 else reached[:, j - 1] + kept[:, j - 1]
        if before is None:
            jumped[0] += first[0] * onward.sum(axis=0)
        else:
            jumped[1:] += moved * (before.T @ onward)
        reached[:, j] *= beta
        kept[:, j] *= beta
        beta = onward @ moved.T + unlinked[:, j] * beta / scale[:, j, None]
    return reached, kept.sum(axis=-1), jumped


# --- two that agree ---------------------------------------------------------------------------------------------


def learn(cells: Cells, rounds: Iterable[object] = range(ROUNDS)) -> tuple[HMM, HMM]:
    """Models that read targets off sources, and sources off targets, taught to agree in so many rounds."""
    sides = cells, cells.flipped()
    models = [_start(side) for side in sides]
    for _ in rounds:
        forward, backward = (Posteriors.of(model, side) for model, side in zip(models, sides, strict=True))
        agreed = cells.sums(forward.links * backward.links)
        models = [
            HMM(_sparse(Lexicon(agreed, found.empty), side), found.jumps)
            for found, side in zip((forward, backward), sides, strict=True)
        ]
    return models[0], models[1]


def agreement(forward: HMM, backward: HMM, cells: Cells) -> Weights:
    """The geometric mean of both models' posteriors of each cell."""
    product = Posteriors.of(forward, cells).links * Posteriors.of(backward, cells.flipped()).links
    return np.asarray(np.sqrt(product))


def _start(cells: Cells) -> HMM:
    """A model with the lexicon of IBM model 1, for which all jumps are alike."""
    longest = max((group.sources.shape[1] for group in cells.groups), default=0)
    return HMM(_sparse(learn_counts(cells), cells), np.ones(2 * longest + 1))


def _sparse(counts: Lexicon, cells: Cells) -> Lexicon:
    """The lexicon that counts and the Dirichlet prior make."""
    of_source = np.bincount(cells.source, counts.translation)[cells.source]
    translation = _weight(counts.translation, of_source.astype(np.float64), len(counts.empty))
    return Lexicon(translation, _weight(counts.empty, counts.empty.sum(), len(counts.empty)))


def _weight(count: Floats, total: Floats | float, words: int) -> Floats:
    """exp psi(c + alpha) / exp psi(total + alpha Y)."""
    part, whole = (
        torch.special.digamma(torch.as_tensor(value)).exp().numpy() for value in (count + ALPHA, total + ALPHA * words)
    )
    return np.asarray(part / whole)
