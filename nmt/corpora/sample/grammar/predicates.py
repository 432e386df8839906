"""The verbal parts of a clause: tense, agreement, auxiliaries and particles."""

from typing import NamedTuple

from nmt.corpora.sample.grammar.phrases import Words, spell
from nmt.corpora.sample.lexicon import verbs
from nmt.corpora.sample.lexicon.function_words import Agreement, Modal
from nmt.corpora.sample.lexicon.verbs import Verb

Tense = str | Modal  # "present", "perfect", "past" (of be and have), or the modal verb that governs an infinitive


def english_finite(verb: Verb, agreement: Agreement) -> str:
    """Inflect the English present: ``I read``, ``she reads``, ``we are``."""
    if verb is verbs.BE:
        return verbs.ENGLISH_BE[agreement][0]
    return verb.third if agreement == "sg3" else verb.base


def german_finite(infinitive: str, third: str, agreement: Agreement) -> str:
    """Inflect the German present: ``ich lese``, ``sie liest``, ``wir lesen``."""
    if agreement == "sg3":
        return third
    if agreement == "pl":
        return verbs.PLURAL.get(infinitive, infinitive)
    return verbs.FIRST_PERSON.get(infinitive, infinitive.removesuffix("n"))


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
        german = verbs.PAST[verb.infinitive][agreement == "pl"]
        english, auxiliary = (verbs.ENGLISH_BE[agreement][1] if verb is verbs.BE else "had"), "did"
    finite, closing = spell(german, *finite_marks), spell(verb.particle, particle)
    if verb is verbs.BE:
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
