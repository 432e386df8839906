"""The grammar of the sample against hand-written German."""

from collections.abc import Callable
from typing import get_args

import pytest

from nmt.corpora.sample.author import Author
from nmt.corpora.sample.grammar import clauses, noun_phrases, numerals
from nmt.corpora.sample.grammar.clauses import Clause
from nmt.corpora.sample.grammar.noun_phrases import Nominal
from nmt.corpora.sample.grammar.phrases import Phrase, aligned, write
from nmt.corpora.sample.lexicon import expressions, function_words, nouns, verbs

# ----------------------------------------------------------------------------------- shorthand for building sentences

ARTICLES = (function_words.THE, function_words.THIS, function_words.A, *function_words.POSSESSIVES)
DETERMINERS = {item.english: item for item in ARTICLES} | {"these": function_words.THIS, "an": function_words.A}
NUMBERS = {numerals.english_number(number): number for number in range(2, 100)}
SINGULARS = {noun.english: noun for noun in nouns.NOUNS.values()}
PLURALS = {noun.english_plural: noun for noun in nouns.NOUNS.values() if noun.english_plural}
VERBS = {verb.lemma: verb for verb in (*verbs.VERBS, *verbs.REPORTING, verbs.BE, verbs.HAVE, verbs.COST)}
MODALS = {modal.english: modal for modal in function_words.MODALS}


def plan(text: str) -> Nominal:
    """Read ``my two old dogs`` as the plan of a noun phrase."""
    words = text.split()
    determiner = DETERMINERS.get(words[0])
    words = words[1:] if determiner else words
    number = NUMBERS.get(words[0])
    words = words[1:] if number else words
    adjective = nouns.ADJECTIVES.get(words[0])
    noun = " ".join(words[1:] if adjective else words)
    return Nominal((PLURALS | SINGULARS)[noun], determiner, adjective, noun not in SINGULARS, number)


def noun_phrase(text: str, case: function_words.Case, negation: object = None) -> Phrase:
    return noun_phrases.noun_phrase(plan(text), case, negation)


def pronoun(text: str, case: function_words.Case) -> Phrase:
    field = "subject" if case == "nom" else "object"
    return noun_phrases.pronominal(next(p for p in function_words.PRONOUNS.values() if getattr(p, field) == text), case)


def prepositional(preposition: str, text: str) -> Phrase:
    return noun_phrases.prepositional(function_words.PREPOSITIONS[preposition], plan(text))


def clause(subject: str, lemma: str, tense: str = "present", **fields: Phrase) -> Clause:
    """Build a clause; the subject decides the agreement."""
    if subject in function_words.PRONOUNS:
        phrase, agreement = pronoun(subject, "nom"), function_words.PRONOUNS[subject].agreement
    else:
        phrase, agreement = noun_phrase(subject, "nom"), "pl" if plan(subject).plural else "sg3"
    return Clause(phrase, agreement, VERBS[lemma], MODALS.get(tense, tense), **fields)


def acc(text: str, negation: object = None) -> Phrase:
    return noun_phrase(text, "acc", negation)


def negated(plain: Clause) -> Clause:
    return Author(0).negate(plain, object())


def without(subject: str, lemma: str, text: str, tense: str = "present") -> Clause:
    """Negate an indefinite object: ``not ... a``."""
    negation = object()
    return Author(0).negate(clause(subject, lemma, tense, late=acc(text, negation)), negation)


def when(english: str) -> Phrase:
    entries = (
        *expressions.HABIT,
        *expressions.TODAY,
        *expressions.ON_WEEKDAY,
        *expressions.YESTERDAY,
        *expressions.THIS_WEEK,
    )
    phrases = [aligned(entry) for entry in entries]
    return next(p for p in phrases if " ".join(word.text for word in p.english) == english)


def manner(name: str) -> Phrase:
    return aligned(expressions.MANNERS[name])


def german(phrase: Phrase) -> str:
    return " ".join(word.text for word in phrase.german)


def english(phrase: Phrase) -> str:
    return " ".join(word.text for word in phrase.english)


# ------------------------------------------------------------------------------------------------------ agreement

AGREEMENT = """
the old dog      | der alte Hund     | den alten Hund     | dem alten Hund
the old cat      | die alte Katze    | die alte Katze     | der alten Katze
the old horse    | das alte Pferd    | das alte Pferd     | dem alten Pferd
the old dogs     | die alten Hunde   | die alten Hunde    | den alten Hunden
an old dog       | ein alter Hund    | einen alten Hund   | einem alten Hund
an old cat       | eine alte Katze   | eine alte Katze    | einer alten Katze
an old horse     | ein altes Pferd   | ein altes Pferd    | einem alten Pferd
old dogs         | alte Hunde        | alte Hunde         | alten Hunden
two old dogs     | zwei alte Hunde   | zwei alte Hunde    | zwei alten Hunden
cold wine        | kalter Wein       | kalten Wein        | kaltem Wein
cold milk        | kalte Milch       | kalte Milch        | kalter Milch
cold beer        | kaltes Bier       | kaltes Bier        | kaltem Bier
this new table   | dieser neue Tisch | diesen neuen Tisch | diesem neuen Tisch
this new lamp    | diese neue Lampe  | diese neue Lampe   | dieser neuen Lampe
this new bed     | dieses neue Bett  | dieses neue Bett   | diesem neuen Bett
our rich uncle   | unser reicher Onkel | unseren reichen Onkel | unserem reichen Onkel
her clever aunt  | ihre kluge Tante  | ihre kluge Tante   | ihrer klugen Tante
my three sisters | meine drei Schwestern | meine drei Schwestern | meinen drei Schwestern
his old friends  | seine alten Freunde | seine alten Freunde | seinen alten Freunden
the boy          | der Junge         | den Jungen         | dem Jungen
a student        | ein Student       | einen Studenten    | einem Studenten
the children     | die Kinder        | die Kinder         | den Kindern
their cars       | ihre Autos        | ihre Autos         | ihren Autos
the expensive hat | der teure Hut    | den teuren Hut     | dem teuren Hut
a dark cellar    | ein dunkler Keller | einen dunklen Keller | einem dunklen Keller
an apple cake    | ein Apfelkuchen   | einen Apfelkuchen  | einem Apfelkuchen
the kitchen tables | die Küchentische | die Küchentische | den Küchentischen
Munich           | München           | München            | München
"""


@pytest.mark.parametrize("row", AGREEMENT.strip().splitlines())
def test_noun_phrases_agree_in_gender_number_and_case(row: str) -> None:
    text, *expected = (cell.strip() for cell in row.split("|"))
    phrases = [noun_phrase(text, case) for case in get_args(function_words.Case)]
    assert [german(phrase) for phrase in phrases] == expected
    assert {english(phrase) for phrase in phrases} == {text}


NEGATIVE = {
    "a dog": "keinen Hund",
    "a new lamp": "keine neue Lampe",
    "a book": "kein Buch",
    "old books": "keine alten Bücher",
    "cold milk": "keine kalte Milch",
}


@pytest.mark.parametrize("text", NEGATIVE)
def test_negated_indefinites_take_kein(text: str) -> None:
    assert german(noun_phrase(text, "acc", object())) == NEGATIVE[text]


@pytest.mark.parametrize(
    ("preposition", "noun", "expected"),
    [
        ("in", "garden", "im alten Garten"),
        ("into", "garden", "in den alten Garten"),
        ("in", "house", "im alten Haus"),
        ("into", "house", "ins alte Haus"),
        ("in", "city", "in der alten Stadt"),
        ("into", "city", "in die alte Stadt"),
        ("to", "station", "zum alten Bahnhof"),
        ("to", "church", "zur alten Kirche"),
        ("at", "lake", "am alten See"),
        ("with", "friend", "mit dem alten Freund"),
        ("for", "child", "für das alte Kind"),
        ("without", "hat", "ohne den alten Hut"),
        ("on", "table", "auf dem alten Tisch"),
        ("onto", "table", "auf den alten Tisch"),
        ("under", "bed", "unter dem alten Bett"),
        ("behind", "tree", "hinter dem alten Baum"),
    ],
)
def test_prepositions_govern_their_case_and_contract(preposition: str, noun: str, expected: str) -> None:
    assert german(prepositional(preposition, f"the old {noun}")) == expected


def test_only_the_definite_article_contracts() -> None:
    assert german(prepositional("in", "a garden")) == "in einem Garten"
    assert german(prepositional("into", "my room")) == "in mein Zimmer"
    assert german(prepositional("in", "Vienna")) == "in Wien"


# -------------------------------------------------------------------------------------------------------- numbers

COUNTING = {
    1: ("one", "ein"),
    2: ("two", "zwei"),
    7: ("seven", "sieben"),
    11: ("eleven", "elf"),
    12: ("twelve", "zwölf"),
    16: ("sixteen", "sechzehn"),
    17: ("seventeen", "siebzehn"),
    20: ("twenty", "zwanzig"),
    21: ("twenty-one", "einundzwanzig"),
    23: ("twenty-three", "dreiundzwanzig"),
    30: ("thirty", "dreißig"),
    36: ("thirty-six", "sechsunddreißig"),
    40: ("forty", "vierzig"),
    58: ("fifty-eight", "achtundfünfzig"),
    67: ("sixty-seven", "siebenundsechzig"),
    71: ("seventy-one", "einundsiebzig"),
    80: ("eighty", "achtzig"),
    99: ("ninety-nine", "neunundneunzig"),
}


@pytest.mark.parametrize("number", COUNTING)
def test_numbers_are_spelled(number: int) -> None:
    assert (numerals.english_number(number), numerals.german_number(number)) == COUNTING[number]


def test_each_number_has_a_name_of_its_own() -> None:
    numbers = range(1, 100)
    assert len({numerals.english_number(n) for n in numbers}) == len({numerals.german_number(n) for n in numbers}) == 99


ORDINALS = {
    1: ("first", "ersten"),
    2: ("second", "zweiten"),
    3: ("third", "dritten"),
    5: ("fifth", "fünften"),
    7: ("seventh", "siebten"),
    8: ("eighth", "achten"),
    9: ("ninth", "neunten"),
    12: ("twelfth", "zwölften"),
    19: ("nineteenth", "neunzehnten"),
    20: ("twentieth", "zwanzigsten"),
    22: ("twenty-second", "zweiundzwanzigsten"),
    28: ("twenty-eighth", "achtundzwanzigsten"),
    31: ("thirty-first", "einunddreißigsten"),
}


@pytest.mark.parametrize("number", ORDINALS)
def test_ordinals_are_spelled(number: int) -> None:
    assert (numerals.english_ordinal(number), numerals.german_ordinal(number)) == ORDINALS[number]


# ------------------------------------------------------------------------------------------------------ sentences

SENTENCES: list[tuple[Callable[[], Phrase], str, str, str]] = [
    # verb second, agreement, stem changes
    (lambda: clauses.statement(clause("the dog", "schlafen")), "The dog sleeps.", "Der Hund schläft.", "0-0 1-1 2-2"),
    (lambda: clauses.statement(clause("I", "lesen", early=acc("the book"))), "I read the book.", "Ich lese das Buch.",
     "0-0 1-1 2-2 3-3"),
    (lambda: clauses.statement(clause("they", "fahren", complement=prepositional("toward", "Munich"))),
     "They travel to Munich.", "Sie fahren nach München.", "0-0 1-1 2-2 3-3"),
    (lambda: clauses.statement(clause("she", "fahren", complement=prepositional("to", "the airport"), time=when("today"),
                                     manner=manner("train"))),
     "She travels to the airport by train today.", "Sie fährt heute mit dem Zug zum Flughafen.",
     "0-0 1-1 2-6 3-6 4-7 5-3 6-4 6-5 7-2"),
    (lambda: clauses.statement(clause("the dog", "fressen", early=acc("the bread"))), "The dog eats the bread.",
     "Der Hund frisst das Brot.", ""),
    (lambda: clauses.statement(clause("I", "sein", complement=prepositional("in", "the garden"))), "I am in the garden.",
     "Ich bin im Garten.", "0-0 1-1 2-2 3-2 4-3"),
    (lambda: clauses.statement(clause("we", "sein", "past", complement=prepositional("at", "the lake"))),
     "We were at the lake.", "Wir waren am See.", ""),
    # separable verbs
    (lambda: clauses.statement(clause("the man", "aufmachen", early=acc("the door"))), "The man opens the door.",
     "Der Mann macht die Tür auf.", "0-0 1-1 2-2 2-5 3-3 4-4"),
    (lambda: clauses.statement(clause("she", "einschalten", early=acc("the lamp"))), "She turns on the lamp.",
     "Sie schaltet die Lampe ein.", "0-0 1-1 2-4 3-2 4-3"),
    (lambda: clauses.statement(clause("the boys", "aufmachen", "must", late=acc("a window"))),
     "The boys must open a window.", "Die Jungen müssen ein Fenster aufmachen.", "0-0 1-1 2-2 3-5 4-3 5-4"),
    (lambda: clauses.statement(clause("he", "fernsehen", "perfect", time=when("this evening"))),
     "He has watched television this evening.", "Er hat heute Abend ferngesehen.", "0-0 1-1 2-4 3-4 4-2 5-3"),
    (lambda: clauses.statement(clause("I", "anrufen", early=pronoun("him", "acc"))), "I call him.", "Ich rufe ihn an.",
     "0-0 1-1 1-3 2-2"),
    # perfect with haben and sein
    (lambda: clauses.statement(clause("Anna", "kaufen", "perfect", late=acc("a red dress"))), "Anna has bought a red dress.",
     "Anna hat ein rotes Kleid gekauft.", "0-0 1-1 2-5 3-2 4-3 5-4"),
    (lambda: clauses.statement(clause("the girl", "gehen", "perfect", complement=prepositional("to", "the school"))),
     "The girl has gone to the school.", "Das Mädchen ist zur Schule gegangen.", "0-0 1-1 2-2 3-5 4-3 5-3 6-4"),
    (lambda: clauses.statement(clause("we", "aufstehen", "perfect")), "We have got up.", "Wir sind aufgestanden.", ""),
    # modals
    (lambda: clauses.statement(clause("my sister", "sehen", "want", early=pronoun("us", "acc"))),
     "My sister wants to see us.", "Meine Schwester will uns sehen.", "0-0 1-1 2-2 3-4 4-4 5-3"),
    # negation
    (lambda: clauses.statement(negated(clause("the man", "lesen", early=acc("the book"), time=when("today")))),
     "The man does not read the book today.", "Der Mann liest das Buch heute nicht.",
     "0-0 1-1 2-2 3-6 4-2 5-3 6-4 7-5"),
    (lambda: clauses.statement(without("the man", "haben", "a dog")), "The man does not have a dog.",
     "Der Mann hat keinen Hund.", "0-0 1-1 2-2 3-3 4-2 5-3 6-4"),
    (lambda: clauses.statement(without("I", "trinken", "coffee")), "I do not drink coffee.", "Ich trinke keinen Kaffee.", ""),
    (lambda: clauses.statement(without("she", "kaufen", "a car", "can")), "She cannot buy a car.",
     "Sie kann kein Auto kaufen.", "0-0 1-1 1-2 2-4 3-2 4-3"),
    (lambda: clauses.statement(negated(clause("he", "sein", complement=prepositional("in", "the house")))),
     "He is not in the house.", "Er ist nicht im Haus.", ""),
    (lambda: clauses.statement(negated(clause("they", "ankommen", "perfect"))), "They have not arrived.",
     "Sie sind nicht angekommen.", ""),
    # order of objects and of time, manner, place
    (lambda: clauses.statement(clause("he", "geben", early=pronoun("me", "dat"), late=acc("an apple"))),
     "He gives me an apple.", "Er gibt mir einen Apfel.", ""),
    (lambda: clauses.statement(clause("we", "helfen", early=noun_phrase("the students", "dat"))), "We help the students.",
     "Wir helfen den Studenten.", ""),
    (lambda: clauses.statement(clause("she", "singen", late=acc("a song"), time=when("in the evening"),
                                     place=prepositional("in", "the church"))),
     "She sings a song in the church in the evening.", "Sie singt am Abend in der Kirche ein Lied.", ""),
    # inversion and questions
    (lambda: clauses.fronted(when("on Monday"), clause("the doctor", "besuchen", early=acc("our grandmother"))),
     "On Monday the doctor visits our grandmother.", "Am Montag besucht der Arzt unsere Großmutter.", ""),
    (lambda: clauses.fronted(numerals.date(3, "May"), clause("her friends", "ankommen")), "On the third of May her friends arrive.",
     "Am dritten Mai kommen ihre Freunde an.", "0-0 1-0 2-1 4-2 5-4 6-5 7-3 7-6"),
    (lambda: clauses.statement(clause("the train", "abfahren", time=numerals.clock(5))), "The train departs at five o'clock.",
     "Der Zug fährt um fünf Uhr ab.", "0-0 1-1 2-2 2-6 3-3 4-4 5-5"),
    (lambda: clauses.question(clause("the cat", "trinken", late=acc("milk"))), "Does the cat drink milk?",
     "Trinkt die Katze Milch?", "0-0 1-1 2-2 3-0 4-3"),
    (lambda: clauses.question(clause("they", "wohnen"), aligned("where/a = wo/a")),
     "Where do they live?", "Wo wohnen sie?", "0-0 1-1 2-2 3-1"),
    (lambda: clauses.question(clause("he", "kaufen", "perfect"), aligned("what/a = was/a")), "What has he bought?",
     "Was hat er gekauft?", ""),
    # subordinate clauses
    (lambda: clauses.complex_sentence(
        clauses.statement(clause("he", "lachen")),
        clauses.subordinate("because weil", clause("the dog", "fressen", "perfect", early=acc("the bread")))),
     "He laughs because the dog has eaten the bread.", "Er lacht, weil der Hund das Brot gefressen hat.",
     "0-0 1-1 2-2 3-3 4-4 5-8 6-7 7-5 8-6"),
    (lambda: clauses.complex_sentence(
        clauses.statement(clause("I", "wissen")),
        clauses.subordinate("that dass", clause("he", "aufmachen", early=acc("the door")))),
     "I know that he opens the door.", "Ich weiß, dass er die Tür aufmacht.", "0-0 1-1 2-2 3-3 4-6 5-4 6-5"),
    (lambda: clauses.periodic_sentence(
        clauses.subordinate("if wenn", clause("the child", "schlafen")), clause("we", "lesen", late=acc("a novel"))),
     "If the child sleeps, we read a novel.", "Wenn das Kind schläft, lesen wir einen Roman.", ""),
    (lambda: clauses.complex_sentence(
        clauses.statement(clause("Peter", "schwimmen", complement=prepositional("in", "the lake"))),
        clauses.subordinate("although obwohl", clause("his father", "arbeiten", "must"))),
     "Peter swims in the lake although his father must work.", "Peter schwimmt im See, obwohl sein Vater arbeiten muss.", ""),
    # compounds
    (lambda: clauses.statement(clause("the key", "liegen", complement=prepositional("on", "the kitchen table"))),
     "The key lies on the kitchen table.", "Der Schlüssel liegt auf dem Küchentisch.", "0-0 1-1 2-2 3-3 4-4 5-5 6-5"),
    (lambda: clauses.statement(clause("she", "legen", early=acc("the letter"), complement=prepositional("onto", "the table"))),
     "She puts the letter on the table.", "Sie legt den Brief auf den Tisch.", ""),
]  # fmt: skip


@pytest.mark.parametrize(("build", "source", "target", "links"), SENTENCES, ids=[row[2] for row in SENTENCES])
def test_sentences_are_translated_and_linked(build: Callable[[], Phrase], source: str, target: str, links: str) -> None:
    example = write(build(), source[-1])
    assert (example.source, example.target) == (source, target)
    if links:
        expected = {tuple(map(int, link.split("-"))) for link in links.split()}
        assert example.links == expected


def test_handed_over_puts_the_accusative_pronoun_first() -> None:
    phrase = Author(1).handed_over()
    assert english(phrase).startswith("them to ")
    assert german(phrase).startswith("sie ")
    assert all(word.marks for word in phrase.english)
