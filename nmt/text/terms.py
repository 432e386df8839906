"""Where terms occur in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from nmt.text.scripts import lacks_spaces


@lru_cache(maxsize=1000)
def whole_words(terms: tuple[str, ...]) -> re.Pattern[str] | None:
    """A pattern of terms as whole words, the longest first; None if there are no terms."""
    longest_first = sorted(filter(None, terms), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)") if longest_first else None


def find_term(term: str, text: str) -> list[tuple[int, int]]:
    """Where a term begins and ends each time that it occurs; in text written without spaces, anywhere."""
    pattern = re.compile(re.escape(term)) if lacks_spaces(text) else whole_words((term,))
    return [match.span() for match in pattern.finditer(text)] if pattern else []


def join_words(words: Sequence[str]) -> tuple[str, list[int]]:
    """The text of words, and the index of the word that each of its characters belongs to (-1 for a space)."""
    space = "" if lacks_spaces("".join(words)) else " "
    text = space.join(words)
    owners = [index for index, word in enumerate(words) for index in (*[index] * len(word), *[-1] * len(space))]
    return text, owners[: len(text)]
