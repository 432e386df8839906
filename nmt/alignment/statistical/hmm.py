"""HMM word alignment (Vogel et al. 1996), trained jointly in both directions (Liang et al. 2006).

The target y_1 ... y_T is generated from the source x_1 ... x_S at positions a_1 ... a_T, each near the one before:

    p(y, a | x) = prod_j  p(a_j | a_j-1, S) t(y_j | x_a_j)          p(i | i', S) = (1 - p_0) J(i - i') / sum_k J(k - i')

A word may instead come from the empty word, with probability p_0; the position then stays the same for the next word (Och and
Ney 2003, 2.1.1). The first word jumps from position 0. The translation table t and the jumps J are re-estimated by expectation
maximization, started from IBM model 1. The table has a sparse Dirichlet prior, so that a rare word does not become the
translation of everything it occurs with (Riley and Gildea 2012):

    t(y | x) = exp psi(c(x, y) + alpha + beta m(y | x)) / exp psi(sum_y' c(x, y') + alpha Y + beta)

The mean m of the prior is what the stems of the words say (their first letters, `WordForms`):

    m(y | x) = t(stem of y | stem of x) p(y | stem of y)

with the same estimate of t from the counts of stems, without a mean. So a rare word translates like others with its stem. Words
spelled alike get larger counts before the first round, by a factor exp(gamma s) with their similarity s. Of two names that
always occur together, this tells which translates which.

Two models, one in each direction, are trained together: the expected count of a link is the product of its posteriors in
both. A pair of words is linked where the geometric mean of the two posteriors is at least `THRESHOLD`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nmt.alignment.statistical.ibm1 import TranslationTable, learn_counts
from nmt.alignment.statistical.word_forms import WordForms
from nmt.alignment.statistical.word_pairs import Cells, Entries, Floats, Ids

EMPTY = 0.15
"""p_0."""
ALPHA = 0.15
"""The Dirichlet prior of the translation table; below 1 it prefers few translations per word."""
FEW_WORDS = 4400
"""From how many different target words on alpha falls, with the square of their number: more text needs less of a prior."""
STEM_ALPHA = 0.01
"""The prior of the table of stems."""
DECAY = 3.0
"""The first jumps are J(d) ~ exp(-|d - 1| / DECAY)."""
BETA = 300.0
"""Weight of what the stems say, as a number of words seen."""
GAMMA = 5.0
"""Weight of spelling at the start."""
SMOOTHING = 0.1
"""Weight of the uniform distribution in every row of jump probabilities."""
FLOOR = 1e-9
"""Least translation probability, so that no sentence has probability 0."""
THRESHOLD = 0.5
"""Least posterior of a link."""
ROUNDS = 5
"""Default number of rounds of expectation maximization."""
Weights = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SmoothTable(TranslationTable):
    """Translation probabilities under the prior, with what it says of words that never occurred together.

    Attributes:
        stems: t(stem of y | stem of x) of each pair of stems.
        whole: the denominator of t(y | x) for each source word.
    """

    stems: Floats
    whole: Floats

    def select(self, entries: npt.NDArray[np.bool_], stems: npt.NDArray[np.bool_]) -> SmoothTable:
        """The table of some entries and pairs of stems."""
        return SmoothTable(self.translation[entries], self.empty, self.stems[stems], self.whole)

    def unseen(self, mean: Floats, source: Ids | Entries) -> Floats:
        """t(y | x) of words that never occurred together, from their m(y | x) and the source words; -1 is an unknown word."""
        alpha = _alpha(len(self.empty))
        unknown = _weight(alpha * len(self.empty) + BETA)
        return np.asarray(_weight(alpha + BETA * mean) / np.where(source < 0, unknown, self.whole[source]))


@dataclass(frozen=True)
class HMM:
    """The model of one direction, which generates target words from source words.

    Attributes:
        table: translation probabilities t.
        jumps: J, [2 L + 1] with L the longest source; J(0) is in the middle.
    """

    table: TranslationTable
    jumps: Floats

    def transitions(self, length: int) -> Weights:
        """p(i | i', S) / (1 - p_0) for sources of S words, [S + 1, S]; row 0 is for the first target word."""
        probabilities = np.maximum(self.jumps[_jump_index(length, len(self.jumps))], FLOOR)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return ((1 - SMOOTHING) * probabilities + SMOOTHING / length).astype(np.float32)


@dataclass(frozen=True)
class LearnedHMM(HMM):
    """A model as `learn` makes it, which also knows words that never occurred together."""

    table: SmoothTable


@dataclass(frozen=True)
class Posteriors:
    """Link posteriors and expected counts of a model over a text.

    Attributes:
        links: p(a_j = i | y, x) of each cell.
        empty: expected count of each target word from the empty word.
        jumps: expected count of each jump.
    """

    links: Weights
    empty: Floats
    jumps: Floats

    @classmethod
    def of(cls, model: HMM, cells: Cells) -> Posteriors:
        """Compute them by the forward-backward algorithm."""
        links = np.maximum(model.table.translation[cells.entry], FLOOR).astype(np.float32)
        empty, jumps = np.zeros_like(model.table.empty), np.zeros_like(model.jumps)
        empty_probabilities = np.maximum(model.table.empty, FLOOR).astype(np.float32)
        for group in cells.groups:
            length = group.sources.shape[1]
            emission = group.of(links)
            linked, unlinked, jump_counts = forward_backward(
                emission, empty_probabilities[group.targets], model.transitions(length)
            )
            emission[:] = linked
            empty += np.bincount(group.targets.reshape(-1), unlinked.reshape(-1), len(empty))
            np.add.at(jumps, _jump_index(length, len(jumps)), jump_counts)
        return cls(links, empty, jumps)


def _jump_index(length: int, jumps: int) -> npt.NDArray[np.int64]:
    """The index in J of the jump from position i' to i, [S + 1, S]; row 0 is the start, before the first word."""
    index = np.arange(length) - np.arange(-1, length)[:, None] + jumps // 2
    # Jumps longer than any in training share the probability of the longest.
    return np.asarray(np.clip(index, 0, jumps - 1))


def forward_backward(emission: Weights, empty: Weights, transition: Weights) -> tuple[Weights, Weights, Weights]:
    """Posterior probabilities of sentence pairs of the same lengths.

    Args:
        emission: t(y_j | x_i), [B T S].
        empty: t(y_j | empty word), [B T].
        transition: p(i | i', S) / (1 - p_0), [S + 1, S]; row 0 is for the first target word.

    Returns:
        p(a_j = i | y, x), [B T S]; that y_j came from the empty word, [B T]; how often each transition is expected, [S + 1, S].
    """
    (first, transitions), steps = np.split(transition, [1]), range(emission.shape[1])
    linked, unlinked = (1 - EMPTY) * emission, EMPTY * empty[:, :, None]
    # alpha, separately for states that generate word j (emitting) and states that stay while the empty word does (staying).
    emitting, staying = np.empty_like(linked), np.empty_like(linked)
    scale = np.empty_like(empty)
    for j in steps:
        before = None if j == 0 else emitting[:, j - 1] + staying[:, j - 1]
        np.multiply(first if before is None else before @ transitions, linked[:, j], out=emitting[:, j])
        np.multiply(first if before is None else before, unlinked[:, j], out=staying[:, j])
        scale[:, j] = emitting[:, j].sum(axis=1) + staying[:, j].sum(axis=1)
        emitting[:, j] /= scale[:, j, None]
        staying[:, j] /= scale[:, j, None]
    beta = np.ones_like(linked[:, 0])
    jump_counts = np.zeros_like(transition)
    for j in reversed(steps):
        ahead = linked[:, j] * beta / scale[:, j, None]
        before = None if j == 0 else emitting[:, j - 1] + staying[:, j - 1]
        if before is None:
            jump_counts[0] += first[0] * ahead.sum(axis=0)
        else:
            jump_counts[1:] += transitions * (before.T @ ahead)
        emitting[:, j] *= beta
        staying[:, j] *= beta
        beta = ahead @ transitions.T + unlinked[:, j] * beta / scale[:, j, None]
    return emitting, staying.sum(axis=-1), jump_counts


# --- joint training of both directions --------------------------------------------------------------------------


def learn(cells: Cells, forms: WordForms, rounds: Iterable[object] = range(ROUNDS)) -> tuple[LearnedHMM, LearnedHMM]:
    """Train a model of each direction jointly: source to target, and target to source."""
    sides = (cells, forms), (cells.flipped(), forms.flipped())
    models = [_start(*side) for side in sides]
    for _ in rounds:
        counts = np.zeros(len(cells.source))
        others = [(np.zeros_like(model.table.empty), np.zeros_like(model.jumps)) for model in models]
        for block in cells.blocks():
            both = Posteriors.of(models[0], block), Posteriors.of(models[1], block.flipped())
            counts += block.sums(both[0].links * both[1].links)
            for (empty, jumps), posteriors in zip(others, both, strict=True):
                empty += posteriors.empty
                jumps += posteriors.jumps
        del models  # both tables, before there are others
        models = [
            LearnedHMM(_estimate(TranslationTable(counts, empty), *side), jumps)
            for (empty, jumps), side in zip(others, sides, strict=True)
        ]
    return models[0], models[1]


def agreement(forward: HMM, backward: HMM, cells: Cells) -> Weights:
    """The geometric mean of both models' posteriors of each cell."""
    product = Posteriors.of(forward, cells).links * Posteriors.of(backward, cells.flipped()).links
    return np.asarray(np.sqrt(product))


def _start(cells: Cells, forms: WordForms) -> LearnedHMM:
    """The initial model: the translation table of IBM model 1, where words spelled alike count more, and mostly short jumps."""
    longest = max((group.sources.shape[1] for group in cells.groups), default=0)
    counts = learn_counts(cells)
    alike = TranslationTable(counts.translation * np.exp(GAMMA * forms.similarity), counts.empty)
    jumps = np.exp(-np.abs(np.arange(-longest, longest + 1) - 1) / DECAY)
    return LearnedHMM(_estimate(alike, cells, forms), jumps)


def _estimate(counts: TranslationTable, cells: Cells, forms: WordForms) -> SmoothTable:
    """Translation probabilities from counts under the Dirichlet prior, whose mean is what the stems say."""
    of_stems = np.bincount(forms.entry, counts.translation, len(forms.source)).astype(np.float64)
    of_stem = np.bincount(forms.source, of_stems)[forms.source]
    stems = _weight(of_stems + STEM_ALPHA) / _weight(of_stem + STEM_ALPHA * (1 + int(forms.target.max(initial=-1))))
    mean = prior_mean(stems, cells, forms)
    words = len(counts.empty)
    alpha = _alpha(words)
    whole = _weight(np.bincount(cells.source, counts.translation, len(forms.source_share)) + alpha * words + BETA)
    translation = _weight(counts.translation + alpha + BETA * mean) / whole[cells.source]
    empty = _weight(counts.empty + alpha) / _weight(counts.empty.sum() + alpha * words)
    return SmoothTable(translation, empty, stems, whole)


def prior_mean(stems: Floats, cells: Cells, forms: WordForms) -> Floats:
    """m(y | x) of each entry, from t(stem of y | stem of x)."""
    return np.asarray(stems[forms.entry] * forms.target_share[cells.target])


def _alpha(words: int) -> float:
    """The prior for so many different target words."""
    return ALPHA * min(1, FEW_WORDS / max(words, 1)) ** 2


def _weight(count: npt.NDArray[np.floating] | float) -> Floats:
    """exp psi(count), with the digamma function psi(x) = psi(x + 1) - 1 / x and its asymptotic series (Bernardo 1976)."""
    large = np.asarray(count + 6.0)
    square = 1 / large**2
    psi = np.log(large) - 0.5 / large - square * (1 / 12 - square * (1 / 120 - square / 252))
    for step in range(6):
        psi -= 1 / (count + step)
    return np.asarray(np.exp(psi))
