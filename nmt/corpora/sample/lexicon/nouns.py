"""Nouns by group, the compounds that German makes of them, and the adjectives that suit them."""

from functools import cache
from typing import NamedTuple

from nmt.corpora.sample.lexicon import ENTRIES
from nmt.corpora.sample.lexicon.function_words import Case


class Noun(NamedTuple):
    """A noun; an English noun of several words (``kitchen table``) is one German compound (``Küchentisch``)."""

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    weak: bool
    group: str

    def inflect(self, case: Case, plural: bool) -> str:
        """Return the German form: dative plurals end in *-n* or *-s*, weak nouns in *-n* outside the nominative."""
        if plural:
            needs_n = case == "dat" and self.german_plural[-1] not in "ns"
            return self.german_plural + "n" * needs_n
        return self.german_plural if self.weak and case != "nom" else self.german


def _noun(entry: str, group: str) -> Noun:
    """Parse one dictionary entry, as ``"man men m Mann Männer"``."""
    english, plural, gender, german, german_plural = entry.split()
    weak = gender == "w"
    return Noun(english, plural.strip("-"), "m" if weak else gender, german, german_plural.strip("-"), weak, group)


def _compound(modifier: str, prefix: str, head: Noun) -> Noun:
    """Join a modifier to its head: ``kitchen`` + ``table`` -> ``Küchentisch``."""
    return head._replace(
        english=f"{modifier} {head.english}",
        english_plural=head.english_plural and f"{modifier} {head.english_plural}",
        german=prefix + head.german.lower(),
        german_plural=head.german_plural and prefix + head.german_plural.lower(),
    )


def _read_nouns() -> dict[str, Noun]:
    """Return every noun by its English singular, simple nouns first."""
    simple = [_noun(entry, group) for group, entries in ENTRIES["nouns"].items() for entry in entries.split(",")]
    heads = {noun.english: noun for noun in simple}
    parts = {modifier: entry.split() for modifier, entry in ENTRIES["compounds"].items()}
    compounds = [
        _compound(modifier, prefix, heads[head]) for modifier, (prefix, *names) in parts.items() for head in names
    ]
    return heads | {noun.english: noun for noun in compounds}


NOUNS = _read_nouns()


def nouns(names: str) -> tuple[Noun, ...]:
    """Return the nouns of groups (``food``) or by head (``cake``: also ``apple cake``), each once, in order."""
    keys = names.split()
    return tuple(noun for noun in NOUNS.values() if noun.group in keys or noun.english.split()[-1] in keys)


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
