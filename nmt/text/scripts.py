"""Where words and sentences end in scripts without spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from itertools import islice

Split = Callable[[str], list[str]]

_EAST_ASIAN = (
    "\u3001-\u312f\u31f0-\u31ff\uff01-\uff9f"  # kana, bopomofo and the punctuation of East Asia
    "\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters and their radicals
)
UNSPACED = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    f"{_EAST_ASIAN}"
)
"""Characters of these scripts, as the inside of a regular expression's brackets."""
_ENDS_EAST_ASIAN = re.compile(f"[{_EAST_ASIAN}][\"'”’)]*$")
_BEGINS_EAST_ASIAN = re.compile(f"[\"'“‘(]*[{_EAST_ASIAN}]")
_CHARACTER = re.compile(f"[{UNSPACED}]")
_SPACE = re.compile(f"(?<=[{UNSPACED}])[^\\S\\n]+(?=[{UNSPACED}])")
_MARKS = "".join(mark for mark in map(chr, range(0x0E00, 0x3100)) if unicodedata.category(mark).startswith("M"))
_WORD = re.compile(f"[{UNSPACED}][{_MARKS}]*|[^{UNSPACED}\\s]+")
_LINES = 10_000
"""How many lines are read to tell whether a text is written without spaces."""
_CHARACTERS_PER_SPACE = 8
"""Tokenized Thai and Khmer have a space every 5 characters, Japanese every 3; Thai as it is written has one every 15 or more."""


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script without spaces between words."""
    return _CHARACTER.match(character) is not None


def lacks_spaces(text: str) -> bool:
    """Whether most of a text is in a script without spaces, and has not been tokenized."""
    unspaced = len(_CHARACTER.findall(text))
    spaces = len(_SPACE.findall(text))
    return 2 * unspaced > len("".join(text.split())) and _CHARACTERS_PER_SPACE * spaces < unspaced


def splitter(lines: Iterable[str]) -> Split:
    """Choose how to split the lines of a text into words: at spaces, or into characters if the text lacks spaces."""
    return split_characters if lacks_spaces("\n".join(islice(lines, _LINES))) else split_spaces


def split_spaces(line: str) -> list[str]:
    """Split a line at U+0020 and tabs alone, as programs that number words do."""
    return [word for word in line.replace("\t", " ").split(" ") if word]


def split_characters(line: str) -> list[str]:
    """Split a line into the single characters (with their marks) of scripts without spaces, and the words of others."""
    return _WORD.findall(line)


def join_texts(texts: Iterable[str]) -> str:
    """Join sentences, or parts of a line, as their script does: beside Chinese and Japanese characters without a space, else with one.

    Thai, Lao, Khmer, Burmese and Tibetan have no space between words, but one between sentences. Tokenized text has one everywhere,
    and text with many spaces, such as English with some Chinese names, beside other characters.
    """
    texts = [text for text in texts if text]
    plain = "".join(texts)
    is_tokenized = _CHARACTERS_PER_SPACE * len(_SPACE.findall(plain)) >= len(plain)
    beside = all if _CHARACTERS_PER_SPACE * plain.count(" ") >= len(plain) else any
    joined = "".join(texts[:1])
    for text in texts[1:]:
        is_near = beside((_ENDS_EAST_ASIAN.search(joined[-4:]), _BEGINS_EAST_ASIAN.match(text)))
        joined += text if is_near and not is_tokenized else f" {text}"
    return joined


def word_spans(parts: Iterable[str]) -> list[tuple[int, int]]:
    """The words of `split_characters` that each part of a line overlaps, as (first, last + 1).

    An empty part belongs to the word before it. A part of only spaces gets (0, 0).
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
