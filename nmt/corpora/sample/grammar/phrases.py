"""Words with marks, phrases in both languages, and the sentence that is written of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

Mark = object
Combination = tuple[str, str, str]


class Word(NamedTuple):
    """A word of either language and the marks of the meanings that it expresses."""

    text: str
    marks: frozenset[Mark]


Words = tuple[Word, ...]


class Phrase(NamedTuple):
    """A piece of a sentence in both languages, and the lexical combinations that occur in it."""

    english: Words = ()
    german: Words = ()
    combinations: tuple[Combination, ...] = ()

    def then(self, other: Phrase) -> Phrase:
        """Put another phrase behind this one in both languages."""
        return Phrase(self.english + other.english, self.german + other.german, self.combinations + other.combinations)


NOTHING = Phrase()
Plan = tuple[Phrase, str]  # a sentence and its final sign


def spell(text: str, *marks: Mark) -> Words:
    """Return a word with its marks; an empty text is no word."""
    return (Word(text, frozenset(marks)),) if text else ()


def translation(english: str, german: str) -> Phrase:
    """Return a word of each language that translate each other; an empty text is no word."""
    mark = object()
    return Phrase(spell(english, mark), spell(german, mark))


def fuse(text: str, *parts: Word) -> Words:
    """Return one word that stands for several: ``in`` and ``dem`` -> ``im``."""
    return (Word(text, frozenset().union(*(part.marks for part in parts))),)


@functools.cache
def parse(entry: str) -> tuple[list[tuple[str, str]], ...]:
    """Read both sides of a fixed phrase: words, each with the letters that stand for its marks."""
    sides = ((word.partition("/") for word in side.split()) for side in entry.split(" = "))
    return tuple([(word, letters) for word, _, letters in side] for side in sides)


def aligned(entry: str) -> Phrase:
    """Build a fixed phrase of the lexicon, with marks of its own: ``"in/a the/b evening/c = am/ab Abend/c"``."""
    marks: dict[str, Mark] = {letter: object() for letter in "abcd"}
    english, german = (
        tuple([Word(word, frozenset([marks[letter] for letter in letters])) for word, letters in side])
        for side in parse(entry)
    )
    return Phrase(english, german)


def punctuate(words: Words, sign: str) -> Words:
    """Attach a punctuation mark to the last word."""
    last = words[-1]
    return (*words[:-1], Word(last.text + sign, last.marks))


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, its translation and the links between their whitespace-separated words, counted from 0."""

    source: str
    target: str
    links: frozenset[tuple[int, int]]


def write(phrase: Phrase, sign: str = ".") -> Example:
    """Write a sentence out: capital letter, final sign, and a link for every two words that share a mark."""
    source, target = punctuate(phrase.english, sign), punctuate(phrase.german, sign)
    positions: dict[Mark, list[int]] = {}
    for position, word in enumerate(target):
        for mark in word.marks:
            positions.setdefault(mark, []).append(position)
    links = frozenset([(i, j) for i, word in enumerate(source) for mark in word.marks for j in positions.get(mark, ())])
    return Example(capitalize(source), capitalize(target), links)


def capitalize(words: Words) -> str:
    """Join words to a text that begins with a capital letter."""
    text = " ".join([word.text for word in words])
    return text[0].upper() + text[1:]
