"""Clauses in the word order of each language, and sentences made of them."""

from __future__ import annotations

from typing import NamedTuple

from nmt.corpora.sample.grammar.phrases import NOTHING, Combination, Phrase, Words, fuse, punctuate, translation
from nmt.corpora.sample.grammar.predicates import Predicate, Tense, compound_predicate, simple_predicate
from nmt.corpora.sample.lexicon.function_words import Agreement, Modal
from nmt.corpora.sample.lexicon.verbs import Verb


class Clause(NamedTuple):
    """A clause without its word order. The fields stand in the order of the German middle field.

    Pronouns and definite objects come early and indefinite ones late, with time, negation or frequency, manner and
    place between them: ``hat`` das Buch / heute / nicht / langsam / im Garten ``gelesen``.
    """

    subject: Phrase
    agreement: Agreement
    verb: Verb
    tense: Tense
    early: Phrase = NOTHING
    time: Phrase = NOTHING
    adverb: Phrase = NOTHING
    manner: Phrase = NOTHING
    place: Phrase = NOTHING
    late: Phrase = NOTHING
    complement: Phrase = NOTHING

    @property
    def middle(self) -> tuple[Phrase, ...]:
        """The German middle field, in order."""
        return (self.early, self.time, self.adverb, self.manner, self.place, self.late, self.complement)

    @property
    def negated(self) -> bool:
        """Whether the clause contains *not*, whose German may be *nicht* or the *k-* of *kein*."""
        return bool(self.adverb.english) and self.adverb.english[0].text == "not"

    def predicate(self, support: bool) -> Predicate:
        """Inflect the verb; with ``support``, English needs an operator."""
        if self.tense in ("present", "past"):
            return simple_predicate(self.verb, self.tense == "past", self.agreement, support)
        return compound_predicate(self.verb, self.tense, self.agreement, support)

    def combination(self, construction: str) -> Combination:
        """Name the verb together with its tense and the construction that it stands in."""
        tense = self.tense.english if isinstance(self.tense, Modal) else self.tense
        return ("verb", self.verb.lemma, f"{tense} {construction}")


def english_order(clause: Clause, predicate: Predicate, inverted: bool) -> Words:
    """Subject, verb, objects, complement, manner, place, time; inversion puts the operator before the subject."""
    operator, subject, adverb = predicate.operator, clause.subject.english, clause.adverb.english
    if inverted:
        head = operator + subject + adverb
    elif clause.negated and operator[0].text == "can":
        head = subject + fuse("cannot", *operator, *adverb)
    else:
        head = subject + operator + adverb
    tail = (clause.early, clause.late, clause.complement, clause.manner, clause.place, clause.time)
    return sum((phrase.english for phrase in tail), head + predicate.main)


def german_order(clause: Clause, predicate: Predicate, verb: str) -> Words:
    """Put the finite verb ``first``, ``second`` or ``last``; a particle that meets it there joins it (``aufmacht``)."""
    subject, finite, closing = clause.subject.german, predicate.finite, predicate.closing
    middle: Words = sum((phrase.german for phrase in clause.middle), ())
    if verb == "first":
        return finite + subject + middle + closing
    if verb == "second":
        return subject + finite + middle + closing
    if closing and clause.tense == "present":
        return subject + middle + fuse(closing[0].text + finite[0].text, *closing, *finite)
    return subject + middle + closing + finite


def realize(clause: Clause, construction: str, inverted: bool, verb: str) -> Phrase:
    """Put a clause into words, in one word order for each language."""
    predicate = clause.predicate(support=inverted or clause.negated)
    combinations = sum((phrase.combinations for phrase in clause.middle), clause.subject.combinations)
    return Phrase(
        english_order(clause, predicate, inverted),
        german_order(clause, predicate, verb),
        (*combinations, clause.combination(construction)),
    )


def statement(clause: Clause) -> Phrase:
    """Verb-second: ``The dog sleeps.`` -> ``Der Hund schläft.``"""
    return realize(clause, "statement", inverted=False, verb="second")


def fronted(front: Phrase, clause: Clause) -> Phrase:
    """A phrase takes the first place and the subject follows the verb: ``Heute schläft der Hund.``"""
    return front.then(realize(clause, "fronted", inverted=False, verb="first"))


def question(clause: Clause, word: Phrase = NOTHING) -> Phrase:
    """Verb-first, or verb-second behind a question word: ``Schläft der Hund?``, ``Wo schläft der Hund?``"""
    return word.then(realize(clause, "question", inverted=True, verb="first"))


def subordinate(conjunction: str, clause: Clause) -> Phrase:
    """Verb-last behind a conjunction: ``weil der Hund schläft``."""
    english, german = conjunction.split()
    return translation(english, german).then(realize(clause, german, inverted=False, verb="last"))


def complex_sentence(main: Phrase, dependent: Phrase) -> Phrase:
    """Main clause first; only German has a comma: ``He sleeps because he is tired`` -> ``Er schläft, weil ...``."""
    return main._replace(german=punctuate(main.german, ",")).then(dependent)


def periodic_sentence(dependent: Phrase, clause: Clause) -> Phrase:
    """Dependent clause first, in the first place of the main clause: ``Wenn er müde ist, schläft er.``"""
    english, german, combinations = dependent
    return fronted(Phrase(punctuate(english, ","), punctuate(german, ","), combinations), clause)


def coordination(conjunction: str, left: Phrase, right: Phrase) -> Phrase:
    """Join two main clauses; both languages have a comma before ``but`` -> ``aber``."""
    if conjunction.startswith("but"):
        left = left._replace(english=punctuate(left.english, ","), german=punctuate(left.german, ","))
    return left.then(translation(*conjunction.split())).then(right)
