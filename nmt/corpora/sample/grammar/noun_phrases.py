"""Noun phrases in a case: articles, numbers, adjectives, prepositions, pronouns."""

from typing import NamedTuple

from nmt.corpora.sample.grammar.numerals import english_number, german_number
from nmt.corpora.sample.grammar.phrases import NOTHING, Mark, Phrase, Word, fuse, spell, translation
from nmt.corpora.sample.lexicon import function_words
from nmt.corpora.sample.lexicon.function_words import Case, Determiner, Endings, Preposition, Pronoun
from nmt.corpora.sample.lexicon.nouns import Adjective, Noun


class Nominal(NamedTuple):
    """The plan of a noun phrase: ``my two old dogs``."""

    noun: Noun
    determiner: Determiner | None = None
    adjective: Adjective | None = None
    plural: bool = False
    number: int | None = None

    @property
    def definite(self) -> bool:
        """Names and phrases with *the*, *this* or a possessive are definite: they stand early in a German clause."""
        return self.determiner not in (None, function_words.A) or self.noun.group in ("name", "place")

    @property
    def column(self) -> str:
        """The column of the ending tables: the gender, or the plural that has none."""
        return "p" if self.plural else self.noun.gender


def determine(nominal: Nominal, case: Case, negation: Mark | None) -> tuple[Phrase, Endings]:
    """Return the article and the endings it leaves to adjectives; a negated indefinite takes *kein*.

    ``the`` + Hund, accusative -> ``den``; ``not`` ... ``a`` + Hund -> ``keinen``; milk alone -> no article.
    """
    mark, key = object(), (case, nominal.column)
    determiner = nominal.determiner
    english = spell(determiner.plural if nominal.plural else determiner.english, mark) if determiner else ()
    if negation is not None:
        determiner = function_words.NO
    elif determiner is None or (determiner is function_words.A and nominal.plural):
        return Phrase(), function_words.STRONG
    marks = [mark] * bool(english) + [negation] * (negation is not None)
    return Phrase(english, spell(determiner.stem + determiner.own[key], *marks)), determiner.adjective


def qualify(nominal: Nominal, case: Case, endings: Endings) -> Phrase:
    """Return number and adjective, the adjective inflected: ``two old`` -> ``zwei alte``."""
    number, adjective = nominal.number, nominal.adjective
    phrase = translation(english_number(number), german_number(number)) if number else NOTHING
    if adjective is None:
        return phrase
    form = adjective.stem + endings[case, nominal.column]
    combination = ("adjective", adjective.english, nominal.noun.english)
    return phrase.then(translation(adjective.english, form))._replace(combinations=(combination,))


def name(nominal: Nominal, case: Case) -> Phrase:
    """Return the bare noun; each part of an English compound is linked to the one German word."""
    noun = nominal.noun
    parts = [(word, object()) for word in (noun.english_plural if nominal.plural else noun.english).split()]
    english = tuple(Word(word, frozenset([mark])) for word, mark in parts)
    return Phrase(english, spell(noun.inflect(case, nominal.plural), *(mark for _, mark in parts)))


def noun_phrase(nominal: Nominal, case: Case, negation: Mark | None = None) -> Phrase:
    """Build a noun phrase in a case: ``an old dog`` -> ``ein alter Hund``, ``einen alten Hund``, ``einem alten ...``."""
    article, endings = determine(nominal, case, negation)
    phrase = article.then(qualify(nominal, case, endings)).then(name(nominal, case))
    first, *rest = phrase.english
    if first.text == "a" and rest[0].text[0] in "aeiou":
        return phrase._replace(english=(Word("an", first.marks), *rest))
    return phrase


def prepositional(preposition: Preposition, nominal: Nominal) -> Phrase:
    """Let a preposition govern its case and fuse with the article: ``in the garden`` -> ``im Garten``."""
    phrase = noun_phrase(nominal, preposition.case)
    head = translation(preposition.english, preposition.german)
    contraction = function_words.CONTRACTIONS.get((preposition.german, phrase.german[0].text))
    if contraction is None:
        return head.then(phrase)
    german = fuse(contraction, *head.german, phrase.german[0]) + phrase.german[1:]
    return Phrase(head.english + phrase.english, german, phrase.combinations)


def pronominal(pronoun: Pronoun, case: Case) -> Phrase:
    """``he`` -> ``er``; ``him`` -> ``ihn`` or ``ihm``."""
    english = pronoun.subject if case == "nom" else pronoun.object
    german = {"nom": pronoun.nom, "acc": pronoun.acc, "dat": pronoun.dat}[case]
    return translation(english, german)
