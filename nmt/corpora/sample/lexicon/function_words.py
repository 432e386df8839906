"""The closed classes: endings, determiners, pronouns, modal verbs and prepositions."""

from typing import Any, Literal, NamedTuple

from nmt.corpora.sample.lexicon import ENTRIES

Case = Literal["nom", "acc", "dat"]
Agreement = Literal["sg1", "sg3", "pl"]


def _rows(text: str) -> list[Any]:
    """Read entries of several words: ``"can kann können, must muss müssen"``."""
    return [entry.split() for entry in text.split(",")]


# ---------------------------------------------------------------------------------------------------------- endings

COLUMNS = "mfnp"  # masculine, feminine, neuter, plural: the columns of the tables below


def _table(nom: str, acc: str, dat: str) -> dict[tuple[Case, str], str]:
    """Read three rows of four endings; ``-`` is the empty ending."""
    rows: dict[Case, str] = {"nom": nom, "acc": acc, "dat": dat}
    return {
        (case, column): ending.strip("-")
        for case, row in rows.items()
        for column, ending in zip(COLUMNS, row.split(), strict=True)
    }


DEFINITE = _table("er ie as ie", "en ie as ie", "em er em en")  # d-: der, die, das
DER_WORD = _table("er e es e", "en e es e", "em er em en")  # dies-
EIN_WORD = _table("- e - e", "en e - e", "em er em en")  # ein, kein, mein
WEAK = _table("e e e en", "en e e en", "en en en en")  # der alte Mann
MIXED = _table("er e es en", "en e es en", "en en en en")  # ein alter Mann
STRONG = _table("er e es e", "en e es e", "em er em en")  # alter Wein
Endings = dict[tuple[Case, str], str]


class Determiner(NamedTuple):
    """An article-like word: its German stem, the endings that it takes and those that it leaves to adjectives."""

    english: str
    plural: str
    stem: str
    own: Endings
    adjective: Endings


THE = Determiner("the", "the", "d", DEFINITE, WEAK)
THIS = Determiner("this", "these", "dies", DER_WORD, WEAK)
A = Determiner("a", "", "ein", EIN_WORD, MIXED)
NO = Determiner("", "", "kein", EIN_WORD, MIXED)
POSSESSIVES = tuple(
    Determiner(english, english, stem, EIN_WORD, MIXED) for english, stem in _rows(ENTRIES["possessives"])
)

# --------------------------------------------------------------------------------------------------- pronouns, modals


class Pronoun(NamedTuple):
    """A personal pronoun with its cases; English has one object form for both German ones."""

    subject: str
    object: str
    nom: str
    acc: str
    dat: str
    agreement: Agreement


PRONOUNS = {row[0]: Pronoun(*row) for row in _rows(ENTRIES["pronouns"])}


class Modal(NamedTuple):
    """A modal verb: ``can`` -> ``kann``, ``können``; only ``want`` inflects in English and takes *to*."""

    english: str
    singular: str
    plural: str

    @property
    def negatable(self) -> bool:
        """Whether a negation has the same scope in both languages: *must not* forbids, *muss nicht* permits."""
        return self.english != "must"


MODALS = tuple(Modal(*row) for row in _rows(ENTRIES["modals"]))

# ------------------------------------------------------------------------------------------------------ prepositions


class Preposition(NamedTuple):
    """A preposition and the case it governs; ``in`` and ``into`` are one word in German with two cases."""

    english: str
    german: str
    case: Case


PREPOSITIONS = {name: Preposition(*row) for name, *row in _rows(ENTRIES["prepositions"])}
CONTRACTIONS = {(preposition, article): fused for preposition, article, fused in _rows(ENTRIES["contractions"])}
