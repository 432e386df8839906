"""Rules on the text of training pairs, each an option of `data.filters`.

Letters, scripts, word length and language identification are filters of OpusFilter (Aulamo et al. 2020); the longest word is also one
of Moses (`clean-corpus-n.perl`). Untranslated copies are the noise that harms translation most (Khayrallah and Koehn 2018).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar

import regex

from nmt.errors import UsageError
from nmt.recipe import FiltersConfig
from nmt.text.languages import base_language, find_language
from nmt.text.marks import MARK
from nmt.text.scripts import split_characters

_SEVERAL_SCRIPTS = {**dict.fromkeys("az bs sh sr tk tt uz".split(), ("Latn", "Cyrl")), "ku": ("Latn", "Arab")}
"""The scripts of languages that are written in more than one."""
_WRITING_SYSTEMS = {"Jpan": ("Hani", "Hira", "Kana"), "Kore": ("Hang",), "Hans": ("Hani",), "Hant": ("Hani",)}
"""The scripts of Unicode that the other codes of ISO 15924 stand for."""


@dataclass(frozen=True)
class NoCopies:
    """Removes pairs whose two sides are equal but for spaces."""

    name: ClassVar[str] = "copy"

    def removes(self, source: str, target: str) -> bool:
        return source.split() == target.split()


@dataclass(frozen=True)
class MaxWordLength:
    """Removes pairs with a word of more characters than `limit`; a character of a script without spaces is a word by itself."""

    name: ClassVar[str] = "long_word"
    limit: int

    def removes(self, source: str, target: str) -> bool:
        return any(len(word) > self.limit for side in (source, target) for word in split_characters(side))


@dataclass(frozen=True)
class MinLetters:
    """Removes pairs with a side of which less than `share` of the characters are letters or their marks; spaces do not count."""

    name: ClassVar[str] = "letters"
    share: float

    def removes(self, source: str, target: str) -> bool:
        sides = ("".join(side.split()) for side in (source, target))
        return any(_count(r"[\p{L}\p{M}]", side) < self.share * len(side) for side in sides)


@dataclass(frozen=True)
class OwnScripts:
    """Removes pairs with a side that has letters, but at most half of them in the scripts of its language."""

    name: ClassVar[str] = "script"
    scripts: tuple[tuple[str, ...], tuple[str, ...]]
    """The scripts of the source and of the target language."""

    @classmethod
    def of(cls, languages: Iterable[str]) -> "OwnScripts":
        """The rule for two languages. Raises UsageError if it is not known how one is written."""
        source, target = languages
        for language in (source, target):
            if not scripts_of(language):
                raise UsageError(f"The filter 'scripts' does not know how '{language}' is written: leave it out.")
        return cls((scripts_of(source), scripts_of(target)))

    def removes(self, source: str, target: str) -> bool:
        return any(is_foreign(side, scripts) for side, scripts in zip((source, target), self.scripts, strict=True))


@dataclass(frozen=True)
class NoMarks:
    """Removes pairs with a side that has marks of subwords, or entities of HTML."""

    name: ClassVar[str] = "marks"

    def removes(self, source: str, target: str) -> bool:
        return any(map(MARK.search, (source, target)))


@dataclass(frozen=True)
class MinLanguage:
    """Removes pairs with a side whose probability of being in its language is below `probability`.

    The probability is that of py3langid (Lui and Baldwin 2012), among all languages that it knows.
    """

    name: ClassVar[str] = "language"
    probability: float
    languages: tuple[str, str]
    version: str = field(default_factory=lambda: version("py3langid"))

    @classmethod
    def of(cls, probability: float, languages: Iterable[str]) -> "MinLanguage":
        """The rule for two languages. Raises UsageError if py3langid is not installed, or does not know one of them."""
        source, target = map(base_language, languages)
        known = identifier().labels
        for code in (source, target):
            if code not in known:
                names = ", ".join(sorted(known))
                raise UsageError(f"The filter 'language' does not know '{code}', only {names}: leave it out.")
        return cls(probability, (source, target))

    def removes(self, source: str, target: str) -> bool:
        sides = zip((source, target), self.languages, strict=True)
        return any(dict(identifier().rank(side))[code] < self.probability for side, code in sides)


TextRule = NoCopies | MaxWordLength | MinLetters | OwnScripts | NoMarks | MinLanguage
"""A rule on both sides of a pair: its `name` is what a `FilterReport` counts removed pairs under, and its `repr` names all that it
depends on, because encoded text is cached by it."""


def text_rules(filters: FiltersConfig, languages: tuple[str, str]) -> Sequence[TextRule]:
    """The rules on text that a recipe sets, in the order in which they apply: the slow identification of languages comes last.

    Raises:
        UsageError: a rule does not know one of the languages, or needs a package that is not installed.
    """
    rules: list[TextRule] = []
    if not filters.copies:
        rules.append(NoCopies())
    if filters.max_word_length is not None:
        rules.append(MaxWordLength(filters.max_word_length))
    if filters.min_letters is not None:
        rules.append(MinLetters(filters.min_letters))
    if filters.scripts:
        rules.append(OwnScripts.of(languages))
    if not filters.marks:
        rules.append(NoMarks())
    if filters.language is not None:
        rules.append(MinLanguage.of(filters.language, languages))
    return rules


def _count(pattern: str, text: str) -> int:
    return len(regex.findall(pattern, text))


def scripts_of(language: str) -> tuple[str, ...]:
    """The codes of the scripts that a language is written in; none if the language is unknown."""
    import langcodes  # not at the top: commands without text start faster

    base = base_language(language)
    if base in _SEVERAL_SCRIPTS:
        return _SEVERAL_SCRIPTS[base]
    if len(base) != 2 or not langcodes.tag_is_valid(base):  # longer codes are words as well
        return ()
    script = str(langcodes.get(find_language(language) or base).maximize().script)
    return _WRITING_SYSTEMS.get(script, (script,))


def is_foreign(text: str, scripts: Sequence[str]) -> bool:
    """Whether a text has letters of a script, and at most half of them are of these. `ー` and `ʼ` are of no one script."""
    letters = "".join(regex.findall(r"(?V1)[\p{L}--\p{Script=Common}]", text))
    of_scripts = "|".join(rf"\p{{Script={script}}}" for script in scripts)
    return bool(letters) and 2 * _count(of_scripts, letters) <= len(letters)


@cache
def identifier() -> Any:
    """The identifier of py3langid, whose model takes a second to load. Raises UsageError if it is not installed."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise UsageError("The filter 'language' needs py3langid: pip install \"attentional-nmt[langid]\".") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
