"""Clean text, and map its tokens to words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nmt.data.subwords import Subwords
from nmt.scripts import lacks_spaces

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPACES = re.compile(r" {2,}")

WordsOfTokens = tuple[tuple[str, ...], list[int]]
"""The words of a text, and the index of the word that each of its tokens belongs to (-1 for none)."""


def clean(text: str) -> str:
    """Replace control characters and lone surrogates, and remove outer and repeated spaces.

    The result is a single line for any reader, even if the model has spelled a line end in bytes.
    """
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    return _SPACES.sub(" ", text).strip()


def words_of(subwords: Subwords, ids: Sequence[int], text: str) -> WordsOfTokens:
    """The words of a text, and the index of the word that each of its tokens belongs to (-1 for none).

    The words are those of the text itself, which may have characters that the subwords lack. If the decoded ids have another
    number of words, the words are those of the decoded ids. In text written without spaces, every token is a word.
    """
    if has_tokens_as_words(subwords, text):
        return _tokens_as_words(subwords, ids)
    decoded, original = clean(subwords.decode(ids)).split(), clean(text).split()
    words = original if len(original) == len(decoded) else decoded
    return tuple(words), subwords.word_of(ids) if words else [-1] * len(ids)


def has_tokens_as_words(subwords: Subwords, text: str) -> bool:
    """Whether tokens count as words: neither the text nor the training text of the subwords has spaces."""
    return lacks_spaces(text) and not subwords.is_spaced


def _tokens_as_words(subwords: Subwords, ids: Sequence[int]) -> WordsOfTokens:
    """The result of `words_of` where each visible token is a word. The byte tokens of one character form one word."""
    words: list[list[int]] = []
    word_of = []
    for characters in subwords.characters(ids):
        if clean(characters):
            words.append([])
        # An invisible token belongs to the next word, or to the last one.
        word_of.append(len(words) - bool(clean(characters) or not characters))
    word_of = [min(word, len(words) - 1) for word in word_of]
    for index, word in zip(ids, word_of, strict=True):
        words[word].append(index)
    return tuple(clean(subwords.decode(word)) for word in words), word_of
