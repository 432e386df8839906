"""Draws phrases: who does what to whom, where, when and how."""

import calendar
import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from nmt.corpora.sample.grammar.noun_phrases import Nominal, noun_phrase, prepositional, pronominal
from nmt.corpora.sample.grammar.numerals import clock, date, english_number, german_number
from nmt.corpora.sample.grammar.phrases import NOTHING, Mark, Phrase, Word, aligned
from nmt.corpora.sample.grammar.predicates import Tense
from nmt.corpora.sample.lexicon import expressions, function_words, verbs
from nmt.corpora.sample.lexicon.function_words import Agreement, Case, Determiner, Modal
from nmt.corpora.sample.lexicon.nouns import Noun, adjectives, nouns
from nmt.corpora.sample.lexicon.verbs import Slots, Verb

T = TypeVar("T")
PEOPLE = ("name", "person", "family")
OTHERS = ("he", "she", "we", "they")
PLACES = ("room", "building", "outdoors", "spot")
COMPANY = nouns("name person family")
RECEIVERS = nouns("person family")


class Subject(NamedTuple):
    """A subject, what the verb agrees with, and the pronouns: the one it is (if any) and the one that resumes it."""

    phrase: Phrase
    agreement: Agreement = "sg3"
    pronoun: str = ""
    echo: str = ""
    noun: Noun | None = None
    definite: bool = True


class PhraseAuthor:
    """Draws the phrases of a clause: subject, objects, places, times and manners that make sense."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.detail = 0.3  # how readily phrases grow: lower inside long sentences

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self.rng.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Choose one of the items; quicker than random.choice, and stable between Python versions."""
        return items[int(self.rng.random() * len(items))]

    # ------------------------------------------------------------------------------------------------- noun phrases

    def nominal(self, noun: Noun, definite: bool = False, number: bool = False) -> Nominal:
        """Plan a noun phrase: relatives belong to somebody, names stand bare, substances need no article."""
        if noun.group in ("name", "place"):
            return Nominal(noun)
        adjective = self.pick(adjectives(noun.group)) if self.chance(self.detail) else None
        if noun.group == "family":
            plural = bool(noun.german_plural) and self.chance(0.25)
            size = self.rng.randrange(2, 5) if plural and self.chance(0.3) else None
            return Nominal(noun, self.pick(function_words.POSSESSIVES), adjective, plural, size)
        if not noun.german_plural:
            return Nominal(noun, function_words.THE if definite or self.chance(0.35) else None, adjective)
        if number and self.chance(0.15):
            size = self.rng.randrange(2, 21 if noun.group == "food" else 10)
            return Nominal(noun, None, adjective, True, size)
        plural = noun.group not in PLACES and self.chance(0.25)
        return Nominal(noun, self.determiner(noun, definite, plural), adjective, plural)

    def determiner(self, noun: Noun, definite: bool, plural: bool) -> Determiner | None:
        """Choose an article; people, who are nobody's, take no possessive, and the indefinite plural has none."""
        dice = self.rng.random()
        if dice < 0.3 and not definite:
            return None if plural else function_words.A
        if dice < 0.45 and noun.group not in ("person", "building", "outdoors", "spot"):
            return self.pick(function_words.POSSESSIVES)
        return function_words.THIS if 0.45 < dice < 0.5 else function_words.THE

    def subject(self, verb: Verb, definite: bool, in_question: bool = False) -> Subject:
        """Choose a subject: a pronoun if people can be, else one of the verb's nouns."""
        if verb.human and self.chance(0.35):
            pronoun = function_words.PRONOUNS[self.pick(OTHERS if in_question else ("I", "I", *OTHERS))]
            return Subject(pronominal(pronoun, "nom"), pronoun.agreement, pronoun.subject, pronoun.subject)
        timeless = verb in (verbs.BE, verbs.COST)
        plan = self.nominal(self.pick(verb.subjects), definite=definite or timeless or self.chance(0.7))
        return self.introduce(plan._replace(adjective=None) if verb is verbs.BE else plan)

    def introduce(self, plan: Nominal) -> Subject:
        """Make a noun phrase the subject; only people are resumed by a pronoun, and a child's would be *it*."""
        people = plan.noun.group in PEOPLE and plan.noun.english != "child"
        single = "she" if plan.noun.gender == "f" or plan.noun.english == "girl" else "he"
        echo = ("they" if plan.plural else single) if people else ""
        agreement: Agreement = "pl" if plan.plural else "sg3"
        return Subject(noun_phrase(plan, "nom"), agreement, "", echo, plan.noun, plan.definite)

    def resume(self, subject: Subject) -> Subject | None:
        """Take a subject up again by its pronoun."""
        if not subject.echo:
            return None
        pronoun = function_words.PRONOUNS[subject.echo]
        return Subject(pronominal(pronoun, "nom"), pronoun.agreement, subject.echo, subject.echo)

    # ------------------------------------------------------------------------------------------------ verb arguments

    def person(self, subject: Subject, case: Case, pronouns: bool, people: Sequence[Noun]) -> Phrase:
        """Choose a person as object: a pronoun, unless it would be reflexive, or a definite noun phrase."""
        if pronouns and self.chance(0.4):
            excluded = ("I", "we") if subject.pronoun in ("I", "we") else (subject.pronoun,)
            options = [pronoun for pronoun in function_words.PRONOUNS.values() if pronoun.subject not in excluded]
            return pronominal(self.pick(options), case)
        return noun_phrase(self.nominal(self.pick(people), definite=True), case)

    def objects(self, verb: Verb, subject: Subject, negation: Mark | None, pronouns: bool) -> tuple[Phrase, Phrase]:
        """Return the early and the late objects; pronouns are early, and an accusative one precedes the dative.

        ``gives him a book`` -> ``gibt ihm`` | ``ein Buch``; ``shows them to the man`` -> ``zeigt sie dem Mann`` |.
        """
        noun = self.pick(verb.objects)
        if noun.group in PEOPLE and verb.english_particle != "up":
            return self.person(subject, verb.case, pronouns, COMPANY), NOTHING
        early = NOTHING
        if verb.recipient:
            if negation is None and self.chance(0.15):
                return self.handed_over(), NOTHING
            early = self.person(subject, "dat", pronouns, RECEIVERS)
        plan = self.nominal(noun, number=negation is None)
        if verb is verbs.HAVE and plan.definite:
            plan = plan._replace(determiner=None if plan.plural else function_words.A)
        phrase = self.governed(verb, plan, None if plan.definite else negation)
        return (early.then(phrase), NOTHING) if plan.definite else (early, phrase)

    def governed(self, verb: Verb, plan: Nominal, negation: Mark | None) -> Phrase:
        """Put an object into the case that its verb governs, and note the combination of the two."""
        phrase = noun_phrase(plan, verb.case, negation)
        return phrase._replace(combinations=(*phrase.combinations, ("object", verb.lemma, plan.noun.english)))

    def handed_over(self) -> Phrase:
        """``them to the man`` -> ``sie dem Mann``: the dative says what English says with *to*."""
        noun = self.pick(RECEIVERS)
        receiver = noun_phrase(self.nominal(noun, definite=True), "dat")
        to = Phrase((Word("to", receiver.german[0].marks),))
        return pronominal(function_words.PRONOUNS["they"], "acc").then(to).then(receiver)

    def slot(self, slots: Slots) -> Phrase:
        """Choose a preposition and its noun: mostly definite, as places are known."""
        preposition, places = self.pick(slots)
        return prepositional(preposition, self.nominal(self.pick(places), definite=self.chance(0.9)))

    def manner(self, verb: Verb) -> Phrase:
        """Choose an adverb, a means of transport or company: ``with my sister`` -> ``mit meiner Schwester``."""
        kind = self.pick(verb.manner)
        if kind in expressions.MANNERS:
            return aligned(expressions.MANNERS[kind])
        noun = self.pick(COMPANY)
        return prepositional(function_words.PREPOSITIONS[kind], self.nominal(noun, definite=True))

    def date(self) -> Phrase:
        """Choose a day of the year, which has 366."""
        month = self.rng.randrange(1, 13)
        day = self.rng.randrange(1, 1 + calendar.monthrange(2024, month)[1])
        return date(day, list(expressions.MONTHS)[month - 1])

    def time(self, verb: Verb, tense: Tense, negated: bool) -> Phrase:
        """Choose a time that the tense allows; a negated clause takes none that would be in its scope."""
        dice = self.rng.random()
        if tense == "past":
            return self.date() if dice < 0.3 else aligned(self.pick(expressions.YESTERDAY * 4 + expressions.ON_WEEKDAY))
        if tense == "perfect":
            return aligned(self.pick(expressions.TODAY + expressions.THIS_WEEK))
        if not verb.perfect:
            return aligned(self.pick(expressions.NOW))
        if dice < 0.2 and (verb.auxiliary == "ist" or isinstance(tense, Modal)):
            return self.date()
        if dice < 0.35 and not negated:
            return clock(self.rng.randrange(1, 13))
        if dice < 0.65 and not negated:
            return aligned(self.pick(expressions.HABIT))
        later = expressions.TOMORROW if isinstance(tense, Modal) else ()
        return aligned(self.pick(expressions.TODAY[:1] * 3 + later * 4 + expressions.ON_WEEKDAY))

    def price(self) -> Phrase:
        """``twenty-three euros`` -> ``dreiundzwanzig Euro``."""
        number = self.rng.randrange(2, 100)
        return aligned(f"{english_number(number)}/a euros/b = {german_number(number)}/a Euro/b")

    def age(self) -> Phrase:
        """``twenty-three years old`` -> ``dreiundzwanzig Jahre alt``."""
        number = self.rng.randrange(2, 100)
        return aligned(f"{english_number(number)}/a years/b old/c = {german_number(number)}/a Jahre/b alt/c")
