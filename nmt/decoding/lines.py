"""Lines of text on their way into and out of a model: reading ahead, cleaning, splitting what is too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

ItemT = TypeVar("ItemT")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPACES = re.compile(r" {2,}")
_BREAKS = (re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；])"), re.compile(r"\s+"))
"""Where a text may be cut, from the best place to the next best: after a sentence, between words."""
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
    """Text as a model can read it: no control characters, no lone surrogates, no outer or repeated spaces."""
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    return _SPACES.sub(" ", text).strip()


def one_line(text: str) -> str:
    """Text that stays one line, whatever a reader takes for a line end; the model may have spelt one out in bytes."""
    return _CONTROL.sub(" ", text)


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a text into parts that fit, each in two near its middle: between sentences, else words, else anywhere."""
    if len(text) < 2 or fits(text):
        return [text]
    left, right = _halves(text)
    return split_text(left, fits) + split_text(right, fits)


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
