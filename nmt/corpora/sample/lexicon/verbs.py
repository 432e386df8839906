"""Verbs with their principal parts, what they govern, and where and how they happen."""

from typing import NamedTuple

from nmt.corpora.sample.lexicon.entries import ENTRIES
from nmt.corpora.sample.lexicon.function_words import PREPOSITIONS, Agreement, Case, Preposition
from nmt.corpora.sample.lexicon.nouns import Noun, nouns

Slots = tuple[tuple[Preposition, tuple[Noun, ...]], ...]


def slots(text: str) -> Slots:
    """Read prepositions with their nouns: ``"into room; to spot person"``."""
    entries = (entry.split(maxsplit=1) for entry in text.split(";") if entry)
    return tuple((PREPOSITIONS[preposition], nouns(names)) for preposition, names in entries)


class Verb(NamedTuple):
    """A verb with its principal parts, what it governs, and the company that it keeps."""

    base: str
    third: str
    participle: str
    english_particle: str
    infinitive: str
    finite: str
    auxiliary: str
    german_participle: str
    particle: str
    human: bool
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    case: Case
    recipient: bool
    complement: Slots
    optional: bool
    place: Slots
    manner: tuple[str, ...]
    perfect: bool

    @property
    def lemma(self) -> str:
        """The dictionary form: ``aufmachen``."""
        return self.particle + self.infinitive

    @property
    def perfect_form(self) -> str:
        """The German participle behind its particle: ``auf`` + ``gemacht``."""
        return self.particle + self.german_participle


def _verb(
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
) -> Verb:
    """Parse one verb; the notation is explained at the head of `lexicon.yaml`."""
    base, third, participle = english.split()
    infinitive, finite, auxiliary, german_participle = german.split()
    base, _, english_particle = base.partition("+")
    particle, _, infinitive = infinitive.rpartition("+")
    optional, goal = complement.startswith("?"), slots(complement.strip("? "))
    human = "person" in subjects.split()
    return Verb(
        base, third, participle, english_particle,
        infinitive, finite, auxiliary, german_participle, particle,
        human, nouns(subjects), nouns(objects), case, recipient,
        goal, optional, slots(place), tuple(manner.split()), perfect,
    )  # fmt: skip


BE, HAVE, COST = (_verb(**ENTRIES["auxiliaries"][name]) for name in ("be", "have", "cost"))
VERBS = tuple(_verb(**entry) for group in ENTRIES["verbs"].values() for entry in group)
REPORTING = tuple(_verb(**entry) for entry in ENTRIES["reporting"])

# Forms that no rule gives: everything else in the first person is the infinitive without -n, in the plural with it.
FIRST_PERSON = {"sein": "bin", "wissen": "weiß"}
PLURAL = {"sein": "sind"}
PAST = {"sein": ("war", "waren"), "haben": ("hatte", "hatten")}
ENGLISH_BE: dict[Agreement, tuple[str, str]] = {"sg1": ("am", "was"), "sg3": ("is", "was"), "pl": ("are", "were")}
