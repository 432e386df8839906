"""A sample English-German corpus, generated from a small bilingual grammar written for this project.

A sentence is built once, in both languages at the same time. The building block is the :class:`Phrase`: its English
words and its German words, each in its own order. Every word carries *marks*, one for each piece of meaning that it
expresses, and two words translate each other when they share a mark. A word that fuses several pieces of meaning
carries all of their marks, and that one rule accounts for

* compounds, ``kitchen table`` -> ``Küchentisch``, and contractions, ``in the`` -> ``im``;
* separable verbs, ``opens`` -> ``macht`` ... ``auf``, and their fused forms, ``..., weil er die Tür aufmacht``;
* ``not ... a`` -> ``kein``; and do-support, where ``does`` bears the finiteness of the German verb.

So the word links of an :class:`Example` are never guessed from the finished sentence: they hold by construction.

The mapping from English to German is a function: equal sources have equal targets. The held-out splits test
composition. A deterministic hash *reserves* one in twelve combinations: of an adjective with a noun, a verb with an
object, or a verb with a tense and a clause type. No training sentence contains a reserved combination, every held-out
sentence contains one, and all words of a held-out sentence are familiar from training.
"""

from __future__ import annotations

import calendar
import functools
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from nmt.data import sample_lexicon as lexicon
from nmt.data.sample_lexicon import (
    Adjective,
    Agreement,
    Case,
    Determiner,
    Endings,
    Modal,
    Noun,
    Preposition,
    Pronoun,
    Verb,
)

SPLITS: tuple[str, ...] = ("train", "valid", "test")
SIZES = {"train": 24_000, "valid": 500, "test": 1_000}
SEED = 1514
RESERVED_ONE_IN = 12
FAMILIAR = 8  # how often the training split must contain every word of a held-out sentence
LENGTHS = range(4, 17)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, its translation and the links between their whitespace-separated words, counted from 0."""

    source: str
    target: str
    links: frozenset[tuple[int, int]]


# ------------------------------------------------------------------------------------------------ words and phrases

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


# ---------------------------------------------------------------------------------------------------------- numbers


def english_number(number: int) -> str:
    """Spell 1 to 99: ``twenty-three``."""
    if number < 20:
        return lexicon.ENGLISH_ONES[number - 1]
    tens, ones = divmod(number, 10)
    return lexicon.ENGLISH_TENS[tens - 2] + (f"-{lexicon.ENGLISH_ONES[ones - 1]}" if ones else "")


def german_number(number: int) -> str:
    """Spell 1 to 99, the ones before the tens: ``dreiundzwanzig``."""
    if number < 20:
        return lexicon.GERMAN_ONES[number - 1]
    tens, ones = divmod(number, 10)
    return (f"{lexicon.GERMAN_ONES[ones - 1]}und" if ones else "") + lexicon.GERMAN_TENS[tens - 2]


def english_ordinal(number: int) -> str:
    """Spell an ordinal, which changes only the last part of the number: ``twenty-third``."""
    head, hyphen, last = english_number(number).rpartition("-")
    irregular = lexicon.ENGLISH_ORDINALS.get(number if number < 20 else number % 10)
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return head + hyphen + (irregular or regular)


def german_ordinal(number: int) -> str:
    """Spell an ordinal in the dative, with *-ten* below twenty and *-sten* from there: ``dreiundzwanzigsten``."""
    regular = german_number(number) + ("ten" if number < 20 else "sten")
    return lexicon.GERMAN_ORDINALS.get(number, regular)


def date(day: int, month: str) -> Phrase:
    """``on the third of May`` -> ``am dritten Mai``; *of* has no counterpart."""
    names = english_ordinal(day), month, german_ordinal(day), lexicon.MONTHS[month]
    return aligned("on/a the/b {}/c of/ {}/d = am/ab {}/c {}/d".format(*names))


def clock(hour: int) -> Phrase:
    """``at five o'clock`` -> ``um fünf Uhr``."""
    return aligned(f"at/a {english_number(hour)}/b o'clock/c = um/a {german_number(hour)}/b Uhr/c")


# ----------------------------------------------------------------------------------------------------- noun phrases


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
        return self.determiner not in (None, lexicon.A) or self.noun.group in ("name", "place")

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
        determiner = lexicon.NO
    elif determiner is None or (determiner is lexicon.A and nominal.plural):
        return Phrase(), lexicon.STRONG
    marks = [mark] * bool(english) + [negation] * (negation is not None)
    return Phrase(english, spell(determiner.stem + determiner.own[key], *marks)), determiner.adjective


def qualify(nominal: Nominal, case: Case, endings: Endings) -> Phrase:
    """Return number and adjective, the adjective inflected: ``two old`` -> ``zwei alte``."""
    number, adjective = object(), object()
    english: Words = ()
    german: Words = ()
    if nominal.number:
        english, german = spell(english_number(nominal.number), number), spell(german_number(nominal.number), number)
    if nominal.adjective is None:
        return Phrase(english, german)
    form = nominal.adjective.stem + endings[case, nominal.column]
    combination = ("adjective", nominal.adjective.english, nominal.noun.english)
    english += spell(nominal.adjective.english, adjective)
    return Phrase(english, german + spell(form, adjective), (combination,))


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
    mark = object()
    head = Phrase(spell(preposition.english, mark), spell(preposition.german, mark))
    contraction = lexicon.CONTRACTIONS.get((preposition.german, phrase.german[0].text))
    if contraction is None:
        return head.then(phrase)
    german = fuse(contraction, *head.german, phrase.german[0]) + phrase.german[1:]
    return Phrase(head.english + phrase.english, german, phrase.combinations)


def pronominal(pronoun: Pronoun, case: Case) -> Phrase:
    """``he`` -> ``er``; ``him`` -> ``ihn`` or ``ihm``."""
    mark = object()
    english = pronoun.subject if case == "nom" else pronoun.object
    german = {"nom": pronoun.nom, "acc": pronoun.acc, "dat": pronoun.dat}[case]
    return Phrase(spell(english, mark), spell(german, mark))


# ------------------------------------------------------------------------------------------------------------ verbs

Tense = str | Modal  # "present", "perfect", "past" (of be and have), or the modal verb that governs an infinitive


def english_finite(verb: Verb, agreement: Agreement) -> str:
    """Inflect the English present: ``I read``, ``she reads``, ``we are``."""
    if verb is lexicon.BE:
        return lexicon.ENGLISH_BE[agreement][0]
    return verb.third if agreement == "sg3" else verb.base


def german_finite(infinitive: str, third: str, agreement: Agreement) -> str:
    """Inflect the German present: ``ich lese``, ``sie liest``, ``wir lesen``."""
    if agreement == "sg3":
        return third
    if agreement == "pl":
        return lexicon.PLURAL.get(infinitive, infinitive)
    return lexicon.FIRST_PERSON.get(infinitive, infinitive.removesuffix("n"))


class Predicate(NamedTuple):
    """The verbal parts of a clause, in the places where the two languages keep them.

    English has an operator (an auxiliary that precedes the subject in questions) and a main verb; German has a finite
    verb, in second or last place, and a closing part at the end: ``has`` + ``opened``, ``hat`` + ``aufgemacht``.
    """

    operator: Words
    main: Words
    finite: Words
    closing: Words


def simple_predicate(verb: Verb, past: bool, agreement: Agreement, support: bool) -> Predicate:
    """Present, and past of be and have: ``opens`` -> ``macht`` + ``auf``, with support ``does`` + ``open``."""
    stem, particle = object(), object()
    finite_marks = [stem] if verb.particle else [stem, particle]
    main_marks = [stem] if verb.english_particle else [stem, particle]
    english, german = english_finite(verb, agreement), german_finite(verb.infinitive, verb.finite, agreement)
    auxiliary = "does" if agreement == "sg3" else "do"
    if past:
        german = lexicon.PAST[verb.infinitive][agreement == "pl"]
        english, auxiliary = (lexicon.ENGLISH_BE[agreement][1] if verb is lexicon.BE else "had"), "did"
    finite, closing = spell(german, *finite_marks), spell(verb.particle, particle)
    if verb is lexicon.BE:
        return Predicate(spell(english, stem), (), finite, closing)
    operator = spell(auxiliary, stem) if support else ()
    main = spell(verb.base if support else english, *main_marks) + spell(verb.english_particle, particle)
    return Predicate(operator, main, finite, closing)


def compound_predicate(verb: Verb, tense: Tense, agreement: Agreement, support: bool) -> Predicate:
    """Perfect and modals: ``has opened`` -> ``hat`` + ``aufgemacht``, ``must open`` -> ``muss`` + ``aufmachen``."""
    finite, stem, particle = object(), object(), object()
    main_marks = [stem] if verb.english_particle else [stem, particle]
    tail = spell(verb.english_particle, particle)
    if not isinstance(tense, Modal):
        german = {"hat": ("habe", "hat", "haben"), "ist": ("bin", "ist", "sind")}[verb.auxiliary]
        form = german[("sg1", "sg3", "pl").index(agreement)]
        operator, main = spell("has" if agreement == "sg3" else "have", finite), spell(verb.participle, *main_marks)
        return Predicate(operator, main + tail, spell(form, finite), spell(verb.perfect_form, stem, particle))
    german_modal = spell(tense.plural if agreement == "pl" else tense.singular, finite)
    closing = spell(verb.particle + verb.infinitive, stem, particle)
    main = spell(verb.base, *main_marks) + tail
    if tense.english != "want":
        return Predicate(spell(tense.english, finite), main, german_modal, closing)
    third = agreement == "sg3"
    want = spell("want" if support or not third else "wants", finite) + spell("to", stem)
    operator = spell("does" if third else "do", finite) if support else ()
    return Predicate(operator, want + main, german_modal, closing)


# ----------------------------------------------------------------------------------------------------------- clauses


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
    mark = object()
    phrase = realize(clause, german, inverted=False, verb="last")
    return Phrase(spell(english, mark), spell(german, mark)).then(phrase)


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
    english, german = conjunction.split()
    mark = object()
    return left.then(Phrase(spell(english, mark), spell(german, mark))).then(right)


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


# ------------------------------------------------------------------------------------------------------------ choice


class Subject(NamedTuple):
    """A subject, what the verb agrees with, and the pronouns: the one it is (if any) and the one that resumes it."""

    phrase: Phrase
    agreement: Agreement = "sg3"
    pronoun: str = ""
    echo: str = ""
    noun: Noun | None = None
    definite: bool = True


VERBS = (*lexicon.VERBS, *[lexicon.BE] * 8, *[lexicon.HAVE] * 3, *[lexicon.COST] * 5)
PEOPLE = ("name", "person", "family")
OTHERS = ("he", "she", "we", "they")
PLACES = ("room", "building", "outdoors", "spot")
COMPANY = lexicon.nouns("name person family")
RECEIVERS = lexicon.nouns("person family")


class Author:
    """Draws the plans of sentences that make sense, one at a time, and has the grammar above realize them."""

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
        adjective = self.pick(lexicon.adjectives(noun.group)) if self.chance(self.detail) else None
        if noun.group == "family":
            plural = bool(noun.german_plural) and self.chance(0.25)
            size = self.rng.randrange(2, 5) if plural and self.chance(0.3) else None
            return Nominal(noun, self.pick(lexicon.POSSESSIVES), adjective, plural, size)
        if not noun.german_plural:
            return Nominal(noun, lexicon.THE if definite or self.chance(0.35) else None, adjective)
        if number and self.chance(0.15):
            size = self.rng.randrange(2, 21 if noun.group == "food" else 10)
            return Nominal(noun, None, adjective, True, size)
        plural = noun.group not in PLACES and self.chance(0.25)
        return Nominal(noun, self.determiner(noun, definite, plural), adjective, plural)

    def determiner(self, noun: Noun, definite: bool, plural: bool) -> Determiner | None:
        """Choose an article; people, who are nobody's, take no possessive, and the indefinite plural has none."""
        dice = self.rng.random()
        if dice < 0.3 and not definite:
            return None if plural else lexicon.A
        if dice < 0.45 and noun.group not in ("person", "building", "outdoors", "spot"):
            return self.pick(lexicon.POSSESSIVES)
        return lexicon.THIS if 0.45 < dice < 0.5 else lexicon.THE

    def subject(self, verb: Verb, definite: bool, asked: bool = False) -> Subject:
        """Choose who does it: a pronoun where people can, else one of the nouns that the verb knows."""
        if verb.human and self.chance(0.35):
            pronoun = lexicon.PRONOUNS[self.pick(OTHERS if asked else ("I", "I", *OTHERS))]
            return Subject(pronominal(pronoun, "nom"), pronoun.agreement, pronoun.subject, pronoun.subject)
        timeless = verb in (lexicon.BE, lexicon.COST)
        plan = self.nominal(self.pick(verb.subjects), definite=definite or timeless or self.chance(0.7))
        return self.introduce(plan._replace(adjective=None) if verb is lexicon.BE else plan)

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
        pronoun = lexicon.PRONOUNS[subject.echo]
        return Subject(pronominal(pronoun, "nom"), pronoun.agreement, subject.echo, subject.echo)

    # ------------------------------------------------------------------------------------------------ verb arguments

    def person(self, subject: Subject, case: Case, pronouns: bool, people: Sequence[Noun]) -> Phrase:
        """Choose a person as object: a pronoun, unless it would be reflexive, or a definite noun phrase."""
        if pronouns and self.chance(0.4):
            excluded = ("I", "we") if subject.pronoun in ("I", "we") else (subject.pronoun,)
            options = [pronoun for pronoun in lexicon.PRONOUNS.values() if pronoun.subject not in excluded]
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
        if verb is lexicon.HAVE and plan.definite:
            plan = plan._replace(determiner=None if plan.plural else lexicon.A)
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
        return pronominal(lexicon.PRONOUNS["they"], "acc").then(to).then(receiver)

    def slot(self, slots: lexicon.Slots) -> Phrase:
        """Choose a preposition and its noun: mostly definite, as places are known."""
        preposition, nouns = self.pick(slots)
        return prepositional(preposition, self.nominal(self.pick(nouns), definite=self.chance(0.9)))

    def manner(self, verb: Verb) -> Phrase:
        """Choose an adverb, a means of transport or company: ``with my sister`` -> ``mit meiner Schwester``."""
        kind = self.pick(verb.manner)
        if kind in lexicon.MANNERS:
            return aligned(lexicon.MANNERS[kind])
        noun = self.pick(COMPANY)
        return prepositional(lexicon.PREPOSITIONS[kind], self.nominal(noun, definite=True))

    def date(self) -> Phrase:
        """Choose a day of the year, which has 366."""
        month = self.rng.randrange(1, 13)
        day = self.rng.randrange(1, 1 + calendar.monthrange(2024, month)[1])
        return date(day, list(lexicon.MONTHS)[month - 1])

    def time(self, verb: Verb, tense: Tense, negated: bool) -> Phrase:
        """Choose a time that the tense allows; a negated clause takes none that would be in its scope."""
        dice = self.rng.random()
        if tense == "past":
            return self.date() if dice < 0.3 else aligned(self.pick(lexicon.YESTERDAY * 4 + lexicon.ON_WEEKDAY))
        if tense == "perfect":
            return aligned(self.pick(lexicon.TODAY + lexicon.THIS_WEEK))
        if not verb.perfect:
            return aligned(self.pick(lexicon.NOW))
        if dice < 0.2 and (verb.auxiliary == "ist" or isinstance(tense, Modal)):
            return self.date()
        if dice < 0.35 and not negated:
            return clock(self.rng.randrange(1, 13))
        if dice < 0.65 and not negated:
            return aligned(self.pick(lexicon.HABIT))
        later = lexicon.TOMORROW if isinstance(tense, Modal) else ()
        return aligned(self.pick(lexicon.TODAY[:1] * 3 + later * 4 + lexicon.ON_WEEKDAY))

    # -------------------------------------------------------------------------------------------------------- clauses

    def tense(self, verb: Verb) -> Tense:
        """Choose a tense that the verb has: the past only for states of being and having."""
        dice = self.rng.random()
        if verb in (lexicon.BE, lexicon.HAVE):
            return "present" if dice < 0.55 else "past"
        if verb is lexicon.COST or dice < 0.45:
            return "present"
        if dice < 0.75 and verb.perfect:
            return "perfect"
        if not verb.perfect:
            return "present"
        return self.pick(lexicon.MODALS if verb.human else lexicon.MODALS[:-1])

    def negates(self, verb: Verb, tense: Tense, subject: Subject) -> bool:
        """Decide on a negation: not of indefinite subjects, and not where its scope would be doubtful (``must``)."""
        clear = tense.negatable if isinstance(tense, Modal) else verb is not lexicon.COST
        return clear and subject.definite and self.chance(0.17)

    def frequency(self, verb: Verb, tense: Tense) -> Phrase:
        """Choose how often it happens; states, modals and most clauses do not say."""
        if not verb.perfect or tense not in ("present", "perfect") or self.chance(0.9):
            return NOTHING
        return aligned(self.pick(lexicon.FREQUENCY if tense == "present" else lexicon.SO_FAR))

    def suits(self, verb: Verb, subject: Subject | None, asking: str) -> bool:
        """Tell whether a verb goes with a given subject and has the field that a question asks for."""
        if subject and not (subject.noun in verb.subjects if subject.noun else verb.human):
            return False
        if asking == "time":
            return verb.perfect
        if asking == "objects":
            return bool(verb.objects) and not verb.recipient and not any(n.group in PEOPLE for n in verb.objects)
        return bool(verb.place) if asking == "place" else True

    def clause(self, subject: Subject | None = None, verb_first: bool = False, asking: str = "") -> Clause:
        """Plan a clause; ``asking`` names the field that a question word stands for, and which is left out."""
        verb = self.pick(VERBS)
        while not self.suits(verb, subject, asking):
            verb = self.pick(VERBS)
        subject = subject or self.subject(verb, definite=verb_first, asked=bool(asking))
        tense = self.tense(verb)
        while asking == "time" and tense == "perfect":
            tense = self.tense(verb)
        negation = object() if not asking and self.negates(verb, tense, subject) else None
        clause = Clause(subject.phrase, subject.agreement, verb, tense)
        if verb is lexicon.BE:
            clause = self.describe(clause, subject, negation)
        elif verb is lexicon.COST:
            clause = clause._replace(complement=self.price())
        else:
            clause = self.circumstances(self.arguments(clause, subject, negation, verb_first, asking), negation, asking)
        return self.negate(clause, negation) if negation else clause

    def negate(self, clause: Clause, negation: Mark) -> Clause:
        """Add ``not`` -> ``nicht``, unless a late, that is an indefinite, object says ``kein`` already."""
        german = () if clause.late.german else spell("nicht", negation)
        return clause._replace(adverb=Phrase(spell("not", negation), german))

    def arguments(
        self, clause: Clause, subject: Subject, negation: Mark | None, verb_first: bool, asking: str
    ) -> Clause:
        """Add objects and complement; behind a finite verb, only a pronoun subject is followed by pronoun objects."""
        verb = clause.verb
        if verb.objects and asking != "objects":
            early, late = self.objects(verb, subject, negation, not verb_first or bool(subject.pronoun))
            clause = clause._replace(early=early, late=late)
        if verb.complement and not (verb.optional and self.chance(0.6)):
            clause = clause._replace(complement=self.slot(verb.complement))
        return clause

    def circumstances(self, clause: Clause, negation: Mark | None, asking: str) -> Clause:
        """Add frequency or time, manner and place, as far as the clause has room."""
        verb, tense = clause.verb, clause.tense
        often = NOTHING if negation else self.frequency(verb, tense)
        if often is not NOTHING:
            clause = clause._replace(adverb=often)
        elif asking != "time" and self.chance(self.detail * 1.6):
            clause = clause._replace(time=self.time(verb, tense, negation is not None))
        if verb.manner and self.chance(self.detail * 0.7):
            return clause._replace(manner=self.manner(verb))
        if verb.place and asking != "place" and self.chance(self.detail * 1.5):
            return clause._replace(place=self.slot(verb.place))
        return clause

    def describe(self, clause: Clause, subject: Subject, negation: Mark | None) -> Clause:
        """Say of people where they are or how old they are, and of everything what it is like."""
        people = subject.noun is None or subject.noun.group in PEOPLE
        dice = self.rng.random()
        if people and dice < 0.35 and not negation:
            return clause._replace(complement=self.age())
        if people and dice < 0.6:
            time = self.time(clause.verb, clause.tense, True) if self.chance(self.detail * 2) else NOTHING
            return clause._replace(complement=self.slot(lexicon.WHEREABOUTS), time=time)
        quality = self.pick(lexicon.adjectives("person" if subject.noun is None else subject.noun.group) or FEELINGS)
        very = NOTHING if negation or self.chance(0.75) else aligned("very/a = sehr/a")
        moment = quality.english in lexicon.CHANGING and self.chance(self.detail * 2)
        time = self.time(clause.verb, clause.tense, True) if moment else NOTHING
        told = (("predicate", quality.english, subject.noun.english),) if subject.noun else ()
        word = aligned(f"{quality.english}/a = {quality.german}/a")._replace(combinations=told)
        return clause._replace(complement=very.then(word), time=time)

    def price(self) -> Phrase:
        """``twenty-three euros`` -> ``dreiundzwanzig Euro``."""
        number = self.rng.randrange(2, 100)
        return aligned(f"{english_number(number)}/a euros/b = {german_number(number)}/a Euro/b")

    def age(self) -> Phrase:
        """``twenty-three years old`` -> ``dreiundzwanzig Jahre alt``."""
        number = self.rng.randrange(2, 100)
        return aligned(f"{english_number(number)}/a years/b old/c = {german_number(number)}/a Jahre/b alt/c")

    # ------------------------------------------------------------------------------------------------------ sentences

    def plain(self) -> Plan:
        """``The dog eats the bread.``"""
        return statement(self.clause()), "."

    def fronted(self) -> Plan:
        """``Today the dog eats the bread.``"""
        clause = self.clause(verb_first=True)
        if clause.time is NOTHING:
            return self.fronted()
        return fronted(clause.time, clause._replace(time=NOTHING)), "."

    def polar(self) -> Plan:
        """``Does the dog eat the bread?``"""
        return question(self.clause(verb_first=True, asking="truth")), "?"

    def wonder(self) -> Plan:
        """``Where does the dog sleep?``, ``How many apples does the man eat?``, ``Who sings?``"""
        asking = self.pick(("place", "time", "reason", "objects", "number", "subject"))
        if asking == "subject":
            return statement(self.clause(Subject(aligned(lexicon.WHO), definite=False))), "?"
        if asking != "number":
            clause = self.clause(verb_first=True, asking=asking)
            return question(clause, aligned(lexicon.QUESTION_WORDS[asking])), "?"
        clause = self.clause(verb_first=True, asking="objects")
        countable = [noun for noun in clause.verb.objects if noun.german_plural]
        if not countable:
            return self.wonder()
        noun = self.pick(countable)
        things = self.governed(clause.verb, Nominal(noun, plural=True), None)
        return question(clause, aligned("how/a many/b = wie/a viele/b").then(things)), "?"

    def report(self) -> Plan:
        """``I know that the dog sleeps.``"""
        verb = self.pick(lexicon.REPORTING)
        subject = self.subject(verb, definite=True)
        tense: Tense = "perfect" if verb.perfect and self.chance(0.5) else "present"
        clause = Clause(subject.phrase, subject.agreement, verb, tense)
        if self.chance(0.2):
            clause = self.negate(clause, object())
        return complex_sentence(statement(clause), subordinate(lexicon.REPORTED, self.clause())), "."

    def explained(self) -> Plan:
        """``The man laughs because his dog sleeps.``"""
        conjunction = self.pick(lexicon.DEPENDENT)
        first, second = self.pair(conjunction, verb_first=False)
        return complex_sentence(statement(first), subordinate(conjunction, second)), "."

    def conditional(self) -> Plan:
        """``If the man is tired, he sleeps.``"""
        conjunction = self.pick(lexicon.DEPENDENT)
        first, second = self.pair(conjunction, verb_first=True)
        return periodic_sentence(subordinate(conjunction, first), second), "."

    def coordinated(self) -> Plan:
        """``The man sleeps and the woman works.``"""
        left, right = statement(self.clause()), statement(self.clause())
        return coordination(self.pick(lexicon.COORDINATE), left, right), "."

    def pair(self, conjunction: str, verb_first: bool) -> tuple[Clause, Clause]:
        """Plan two clauses, the second often about the same person; conditions hold in the present."""
        subject = self.subject(lexicon.REPORTING[0], definite=True)
        again = self.resume(subject) if self.chance(0.6) else None
        first, second = self.clause(subject), self.clause(again, verb_first)
        if conjunction == "if wenn" and not first.tense == second.tense == "present":
            return self.pair(conjunction, verb_first)
        return first, second

    def sentence(self) -> Plan:
        """Plan a sentence of any kind, with its final sign; long kinds are kept simple in their parts."""
        dice = self.rng.random()
        for share, detail, kind in KINDS:
            dice -= share
            if dice < 0:
                self.detail = detail
                return kind(self)
        return self.sentence()


FEELINGS = tuple(lexicon.ADJECTIVES[name] for name in lexicon.CHANGING)
KINDS = (
    (0.34, 0.34, Author.plain),
    (0.15, 0.34, Author.fronted),
    (0.09, 0.3, Author.polar),
    (0.09, 0.3, Author.wonder),
    (0.09, 0.16, Author.report),
    (0.13, 0.16, Author.explained),
    (0.07, 0.16, Author.conditional),
    (0.04, 0.12, Author.coordinated),
)


# ------------------------------------------------------------------------------------------------------------ splits


class Draft(NamedTuple):
    """An example and the combinations that it is made of."""

    example: Example
    combinations: tuple[Combination, ...]

    @property
    def held_out(self) -> bool:
        """Whether the example contains a combination that the training split must not show."""
        return any(map(reserved, self.combinations))


@functools.cache
def reserved(combination: Combination) -> bool:
    """Reserve a fixed share of all combinations for the held-out splits, by a hash that never changes."""
    return zlib.crc32(" ".join(combination).encode()) % RESERVED_ONE_IN == 0


def repetitive(phrase: Phrase) -> bool:
    """Tell whether a German noun or name occurs twice: ``Der Bäcker geht zum Bäcker``."""
    names = [word.text for word in phrase.german if word.text[0].isupper()]
    return len(set(names)) < len(names)


def drafts(seed: int = SEED) -> Iterator[Draft]:
    """Write sentences without end, no source and no target twice."""
    author, seen = Author(seed), set[str]()
    while True:
        phrase, sign = author.sentence()
        if len(phrase.english) not in LENGTHS or len(phrase.german) not in LENGTHS or repetitive(phrase):
            continue
        example = write(phrase, sign)
        if example.source not in seen and example.target not in seen:
            seen |= {example.source, example.target}
            yield Draft(example, phrase.combinations)


def vocabulary(example: Example) -> list[str]:
    """Return the words of both sides, without the signs attached to them."""
    return [word.strip(".,?") for word in f"{example.source} {example.target}".split()]


@functools.cache
def corpus() -> dict[str, tuple[Draft, ...]]:
    """Deal the drafts out: reserved combinations to the held-out splits, all else to training.

    Held-out sentences with a word that training hardly shows are dropped: they would test memory, not composition.
    """
    train: list[Draft] = []
    held_out: list[Draft] = []
    for draft in drafts():
        (held_out if draft.held_out else train).append(draft)
        if len(train) == SIZES["train"]:
            break
    counts = Counter(word for draft in train for word in vocabulary(draft.example))
    known = [draft for draft in held_out if all(counts[word] >= FAMILIAR for word in vocabulary(draft.example))]
    valid, test = SIZES["valid"], SIZES["test"]
    return {"train": tuple(train), "valid": tuple(known[:valid]), "test": tuple(known[valid : valid + test])}


@functools.cache
def examples(split: str) -> tuple[Example, ...]:
    """Return a split of the sample corpus: ``train``, ``valid`` or ``test``."""
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r} in the sample corpus; choose one of {', '.join(SPLITS)}.")
    return tuple(draft.example for draft in corpus()[split])


def links(split: str, *, source: str) -> list[frozenset[tuple[int, int]]]:
    """Return the links of each pair of a split, words of the ``source`` language first: ``en`` or ``de``."""
    known = [example.links for example in examples(split)]
    return known if source == "en" else [frozenset((german, english) for english, german in pair) for pair in known]
