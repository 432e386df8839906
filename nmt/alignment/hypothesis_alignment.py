"""The alignment of a hypothesis, between pieces as the model made it or between words, and gold links to go with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from nmt.alignment.links import GoldLinks
from nmt.alignment.weights import Alignment, Matrix, merge_to_words
from nmt.decoding.words import words_of
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.decoding.translation import Translation, TranslationHypothesis


def word_alignment(found: Translation, bundle: Bundle, rank: int = 0, *, shift: int = 0) -> Alignment:
    """The alignment between the words (`words_of`) of one hypothesis of a line, end marks left out.

    Args:
        found: what a translator of `bundle` made of the line.
        bundle: the (first) model.
        rank: which hypothesis, the best being 0.
        shift: the row of each step is taken for that of the target piece so many places further on.

    Raises:
        DataError: the line was too long to have an alignment.
    """
    hypothesis = _aligned(found, rank)
    rows = _shifted(hypothesis.alignment.numpy(), shift)
    marks = rows.shape[0] - len(hypothesis.ids), rows.shape[1] - len(found.source_ids)  # none where nothing was decoded
    target, target_word_of = words_of(bundle.target, hypothesis.ids, hypothesis.text)
    source, source_word_of = words_of(bundle.source, found.source_ids, found.source)
    target_word_of += [-1] * marks[0]
    source_word_of += [-1] * marks[1]
    weights = merge_to_words(rows, source_word_of, target_word_of, size=(len(target), len(source)))
    return Alignment(weights, source, target)


def piece_alignment(found: Translation, bundle: Bundle, rank: int = 0, *, shift: int = 0) -> Alignment:
    """The same between pieces as SentencePiece writes them (`▁` begins a word)."""
    hypothesis = _aligned(found, rank)
    source, target = bundle.source.pieces(found.source_ids), bundle.target.pieces(hypothesis.ids)
    rows = _shifted(hypothesis.alignment.numpy(), shift)
    return Alignment(rows[: len(target), : len(source)], tuple(source), tuple(target))


def links_of_pieces(gold: GoldLinks, found: Translation, bundle: Bundle, rank: int = 0) -> GoldLinks:
    """Links between words as links between all their pieces, for the matrix of `piece_alignment`."""
    hypothesis = found.hypotheses[rank]
    source = _pieces_of(words_of(bundle.source, found.source_ids, found.source)[1])
    target = _pieces_of(words_of(bundle.target, hypothesis.ids, hypothesis.text)[1])
    sure, possible = (
        frozenset(pair for word, other in links for pair in product(source[word], target[other]))
        for links in (gold.sure, gold.possible)
    )
    return GoldLinks(sure, possible)


def _aligned(found: Translation, rank: int) -> TranslationHypothesis:
    if not found.is_aligned(rank):
        raise DataError(
            f"A line of {len(found.source_ids):,} tokens is too long to have an alignment: cut it in parts."
        )
    return found.hypotheses[rank]


def _shifted(weights: Matrix, shift: int) -> Matrix:
    """Row t at t + shift; rows of zeros where none came from, and what leaves the matrix is lost."""
    count = len(weights)
    down = max(-count, min(shift, count))
    moved = np.zeros_like(weights)
    moved[max(down, 0) : count + min(down, 0)] = weights[max(-down, 0) : count - max(down, 0)]
    return moved


def _pieces_of(word_of: Sequence[int]) -> dict[int, list[int]]:
    """The pieces of each word."""
    pieces: defaultdict[int, list[int]] = defaultdict(list)
    for piece, word in enumerate(word_of):
        pieces[word].append(piece)
    return pieces
