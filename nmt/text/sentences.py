"""Text as sentences: where one ends and the next begins."""

from __future__ import annotations

import regex
import sentencex

_UNSAFE = regex.compile(r"[\s\ud800-\udfff]")
"""What the library fails on: lone surrogates, and a space of several bytes between a letter and a full stop."""
_FRAGMENT = regex.compile(r"\P{L}*+\p{Lu}?+\P{L}*+")
"""No sentence but a number, an initial or punctuation: it belongs to the text beside it."""


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
    for piece in sentencex.segment(language, _UNSAFE.sub(" ", text)):
        end += len(piece)
        if end == len(text) or not (_FRAGMENT.fullmatch(piece) or _is_within_word(text, end)):
            sentences.append(text[start:end])
            start = end
    if len(sentences) > 1 and _FRAGMENT.fullmatch(sentences[-1]):
        sentences[-2:] = [sentences[-2] + sentences[-1]]
    return sentences


def _is_within_word(text: str, place: int) -> bool:
    """Whether a place is between characters of ASCII other than white space, as in `page.Html`."""
    around = text[place - 1 : place + 1]
    return around.isascii() and not any(map(str.isspace, around))
