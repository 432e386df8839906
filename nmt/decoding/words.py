"""Map the tokens of a text to its words."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.data.subwords import Subwords
from nmt.decoding.lines import clean
from nmt.scripts import lacks_spaces


def words_of(subwords: Subwords, ids: Sequence[int], text: str) -> tuple[tuple[str, ...], list[int]]:
    """The words of a text, and the word index of each of its tokens (-1 is none).

    The words come from the text itself, which may have characters that the subwords do not know. They come from the decoded
    ids instead if the numbers of words differ. In text written without spaces, every token is a word.
    """
    if has_pieces_for_words(subwords, text):
        return _tokens_as_words(subwords, ids)
    decoded, original = clean(subwords.decode(ids)).split(), clean(text).split()
    words = original if len(original) == len(decoded) else decoded
    return tuple(words), subwords.word_of(ids) if words else [-1] * len(ids)


def has_pieces_for_words(subwords: Subwords, text: str) -> bool:
    """Whether tokens take the place of words: text and training text of the subwords are written without spaces."""
    return lacks_spaces(text) and not subwords.is_spaced


def _tokens_as_words(subwords: Subwords, ids: Sequence[int]) -> tuple[tuple[str, ...], list[int]]:
    """The result of `words_of` where each visible token is a word; the bytes of one character are one word together."""
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
