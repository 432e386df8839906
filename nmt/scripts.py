"""Text that is written without spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from itertools import islice

Split = Callable[[str], list[str]]

UNSPACED = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3001-\u312f\u31f0-\u31ff\uff01-\uff9f"  # kana, bopomofo and the punctuation of East Asia
    "\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters and their radicals
)
"""Characters of such scripts, as the inside of a regular expression's brackets."""
_CHARACTER = re.compile(f"[{UNSPACED}]")
_SPACE = re.compile(f"(?<=[{UNSPACED}])[^\\S\\n]+(?=[{UNSPACED}])")
_MARKS = "".join(mark for mark in map(chr, range(0x0E00, 0x3100)) if unicodedata.category(mark).startswith("M"))
_WORD = re.compile(f"[{UNSPACED}][{_MARKS}]*|[^{UNSPACED}\\s]+")
_LINES = 10_000
"""How many lines tell whether a text is written without spaces."""
_CHARACTERS_PER_SPACE = 8
"""Tokenised Thai and Khmer have a space every 5 characters, Japanese every 3; Thai as it is written has one every 15 or more."""


def is_unspaced(character: str) -> bool:
    """Whether a character is of a script that has no spaces between words."""
    return _CHARACTER.match(character) is not None


def lacks_spaces(text: str) -> bool:
    """Whether most of a text is in such a script, and without the spaces that a tokeniser has put into it."""
    unspaced = len(_CHARACTER.findall(text))
    spaces = len(_SPACE.findall(text))
    return 2 * unspaced > len("".join(text.split())) and _CHARACTERS_PER_SPACE * spaces < unspaced


def splitter(lines: Iterable[str]) -> Split:
    """What splits the lines of a text into words: at spaces, or into characters where the text as a whole lacks spaces."""
    return split_characters if lacks_spaces("\n".join(islice(lines, _LINES))) else str.split


def split_characters(line: str) -> list[str]:
    """The characters of scripts without spaces, with their marks, and what spaces separate of other scripts."""
    return _WORD.findall(line)


def word_spans(parts: Iterable[str]) -> list[tuple[int, int]]:
    """For each part of a line, the first word of `split_characters` that it touches, and the one after the last.

    An empty part belongs to the word before it, one of nothing but spaces to none.
    """
    parts = list(parts)
    line = "".join(parts)
    word_at = [-1] * len(line)
    for number, match in enumerate(_WORD.finditer(line)):
        word_at[match.start() : match.end()] = [number] * len(match[0])
    spans, end = [], 0
    for part in parts:
        start, end = end, end + len(part)
        words = [word for word in word_at[start if part else max(start - 1, 0) : max(end, 1)] if word >= 0]
        spans.append((words[0], words[-1] + 1) if words else (0, 0))
    return spans
