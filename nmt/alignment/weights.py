"""Attention weights of a sentence pair: between tokens, merged to words, and how spread out they are.

Matrices have a row a target word and a column a source word, [T S], like the paper's figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.equality import EqualByValue

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Alignment(EqualByValue):
    """How much of each target word was read from each source word.

    Attributes:
        weights: alpha_ij (Bahdanau et al. 2015, eq. 6), [T S], not negative. A row sums to 1 unless the window cut
            some of it off or a column (the end mark) was dropped.
        source: the S words or pieces that the columns stand for.
        target: the T words or pieces that the rows stand for.

    Raises:
        ValueError: weights that are negative, not finite, or not of shape [T S].
    """

    weights: Matrix
    source: tuple[str, ...]
    target: tuple[str, ...]

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


def merge_to_words(
    weights: ArrayLike,
    source_word_of: Sequence[int],
    target_word_of: Sequence[int],
    *,
    size: tuple[int, int] | None = None,
    renormalise: bool = False,
) -> Matrix:
    """The matrix between words, from the matrix between their pieces.

        W_mn = 1/|P_m|  sum_{i in P_m}  sum_{j in Q_n}  w_ij

    with P_m the pieces of target word m and Q_n those of source word n. Source pieces are summed, because a row is a
    distribution and the mass on a word is the mass on its parts; target pieces are averaged, because each piece
    brings a distribution of its own. So rows that sum to 1 still do (as in Clark et al. 2019, section 4.1).

    Args:
        weights: [T S] between pieces, end marks included where the model has them.
        source_word_of: word of each of the S source pieces; -1 belongs to no word (an end mark): its column is dropped.
        target_word_of: word of each of the T target pieces; -1 belongs to no word: its row is dropped.
        size: (target words, source words) where the last words may have no piece; counted from the indices otherwise.
            A target word without pieces has a row of zeros.
        renormalise: divide each row by its sum, so that it is again a distribution after columns were dropped. Off by
            default: weight on the end mark says that the word was read from nowhere, which a figure should show.

    Returns:
        [target words, source words].

    Raises:
        ValueError: index lists that do not fit the matrix.
    """
    matrix = np.asarray(weights, dtype=np.float64)
    if matrix.shape != (len(target_word_of), len(source_word_of)):
        indices = f"{len(target_word_of)} target and {len(source_word_of)} source pieces"
        raise ValueError(f"weights must be [T S] for {indices}, but are {matrix.shape}.")
    target_words, source_words = size or (None, None)
    rows = _membership(target_word_of, target_words)
    columns = _membership(source_word_of, source_words)
    merged: Matrix = (rows / np.maximum(rows.sum(axis=0), 1)).T @ matrix @ columns
    return _rows_to_one(merged) if renormalise else merged


def _membership(word_of: Sequence[int], words: int | None) -> Matrix:
    """[pieces, words]: 1 where the piece belongs to the word."""
    highest = max(word_of, default=-1)
    count = highest + 1 if words is None else words
    if highest >= count or min(word_of, default=0) < -1:
        raise ValueError(f"word indices must lie between -1 and {count - 1}, but are {list(word_of)}.")
    indices = np.asarray(word_of, dtype=np.int64).reshape(-1, 1)
    return np.asarray(indices == np.arange(count), dtype=np.float64)


def _rows_to_one(matrix: Matrix) -> Matrix:
    """Each row divided by its sum; a row of zeros stays."""
    totals = matrix.sum(axis=1, keepdims=True)
    scaled: Matrix = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    return scaled


def entropy(weights: ArrayLike, *, unit: Literal["nats", "bits"] = "nats") -> NDArray[np.float64]:
    """How spread out each target word's attention is: H_i = - sum_j a_ij log a_ij, of the row scaled to sum to 1.

    0 is a hard link, log S the uniform row. A row of zeros has entropy 0.

    Args:
        weights: [T S], not negative.
        unit: natural logarithm (nats) or base 2 (bits).

    Returns:
        [T]; its mean is the entropy of the matrix.
    """
    rows = _rows_to_one(np.asarray(weights, dtype=np.float64))
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    nats: NDArray[np.float64] = np.maximum(-(rows * logs).sum(axis=1), 0.0)
    return nats / np.log(2) if unit == "bits" else nats
