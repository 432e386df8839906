"""Verbs with their principal parts, what they govern, and where and how they happen."""

from nmt.corpora.sample.lexicon import ENTRIES
from nmt.corpora.sample.lexicon.function_words import PREPOSITIONS, Agreement, Case, Preposition
from nmt.corpora.sample.lexicon.nouns import Noun, nouns

Slots = tuple[tuple[Preposition, tuple[Noun, ...]], ...]


def slots(text: str) -> Slots:
    """Read prepositions with their nouns: ``"into room; to spot person"``."""
    entries = (entry.split(maxsplit=1) for entry in text.split(";") if entry)
    return tuple((PREPOSITIONS[preposition], nouns(names)) for preposition, names in entries)


class Verb:
    """A verb with its principal parts, what it governs, and the company that it keeps; `lexicon.yaml` explains the notation."""

    def __init__(
        self,
        english: str,
        german: str,
        objects: str = "",
        *,
        subjects: str = "name person family",
        case: Case = "acc",
        recipient: bool = False,
        complement: str = "",
        place: str = "",
        manner: str = "",
        perfect: bool = True,
    ) -> None:
        base, self.third, self.participle = english.split()
        self.base, _, self.english_particle = base.partition("+")
        infinitive, self.finite, self.auxiliary, self.german_participle = german.split()
        self.particle, _, self.infinitive = infinitive.rpartition("+")
        self.human = "person" in subjects.split()
        self.subjects, self.objects = nouns(subjects), nouns(objects)
        self.case: Case = case
        self.complement, self.optional = slots(complement.strip("? ")), complement.startswith("?")
        self.place, self.manner = slots(place), manner.split()
        self.recipient, self.perfect = recipient, perfect

    @property
    def lemma(self) -> str:
        """The dictionary form: ``aufmachen``."""
        return self.particle + self.infinitive

    @property
    def perfect_form(self) -> str:
        """The German participle behind its particle: ``auf`` + ``gemacht``."""
        return self.particle + self.german_participle


BE, HAVE, COST = (Verb(**ENTRIES["auxiliaries"][name]) for name in ("be", "have", "cost"))
VERBS = tuple(Verb(**entry) for group in ENTRIES["verbs"].values() for entry in group)
REPORTING = tuple(Verb(**entry) for entry in ENTRIES["reporting"])

# Forms that no rule gives: everything else in the first person is the infinitive without -n, in the plural with it.
FIRST_PERSON = {"sein": "bin", "wissen": "weiß"}
PLURAL = {"sein": "sind"}
PAST = {"sein": ("war", "waren"), "haben": ("hatte", "hatten")}
ENGLISH_BE: dict[Agreement, tuple[str, str]] = {"sg1": ("am", "was"), "sg3": ("is", "was"), "pl": ("are", "were")}
