"""Clean text, and map its tokens to words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from nmt.recipe import Normalization
from nmt.text.normalization import Normalizer
from nmt.text.scripts import Split, lacks_spaces, split_spaces
from nmt.text.subwords import Subwords

WordsOfTokens = tuple[tuple[str, ...], list[int]]
"""The words of a text, and the index of the word that each of its tokens belongs to (-1 for none)."""


clean = Normalizer("none")
"""Makes any text a single line, even if the model has spelled a line end in bytes; its letters stay as they are."""


def words_of(subwords: Subwords, ids: Sequence[int], text: str) -> WordsOfTokens:
    """The words of a text, and the index of the word that each of its tokens belongs to (-1 for none).

    The words are what U+0020 and tabs separate in the text itself, so that their numbers are those of links that others made: a
    no-break space does not end a word, though the model may read a space there. If the decoded ids cannot be those of the text, the
    words are those of the decoded ids. In text written without spaces, every token is a word.
    """
    if has_tokens_as_words(subwords, text):
        return _tokens_as_words(subwords, ids)
    decoded, original = split_spaces(clean(subwords.decode(ids))), split_spaces(clean(text))
    if not decoded:
        return (), [-1] * len(ids)
    owners = words_read_as(len(decoded), original)
    if owners is None:
        return tuple(decoded), subwords.word_of(ids)
    return tuple(original), [owners[word] for word in subwords.word_of(ids)]


def words_read_as(count: int, words: Sequence[str], split: Split = split_spaces) -> list[int] | None:
    """The word that each of `count` words comes from once a model has normalized the text; None if it cannot have read these."""
    for form in get_args(Normalization):
        normalizer = Normalizer(form)
        parts = [len(split(normalizer(word))) for word in words]
        if sum(parts) == count:
            return [word for word, part in enumerate(parts) for _ in range(part)]
    return None


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
            word_of.append(len(words) - 1)
        else:  # A later byte belongs to the word of its character, a space to the next word, or to the last one.
            word_of.append(len(words) if characters else len(words) - 1)
    word_of = [min(word, len(words) - 1) for word in word_of]
    for index, word in zip(ids, word_of, strict=True):
        words[word].append(index)
    return tuple(clean(subwords.decode(word)) for word in words), word_of
