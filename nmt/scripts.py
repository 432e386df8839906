"""Text that is written without spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan."""

import re

_UNSPACED = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3001-\u30ff\u31f0-\u31ff\uff01-\uff9f"  # kana and the punctuation of East Asia
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
_CHARACTER = re.compile(f"[{_UNSPACED}]")
_SPACE = re.compile(f"(?<=[{_UNSPACED}])[^\\S\\n]+(?=[{_UNSPACED}])")
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
