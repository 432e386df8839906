"""Draws clauses and sentences that make sense."""

from nmt.corpora.sample.grammar.clauses import (
    Clause,
    complex_sentence,
    coordination,
    fronted,
    periodic_sentence,
    question,
    statement,
    subordinate,
)
from nmt.corpora.sample.grammar.noun_phrases import Nominal
from nmt.corpora.sample.grammar.phrases import NOTHING, Mark, Phrase, Plan, aligned, spell
from nmt.corpora.sample.grammar.predicates import Tense
from nmt.corpora.sample.lexicon import expressions, function_words, verbs
from nmt.corpora.sample.lexicon.function_words import Modal
from nmt.corpora.sample.lexicon.nouns import ADJECTIVES, CHANGING, adjectives
from nmt.corpora.sample.lexicon.verbs import Verb
from nmt.corpora.sample.phrase_author import PEOPLE, PhraseAuthor, Subject

WEIGHTED_VERBS = (*verbs.VERBS, *[verbs.BE] * 8, *[verbs.HAVE] * 3, *[verbs.COST] * 5)
FEELINGS = tuple(ADJECTIVES[name] for name in CHANGING)


class Author(PhraseAuthor):
    """Draws the plans of sentences that make sense, one at a time, and has the grammar realize them."""

    # -------------------------------------------------------------------------------------------------------- clauses

    def tense(self, verb: Verb) -> Tense:
        """Choose a tense that the verb has: the past only for states of being and having."""
        dice = self.rng.random()
        if verb in (verbs.BE, verbs.HAVE):
            return "present" if dice < 0.55 else "past"
        if verb is verbs.COST or dice < 0.45:
            return "present"
        if dice < 0.75 and verb.perfect:
            return "perfect"
        if not verb.perfect:
            return "present"
        return self.pick(function_words.MODALS if verb.human else function_words.MODALS[:-1])

    def negates(self, verb: Verb, tense: Tense, subject: Subject) -> bool:
        """Decide on a negation: not of indefinite subjects, and not where its scope would be doubtful (``must``)."""
        clear = tense.negatable if isinstance(tense, Modal) else verb is not verbs.COST
        return clear and subject.definite and self.chance(0.17)

    def frequency(self, verb: Verb, tense: Tense) -> Phrase:
        """Choose how often it happens; states, modals and most clauses do not say."""
        if not verb.perfect or tense not in ("present", "perfect") or self.chance(0.9):
            return NOTHING
        return aligned(self.pick(expressions.FREQUENCY if tense == "present" else expressions.SO_FAR))

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
        verb = self.pick(WEIGHTED_VERBS)
        while not self.suits(verb, subject, asking):
            verb = self.pick(WEIGHTED_VERBS)
        subject = subject or self.subject(verb, definite=verb_first, in_question=bool(asking))
        tense = self.tense(verb)
        while asking == "time" and tense == "perfect":
            tense = self.tense(verb)
        negation = object() if not asking and self.negates(verb, tense, subject) else None
        clause = Clause(subject.phrase, subject.agreement, verb, tense)
        if verb is verbs.BE:
            clause = self.describe(clause, subject, negation)
        elif verb is verbs.COST:
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
            return clause._replace(complement=self.slot(expressions.WHEREABOUTS), time=time)
        quality = self.pick(adjectives("person" if subject.noun is None else subject.noun.group) or FEELINGS)
        very = NOTHING if negation or self.chance(0.75) else aligned("very/a = sehr/a")
        moment = quality.english in CHANGING and self.chance(self.detail * 2)
        time = self.time(clause.verb, clause.tense, True) if moment else NOTHING
        combinations = (("predicate", quality.english, subject.noun.english),) if subject.noun else ()
        word = aligned(f"{quality.english}/a = {quality.german}/a")._replace(combinations=combinations)
        return clause._replace(complement=very.then(word), time=time)

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
            return statement(self.clause(Subject(aligned(expressions.WHO), definite=False))), "?"
        if asking != "number":
            clause = self.clause(verb_first=True, asking=asking)
            return question(clause, aligned(expressions.QUESTION_WORDS[asking])), "?"
        clause = self.clause(verb_first=True, asking="objects")
        countable = [noun for noun in clause.verb.objects if noun.german_plural]
        if not countable:
            return self.wonder()
        noun = self.pick(countable)
        things = self.governed(clause.verb, Nominal(noun, plural=True), None)
        return question(clause, aligned("how/a many/b = wie/a viele/b").then(things)), "?"

    def report(self) -> Plan:
        """``I know that the dog sleeps.``"""
        verb = self.pick(verbs.REPORTING)
        subject = self.subject(verb, definite=True)
        tense: Tense = "perfect" if verb.perfect and self.chance(0.5) else "present"
        clause = Clause(subject.phrase, subject.agreement, verb, tense)
        if self.chance(0.2):
            clause = self.negate(clause, object())
        return complex_sentence(statement(clause), subordinate(expressions.REPORTED, self.clause())), "."

    def explained(self) -> Plan:
        """``The man laughs because his dog sleeps.``"""
        conjunction = self.pick(expressions.DEPENDENT)
        first, second = self.pair(conjunction, verb_first=False)
        return complex_sentence(statement(first), subordinate(conjunction, second)), "."

    def conditional(self) -> Plan:
        """``If the man is tired, he sleeps.``"""
        conjunction = self.pick(expressions.DEPENDENT)
        first, second = self.pair(conjunction, verb_first=True)
        return periodic_sentence(subordinate(conjunction, first), second), "."

    def coordinated(self) -> Plan:
        """``The man sleeps and the woman works.``"""
        left, right = statement(self.clause()), statement(self.clause())
        return coordination(self.pick(expressions.COORDINATE), left, right), "."

    def pair(self, conjunction: str, verb_first: bool) -> tuple[Clause, Clause]:
        """Plan two clauses, the second often about the same person; conditions hold in the present."""
        subject = self.subject(verbs.REPORTING[0], definite=True)
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
