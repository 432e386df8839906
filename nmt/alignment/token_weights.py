"""Weights between tokens -> weights between words; links between words -> links between tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from nmt.alignment.links import GoldLinks
from nmt.alignment.weights import Alignment, Matrix, merge_to_words
from nmt.text.words import WordsOfTokens


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


def links_between_tokens(gold: GoldLinks, source: WordsOfTokens, target: WordsOfTokens) -> GoldLinks:
    """Link all tokens of words that are linked."""
    source_tokens, target_tokens = _tokens_by_word(source[1]), _tokens_by_word(target[1])
    sure, possible = (
        frozenset(
            pair
            for source_word, target_word in links
            for pair in product(source_tokens[source_word], target_tokens[target_word])
        )
        for links in (gold.sure, gold.possible)
    )
    return GoldLinks(sure, possible)


def shifted(weights: Matrix, shift: int) -> Matrix:
    """Move row t to t + shift. Rows beyond the matrix are dropped, and new rows are zero."""
    count = len(weights)
    down = max(-count, min(shift, count))
    moved = np.zeros_like(weights)
    moved[max(down, 0) : count + min(down, 0)] = weights[max(-down, 0) : count - max(down, 0)]
    return moved


def _tokens_by_word(word_of: Sequence[int]) -> dict[int, list[int]]:
    """The tokens of each word."""
    tokens: defaultdict[int, list[int]] = defaultdict(list)
    for token, word in enumerate(word_of):
        tokens[word].append(token)
    return tokens
