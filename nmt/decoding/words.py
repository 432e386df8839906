"""Words of a text, and which of them each of its pieces belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.data.subwords import Subwords
from nmt.decoding.lines import clean
from nmt.scripts import lacks_spaces


def words_of(subwords: Subwords, ids: Sequence[int], text: str) -> tuple[tuple[str, ...], list[int]]:
    """The words of a text, and the word of each of its pieces (-1 is none).

    The words are those of the text itself, which may hold characters that the subwords do not know. Where the subwords
    see another number of words, they are those that the ids stand for. Of a text that is written without spaces they are its
    pieces.
    """
    if has_pieces_for_words(subwords, text):
        return _pieces_as_words(subwords, ids)
    read, written = clean(subwords.decode(ids)).split(), clean(text).split()
    words = written if len(written) == len(read) else read
    return tuple(words), subwords.word_of(ids) if words else [-1] * len(ids)


def has_pieces_for_words(subwords: Subwords, text: str) -> bool:
    """Whether a text is written without spaces, for subwords that were not trained on words with spaces between them."""
    return lacks_spaces(text) and not subwords.is_spaced


def _pieces_as_words(subwords: Subwords, ids: Sequence[int]) -> tuple[tuple[str, ...], list[int]]:
    """The same where each piece that shows anything is a word, as are the bytes of one character together."""
    words: list[list[int]] = []
    word_of = []
    for characters in subwords.characters(ids):
        if clean(characters):
            words.append([])
        # What shows nothing goes with the piece that follows, or with the last one.
        word_of.append(len(words) - bool(clean(characters) or not characters))
    word_of = [min(word, len(words) - 1) for word in word_of]
    for index, word in zip(ids, word_of, strict=True):
        words[word].append(index)
    return tuple(clean(subwords.decode(word)) for word in words), word_of
