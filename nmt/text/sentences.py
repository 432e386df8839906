"""Text as sentences: where one ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import regex
import sentencex

_UNSAFE = regex.compile(r"[\s\ud800-\udfff]")
"""What the library fails on: lone surrogates, and a space of several bytes between a letter and a full stop."""
_FRAGMENT = regex.compile(r"\P{L}*+\p{Lu}?+\P{L}*+")
"""No sentence but a number, an initial or punctuation: it belongs to the text beside it."""

_IN_BRACKETS = regex.compile(r"[(\[]\p{Lu}[^\s()\[\]]*+\s[^()\[\]]*+(?<=[.!?…])[)\]]\s++(?=[\p{Lu}(\[])")
"""A sentence of several words that is in brackets as a whole, before another: the library sees no end within brackets."""


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Cut a line into sentences.

    A language that the library does not know is cut at the same marks, without its abbreviations.

    Args:
        text: a line.
        language: its ISO 639-1 code.

    Returns:
        The sentences, each with the white space after it, so that together they are the text; none of an empty text.
    """
    sentences, start, end = list[str](), 0, 0
    for piece in chain.from_iterable(map(_out_of_brackets, sentencex.segment(language, _UNSAFE.sub(" ", text)))):
        end += len(piece)
        around = text[end - 1 : end + 1]
        is_within_word = around.isascii() and not any(map(str.isspace, around))  # as in `page.Html`
        if end == len(text) or not (_FRAGMENT.fullmatch(piece) or is_within_word):
            sentences.append(text[start:end])
            start = end
    if len(sentences) > 1 and _FRAGMENT.fullmatch(sentences[-1]):
        sentences[-2:] = [sentences[-2] + sentences[-1]]
    return sentences


def _out_of_brackets(piece: str) -> Iterator[str]:
    """A sentence without those in brackets at its beginning, which come before it."""
    start = 0
    while match := _IN_BRACKETS.match(piece, start):
        yield match[0]
        start = match.end()
    yield piece[start:]
