"""From attention weights to alignments: words out of pieces, hard links, the Pharaoh format.

A link is a pair (source word, target word) of 0-based positions. Matrices have a row a target word and a column a
source word, [T S], like the paper's figures.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.equality import EqualByValue
from nmt.errors import DataError, UsageError
from nmt.files import write_atomically
from nmt.wording import counted

Matrix = NDArray[np.float64]
Links = frozenset[tuple[int, int]]

_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")


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


# --- links ------------------------------------------------------------------------------------------------------


def argmax_links(weights: ArrayLike, threshold: float | None = None) -> Links:
    """Each target word to the source word it read most from: {(argmax_j w_ij, i)}.

    The leftmost of equal weights wins. A row without any weight gets no link, nor one whose largest weight is below
    the threshold.
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
    """Every pair of words with at least this much weight: {(j, i) : w_ij >= threshold}; a word may have many or none.

    Raises:
        UsageError: a threshold that is not in (0, 1], at which all words or none would be linked.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"A link threshold must lie above 0 and not above 1, but is {threshold}.")
    matrix = np.asarray(weights, dtype=np.float64)
    return frozenset((int(source), int(target)) for target, source in np.argwhere(matrix >= threshold))


@dataclass(frozen=True)
class GoldLinks:
    """What annotators linked in one sentence pair (Och and Ney 2003, section 5).

    Attributes:
        sure: links nobody doubts.
        possible: links that may be there; always includes the sure ones.
    """

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        object.__setattr__(self, "sure", frozenset(self.sure))
        object.__setattr__(self, "possible", frozenset(self.possible) | self.sure)

    def flipped(self) -> Self:
        """The same links for the opposite translation direction."""
        return type(self)(flip(self.sure), flip(self.possible))


def flip(links: AbstractSet[tuple[int, int]]) -> Links:
    """Links with source and target exchanged."""
    return frozenset((target, source) for source, target in links)


def check_within(links: AbstractSet[tuple[int, int]], source_words: int, target_words: int, where: str) -> None:
    """Raise DataError, which begins with `where`, at a link to a word that the sentences do not have."""
    for source, target in sorted(links):
        if source >= source_words or target >= target_words:
            raise DataError(
                f"{where}: the link {source}-{target} lies beyond the sentences, which have {source_words} source and "
                f"{counted(target_words, 'target word')}, counted from 0."
            )


# --- Pharaoh format ---------------------------------------------------------------------------------------------


def parse_pharaoh(line: str, where: str) -> GoldLinks:
    """The links of one line in Pharaoh format: `i-j` is sure, `ipj` possible, 0-based, source first.

    Raises:
        DataError: anything else on the line; `where` names the file and line in it.
    """
    links: dict[str, set[tuple[int, int]]] = {"-": set(), "p": set()}
    for token in line.split():
        match = _LINK.fullmatch(token)
        if match is None:
            raise DataError(
                f"{where}: '{token[:60]}' is not a link; write i-j (sure) or ipj (possible), counted from 0."
            )
        links[match[2]].add((int(match[1]), int(match[3])))
    return GoldLinks(frozenset(links["-"]), frozenset(links["p"]))


def format_pharaoh(links: GoldLinks | AbstractSet[tuple[int, int]]) -> str:
    """One line of Pharaoh format, sorted by source and then target position, without line end."""
    gold = links if isinstance(links, GoldLinks) else GoldLinks(frozenset(links), frozenset())
    marked = ((source, target, "-" if (source, target) in gold.sure else "p") for source, target in gold.possible)
    return " ".join(f"{source}{mark}{target}" for source, target, mark in sorted(marked))


def read_pharaoh(path: Path) -> list[GoldLinks]:
    """The links of every sentence pair of a file, one line each; an empty line is a pair without links.

    Raises:
        DataError: a file that cannot be read, or a token that is not a link, with file and line.
    """
    return [parse_pharaoh(line, f"{path}, line {number}") for number, line in enumerate(read_link_lines(path), start=1)]


def read_link_lines(path: Path) -> list[str]:
    """The lines of a file of links, in whatever format. Raises DataError if it cannot be read or is no text."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"Cannot read the alignments {path}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a file of alignments: byte {error.start} is not UTF-8.") from None
    return text.removesuffix("\n").split("\n") if text else []


def write_pharaoh(path: Path, sentences: Iterable[GoldLinks | AbstractSet[tuple[int, int]]]) -> None:
    """Write one line a sentence pair; `read_pharaoh` reads it back unchanged."""
    content = "".join(format_pharaoh(links) + "\n" for links in sentences).encode()
    write_atomically(path, lambda beside: beside.write_bytes(content))
