"""Lines of text on their way into and out of a model: reading ahead, cleaning, splitting what is too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from nmt.scripts import UNSPACED

ItemT = TypeVar("ItemT")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPACES = re.compile(r" {2,}")
_WIDE = "\u3001-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
"""Punctuation of scripts without spaces, which holds its space itself."""
_JOINT = re.compile(f"(?<=[{UNSPACED}])\n(?=[{UNSPACED}])|(?<=[{_WIDE}])\n|\n(?=[{_WIDE}])")
"""A line feed between two texts that need no space between them."""
_SPACED = 8
"""Text with a space per this many characters, or more, is cut into words, whatever its script."""
_BREAKS = (
    re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；])\s*"),
    re.compile(r"\s+"),
    re.compile(f"(?<=[{UNSPACED}])(?=[{UNSPACED}])"),
)
"""Where a text may be cut, from the best place to the next best: after a sentence, between words, where no space would stand."""
_WINDOW_CHARACTERS = 300_000
"""Bounds the memory of a window, in which alignments grow with the square of the length of a line."""


def read_ahead(items: Iterable[ItemT], count: int, *, size: Callable[[ItemT], int]) -> Iterator[list[ItemT]]:
    """Groups of up to `count` consecutive items; fewer where their sizes already add up to 300,000 characters.

    A group is given out as soon as it is full, before another item is asked for.
    """
    group: list[ItemT] = []
    characters = 0
    for item in items:
        group.append(item)
        characters += size(item)
        if len(group) == count or characters >= _WINDOW_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def clean(text: str) -> str:
    """Text as a model reads it and as it is written: no control characters, no lone surrogates, no outer or repeated spaces.

    So it stays one line, whatever a reader takes for a line end; the model may have spelt one out in bytes.
    """
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    return _SPACES.sub(" ", text).strip()


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a text into parts that fit, each in two near its middle: between sentences, else words, else anywhere.

    `join_texts` puts their translations together.
    """
    if len(text) < 2 or fits(text):
        return [text]
    left, right = _halves(text)
    return split_text(left, fits) + split_text(right, fits)


def join_texts(parts: Iterable[str]) -> str:
    """Texts as one, with a space between two unless both are in a script that is written without.

    Text of such a script that is cut into words, as corpora are, has spaces there too.
    """
    texts = [part for part in parts if part]
    characters, spaces = sum(map(len, texts)), sum(text.count(" ") for text in texts)
    if spaces * _SPACED >= characters:
        return " ".join(texts)
    return _JOINT.sub("", "\n".join(texts)).replace("\n", " ")


def _halves(text: str) -> tuple[str, str]:
    """Two non-empty parts of a text of two characters or more, cut at the best place in its middle half."""
    middle = len(text) // 2
    for pattern in _BREAKS:
        places = [
            (abs(found.start() - middle), found.start(), found.end())
            for found in pattern.finditer(text, len(text) // 4, len(text) - len(text) // 4)
        ]
        if places:
            _, start, end = min(places)
            if text[:start].strip() and text[end:].strip():
                return text[:start], text[end:]
    return text[:middle], text[middle:]
