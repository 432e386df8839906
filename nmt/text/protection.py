"""What of a plain text is no text: addresses, placeholders of programs, and tags. They are kept as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import regex

from nmt.text.inline import Code, InlineText, Piece

_CONVERSION = r"[-+#0]{0,5}+(?:\d{1,3}+|\*)?(?:\.(?:\d{1,3}+|\*))?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcsSpn@]"
_PROTECTED = {
    "tag": r"</?[A-Za-z][\w:.-]*+(?:\s+[\w:.-]++=(?:\"[^\"<>]*+\"|'[^'<>]*+'))*+\s*+/?>",
    "URL": r"\b(?:(?:https?|ftps?|file)://|mailto:|www\.(?=\w))(?:[^\s<>\"()]|\([^\s<>\"()]{0,200}+\)){1,2000}(?<![.,;:!?'’”»…\]}])",
    "e-mail": r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]++(?:\.[\w-]++)+",
    "double braces": r"\{\{\{?[^{}]{0,200}+\}?\}\}",
    "braces": r"[#$%]?\{[\w.$\[\]/-]{0,100}+(?:![ars])?+(?:[:,](?:[^{}]|\{(?:[^{}]|\{[^{}]{0,200}+\}){0,200}+\}){0,200}+)?+\}",
    "printf, named": rf"%(?:\(\w{{1,100}}+\)|\d{{1,3}}+\$){_CONVERSION}",
    "printf": rf"(?<![\d%])%{_CONVERSION}(?![\p{{Ll}}\d_])",
    "Qt": r"(?<![\w%])%L?[1-9](?![\w%]|[.,]\d)",
    "percent": r"%%",
    "between percents": r"(?<![\w%])%[A-Za-z_][\w.-]{0,100}+%(?!\w)",
    "dollar": r"(?<![\w$])\$[a-z_][a-z0-9_]{1,100}+(?!\w)",
}
"""What is protected: its name, and a regular expression."""
_NESTED_TAG = regex.compile(r"<(/?)([\w:.-]+)[^>]*?(/?)>")
_AROUND = regex.compile(r"[(\[\"'“„«‹‘‚]\Z"), regex.compile(r"[)\]\"'”“»›’‘]")
_LEADING = regex.compile(r"[:;,.!?)]+")
"""Punctuation that would begin a text if the words before it were taken out."""


def protect(text: str) -> InlineText:
    """A plain text in which addresses, placeholders and tags are inline codes.

    A model does not see them, so any model can be used; they come back by the links between words. With them go quotation marks and
    brackets that have nothing else inside.
    """
    return InlineText(protect_pieces([text]))


def protect_pieces(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same in a text that has codes already. In the words that these keep, a model does not see addresses and the like either."""
    for piece in pieces:
        if isinstance(piece, str):
            yield from _pieces(piece)
        elif piece.words:
            yield replace(piece, words=protect(piece.words).plain)
        else:
            yield piece


@cache
def _pattern() -> regex.Pattern[str]:
    return regex.compile("|".join(f"(?:{pattern})" for pattern in _PROTECTED.values()))


def _pieces(text: str) -> Iterator[Piece]:
    end = 0
    for match in _pattern().finditer(text):
        start, stop = match.span()
        if tag := _NESTED_TAG.fullmatch(match[0]):
            yield text[end:start]
            yield _tag(match[0], *tag.groups())
        else:
            start, stop = _with_punctuation(text, start, stop, end)
            yield text[end:start]
            yield Code(text[start:stop])
        end = stop
    yield text[end:]


def _tag(text: str, slash: str, name: str, end: str) -> Code:
    return Code(text, "close" if slash else "mark" if end else "open", name)


def _with_punctuation(text: str, start: int, stop: int, end: int) -> tuple[int, int]:
    """Where a code starts and stops with the quotation marks or brackets around it, or the punctuation that would begin the text."""
    opening, closing = _AROUND
    if start > end and opening.match(text, start - 1, start) and closing.match(text, stop):
        return start - 1, stop + 1
    if not text[:start].strip() and (leading := _LEADING.match(text, stop)):
        return start, leading.end()
    return start, stop
