"""The alignment of a hypothesis between tokens or words, and gold links between the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nmt.alignment.links import GoldLinks
from nmt.alignment.weights import Alignment, Matrix, merge_to_words
from nmt.errors import DataError
from nmt.text.words import WordsOfTokens, words_of

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translation import Translation, TranslationHypothesis


def word_alignment(translation: Translation, bundle: Bundle, rank: int = 0, *, shift: int = 0) -> Alignment:
    """The alignment between the words (`words_of`) of a line and one of its hypotheses, without end marks.

    Args:
        translation: the line and its hypotheses, from a translator with `bundle`.
        bundle: the (first) model.
        rank: which hypothesis, the best being 0.
        shift: number of target tokens to move each row down by.

    Raises:
        DataError: the line was too long to have an alignment.
    """
    hypothesis = _aligned_hypothesis(translation, rank)
    rows = _shifted(hypothesis.alignment.numpy(), shift)
    source = words_of(bundle.source, translation.source_ids, translation.source)
    target = words_of(bundle.target, hypothesis.ids, hypothesis.text)
    return between_words(rows, source, target)


def between_words(weights: ArrayLike, source: WordsOfTokens, target: WordsOfTokens) -> Alignment:
    """The alignment between words, from weights between tokens [T S] and the words of both sides (`words_of`)."""
    rows = np.asarray(weights)
    # End marks of both sides; an unfinished target has none, and a blank line has none at all.
    words_by_side = [
        [*word_of, *[-1] * (count - len(word_of))]
        for count, (_, word_of) in zip(rows.shape, (target, source), strict=True)
    ]
    size = len(target[0]), len(source[0])
    return Alignment(merge_to_words(rows, words_by_side[1], words_by_side[0], size=size), source[0], target[0])


def token_alignment(translation: Translation, bundle: Bundle, rank: int = 0, *, shift: int = 0) -> Alignment:
    """The alignment between tokens, as SentencePiece spells them (`▁` begins a word)."""
    hypothesis = _aligned_hypothesis(translation, rank)
    source, target = bundle.source.tokens(translation.source_ids), bundle.target.tokens(hypothesis.ids)
    rows = _shifted(hypothesis.alignment.numpy(), shift)
    return Alignment(rows[: len(target), : len(source)], tuple(source), tuple(target))


def links_between_tokens(gold: GoldLinks, translation: Translation, bundle: Bundle, rank: int = 0) -> GoldLinks:
    """Link all tokens of words that are linked, for the matrix of `token_alignment`."""
    hypothesis = translation.hypotheses[rank]
    source = _tokens_by_word(words_of(bundle.source, translation.source_ids, translation.source)[1])
    target = _tokens_by_word(words_of(bundle.target, hypothesis.ids, hypothesis.text)[1])
    sure, possible = (
        frozenset(
            pair for source_word, target_word in links for pair in product(source[source_word], target[target_word])
        )
        for links in (gold.sure, gold.possible)
    )
    return GoldLinks(sure, possible)


def _aligned_hypothesis(translation: Translation, rank: int) -> TranslationHypothesis:
    if not translation.is_aligned(rank):
        raise DataError(
            f"A line of {len(translation.source_ids):,} tokens is too long to have an alignment: cut it in parts."
        )
    return translation.hypotheses[rank]


def _shifted(weights: Matrix, shift: int) -> Matrix:
    """Move row t to t + shift. Rows beyond the matrix are dropped, and new rows are zero."""
    count = len(weights)
    down = max(-count, min(shift, count))
    shifted = np.zeros_like(weights)
    shifted[max(down, 0) : count + min(down, 0)] = weights[max(-down, 0) : count - max(down, 0)]
    return shifted


def _tokens_by_word(word_of: Sequence[int]) -> dict[int, list[int]]:
    """The tokens of each word."""
    tokens: defaultdict[int, list[int]] = defaultdict(list)
    for token, word in enumerate(word_of):
        tokens[word].append(token)
    return tokens
