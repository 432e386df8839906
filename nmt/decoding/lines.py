"""Lines of text before and after translation: reading ahead, cleaning, splitting and joining."""

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
"""Full-width punctuation, which needs no space beside it."""
_JOINT = re.compile(f"(?<=[{UNSPACED}])\n(?=[{UNSPACED}])|(?<=[{_WIDE}])\n|\n(?=[{_WIDE}])")
"""A line feed between two texts that need no space between them."""
_SPACED = 8
"""Text with at least one space per this many characters counts as written with spaces, whatever its script."""
_BREAKS = (
    re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；])\s*"),
    re.compile(r"\s+"),
    re.compile(f"(?<=[{UNSPACED}])(?=[{UNSPACED}])"),
)
"""Where a text may be cut, best first: after a sentence, between words, between characters of scripts without spaces."""
_WINDOW_CHARACTERS = 300_000
"""Most characters in a window, to bound its memory: alignments grow with the square of a line's length."""


def read_ahead(items: Iterable[ItemT], count: int, *, size: Callable[[ItemT], int]) -> Iterator[list[ItemT]]:
    """Group consecutive items: up to `count`, or fewer if their sizes add up to 300,000 characters.

    A full group is yielded before the next item is read.
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
    """Replace control characters and lone surrogates, and remove outer and repeated spaces.

    The result is a single line for any reader, even if the model has spelt a line end in bytes.
    """
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
    return _SPACES.sub(" ", text).strip()


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Halve a text until its parts fit: between sentences if possible, else between words, else anywhere.

    `join_texts` joins the translations of the parts.
    """
    if len(text) < 2 or fits(text):
        return [text]
    left, right = _halves(text)
    return split_text(left, fits) + split_text(right, fits)


def join_texts(parts: Iterable[str]) -> str:
    """Join texts with spaces, or without between characters of scripts that are written without spaces.

    Text of such a script that is tokenised, as in corpora, is joined with spaces too.
    """
    texts = [part for part in parts if part]
    characters, spaces = sum(map(len, texts)), sum(text.count(" ") for text in texts)
    if spaces * _SPACED >= characters:
        return " ".join(texts)
    return _JOINT.sub("", "\n".join(texts)).replace("\n", " ")


def _halves(text: str) -> tuple[str, str]:
    """Cut a text of at least two characters in two non-empty parts, at the best place in its middle half."""
    middle = len(text) // 2
    for pattern in _BREAKS:
        places = [
            (abs(match.start() - middle), match.start(), match.end())
            for match in pattern.finditer(text, len(text) // 4, len(text) - len(text) // 4)
        ]
        if places:
            _, start, end = min(places)
            if text[:start].strip() and text[end:].strip():
                return text[:start], text[end:]
    return text[:middle], text[middle:]
