"""Attention weights of a sentence pair: between tokens, merged to words, and their entropy.

Matrices have one row per target word and one column per source word, [T S], like the figures of Bahdanau et al. (2015).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.alignment.link_files import parse_pharaoh
from nmt.alignment.links import check_within
from nmt.runtime.equality import EqualByValue
from nmt.runtime.wording import excerpt
from nmt.text.scripts import splitter

Matrix = NDArray[np.float64]
AlignmentWeights = Literal["posterior", "attention"]
"""What weights of an alignment are: see `nmt.decoding.posterior`."""


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(EqualByValue):
    """The attention weights of a sentence pair, with the words they are between.

    Attributes:
        weights: alpha_ij (Bahdanau et al. 2015, eq. 6), [T S], not negative. A row sums to 1 unless the window cut
            some of it off or a column (the end mark) was dropped.
        source: the S words or tokens of the columns.
        target: the T words or tokens of the rows.

    Raises:
        ValueError: weights that are negative, not finite, or not of shape [T S].
    """

    weights: Matrix
    source: tuple[str, ...]
    target: tuple[str, ...]

    def __repr__(self) -> str:
        source, target = (excerpt(" ".join(words), 60) for words in (self.source, self.target))
        return f"Alignment({source!r} -> {target!r}, weights {list(self.weights.shape)})"

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.shape != (len(self.target), len(self.source)):
            expected = (len(self.target), len(self.source))
            raise ValueError(f"weights must be [target words, source words] = {expected}, but are {weights.shape}.")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError("weights must be finite and not negative.")
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "source", tuple(self.source))
        object.__setattr__(self, "target", tuple(self.target))

    @classmethod
    def of_links(
        cls,
        source: str | Sequence[str],
        target: str | Sequence[str],
        links: str | Iterable[tuple[int, int]],
        where: str = "The links",
    ) -> Self:
        """The alignment that has weight 1 where an aligner linked two words, to be drawn by `nmt.plot_alignment`.

        Args:
            source, target: the words, or a sentence: what spaces separate, or its characters if it is written without spaces.
            links: pairs (source, target) of word positions from 0, or a line in Pharaoh format (`0-0 1-2`).
            where: how an error message begins, a DataError if a link is malformed or lies beyond the sentences.
        """
        words = [splitter([side])(side) if isinstance(side, str) else list(side) for side in (source, target)]
        pairs = parse_pharaoh(links, where).possible if isinstance(links, str) else frozenset(links)
        check_within(pairs, len(words[0]), len(words[1]), where)
        weights = np.zeros((len(words[1]), len(words[0])))
        for i, j in pairs:
            weights[j, i] = 1
        return cls(weights, tuple(words[0]), tuple(words[1]))


def between_words(
    weights: ArrayLike, source: tuple[tuple[str, ...], list[int]], target: tuple[tuple[str, ...], list[int]]
) -> Alignment:
    """Merge weights between tokens into the alignment between words (Clark et al. 2019, section 4.1).

        W_mn = 1/|P_m|  sum_{i in P_m}  sum_{j in Q_n}  w_ij

    with P_m the tokens of target word m and Q_n those of source word n. Weights are summed over the source tokens of a word
    and averaged over the target tokens, so rows that sum to 1 still do. Weight on an end mark is dropped, so that a figure shows
    a word whose weight is there as unaligned. A target word without tokens has a row of zeros.

    Args:
        weights: [T S] between tokens, then end marks where the model has them.
        source, target: the words of each side, and the word of each token, as `words_of` tells them.
    """
    matrix = np.asarray(weights, dtype=np.float64)
    rows, columns = (_membership(*side, count) for side, count in zip((target, source), matrix.shape, strict=True))
    merged = (rows / np.maximum(rows.sum(axis=0), 1)).T @ matrix @ columns
    return Alignment(merged, source[0], target[0])


def _membership(words: Sequence[str], word_of: Sequence[int], count: int) -> Matrix:
    """[count, words]: 1 where the token belongs to the word. End marks belong to none, nor do tokens whose word is -1."""
    membership = np.zeros((count, len(words)))
    for token, word in enumerate(word_of):
        if word >= 0:
            membership[token, word] = 1
    return membership


def entropy(weights: ArrayLike) -> NDArray[np.float64]:
    """The entropy of each target word's attention in nats: H_i = - sum_j a_ij log a_ij, with the row scaled to sum to 1.

    It is 0 if all weight is on one source word and log S if the row is uniform. A row of zeros has entropy 0.

    Args:
        weights: [T S], not negative.

    Returns:
        [T]; its mean is the entropy of the matrix.
    """
    matrix = np.asarray(weights, dtype=np.float64)
    totals = matrix.sum(axis=1, keepdims=True)
    rows = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    nats: NDArray[np.float64] = np.maximum(-(rows * logs).sum(axis=1), 0.0)
    return nats
