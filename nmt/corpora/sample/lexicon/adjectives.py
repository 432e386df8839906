"""Adjectives, and which go with which group of nouns."""

from functools import cache
from typing import NamedTuple

from nmt.corpora.sample.lexicon.entries import ENTRIES


class Adjective(NamedTuple):
    """An adjective: its English form, German predicate form (``teuer``) and the stem that takes endings (``teur-``)."""

    english: str
    german: str
    stem: str


ADJECTIVES = {
    words[0]: Adjective(words[0], words[1], words[-1])
    for words in (entry.split() for entry in ENTRIES["adjectives"].split(","))
}
CHANGING = ("tired", "hungry", "happy", "sad", "ill")  # the adjectives that may be true today only


@cache
def adjectives(group: str) -> tuple[Adjective, ...]:
    """Return the adjectives that go with a group of nouns."""
    return tuple(ADJECTIVES[name] for name in ENTRIES["adjectives_of"].get(group, "").split())
