"""Words of a text, and which of them each of its pieces belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.data.subwords import Subwords
from nmt.decoding.lines import clean


def words_of(subwords: Subwords, ids: Sequence[int], text: str) -> tuple[tuple[str, ...], list[int]]:
    """The words of a text, and the word of each of its pieces (-1 is none).

    The words are those of the text itself, which may hold characters that the subwords do not know. Where the subwords
    see another number of words, they are those that the ids stand for.
    """
    read, written = clean(subwords.decode(ids)).split(), clean(text).split()
    words = written if len(written) == len(read) else read
    return tuple(words), subwords.word_of(ids) if words else [-1] * len(ids)
