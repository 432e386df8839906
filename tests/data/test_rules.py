"""Rules on text remove what they say they remove, in every script."""

import re
import sys
import unicodedata
from importlib.metadata import version

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.data import rules as module
from nmt.data.catalogue import entries
from nmt.data.rules import MaxWordLength, MinLetters, NoCopies, NoMarks, OwnScripts, TextRule, text_rules
from nmt.errors import UsageError
from nmt.recipe import FiltersConfig
from nmt.text.scripts import UNSPACED

texts = st.text(st.characters(exclude_categories=["Cn", "Cs"]), max_size=30)
ALL: list[TextRule] = [NoCopies(), MaxWordLength(5), MinLetters(0.5), OwnScripts.of(("en", "el"))]


@given(source=texts, target=texts)
@example(" New  York", "New York ")
@example("\u3000東京", "東京")
@example("e\u0301+", "हिन्दी में 12")
@settings(max_examples=100)
def test_rules_agree_with_a_plain_reading(source: str, target: str) -> None:
    sides = (source, target)
    assert NoCopies().removes(*sides) == (source.split() == target.split())
    words = re.split(rf"[{UNSPACED}]|\s", " ".join(sides))
    assert MaxWordLength(5).removes(*sides) == (max(map(len, words)) > 5)
    visible = [[char for char in side if not char.isspace()] for side in sides]
    letters = [[char for char in side if unicodedata.category(char)[0] in "LM"] for side in visible]
    assert MinLetters(0.5).removes(*sides) == any(
        len(some) < 0.5 * len(every) for some, every in zip(letters, visible, strict=True)
    )


@pytest.mark.parametrize(
    ("text", "has_marks"),
    [
        ("the Küc@@ henlampe", True),
        ("mo@@", True),
        ("▁the ▁lamp", True),
        ("it ' ￭s", True),
        ("play ##ing", True),
        ("&quot;big&#39;", True),
        ("mail me@@home or R&D; a & b;", False),
        ("## Title #1 is &c;", False),
    ],
)
def test_marks_of_subwords_and_entities(text: str, has_marks: bool) -> None:
    assert NoMarks().removes(text, "fine") == NoMarks().removes("fine", text) == has_marks


@pytest.mark.parametrize(
    ("language", "own", "foreign"),
    [
        ("en", "naïve café, №1", "привет"),
        ("de-AT", "Straße", "Στρασσε"),
        ("ja", "東京タワーへ行きましょう", "Let's go to Tokyo"),
        ("ja", "スーパー", "수퍼"),
        ("ru", "Мы прочитали The Times", "Moskva"),
        ("ko", "서울", "首爾"),
        ("zh", "我在 IBM 工作很久了", "ひらがな"),
        ("sr", "добро", "καλό"),
        ("fr", "12 + 3 = 15", "十五"),
        ("fr", "", "аb"),
    ],
)
def test_text_in_its_own_scripts_passes(language: str, own: str, foreign: str) -> None:
    rule = OwnScripts.of(("en", language))
    assert not rule.removes("fine", own)
    assert rule.removes("fine", foreign)
    assert OwnScripts.of((language, "en")).removes(foreign, "fine")


def test_every_language_of_the_catalogue_with_a_code_of_two_letters_has_scripts_that_unicode_knows() -> None:
    languages = {code for entry in entries() for code in (*entry.languages, *"-".join(entry.pairs).split("-")) if code}
    assert {"en", "ja", "yi", "am"} <= languages
    for language in (code for code in languages if len(code) == 2):
        assert OwnScripts.of(("en", language)).removes("fine", "\N{CHEROKEE LETTER A}")


def test_a_language_of_unknown_script_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^The filter 'scripts' does not know how 'tlh' is written: leave it out\.$"):
        text_rules(FiltersConfig(scripts=True), ("en", "tlh"))


def test_rules_come_in_one_order_and_only_if_they_are_set() -> None:
    pytest.importorskip("py3langid")
    assert text_rules(FiltersConfig(), ("src", "tgt")) == []
    settings = FiltersConfig(language=0.5, marks=False, scripts=True, min_letters=0.0, max_word_length=9, copies=False)
    names = [rule.name for rule in text_rules(settings, ("en", "de"))]
    assert names == ["copy", "long_word", "letters", "script", "marks", "language"]


# --- language identification --------------------------------------------------------------------------------------


def test_languages_are_identified() -> None:
    pytest.importorskip("py3langid")
    rule = text_rules(FiltersConfig(language=0.5), ("en", "de-DE"))[0]
    assert repr(rule) == f"MinLanguage(probability=0.5, languages=('en', 'de'), version='{version('py3langid')}')"
    english, german = "The committee will meet again next week.", "Der Ausschuss wird nächste Woche wieder tagen."
    assert not rule.removes(english, german)
    for source, target in ((german, english), (english, english), (german, german)):
        assert rule.removes(source, target)
    with pytest.raises(UsageError, match=r"'language' does not know 'tlh', only ace, .*: leave it out"):
        text_rules(FiltersConfig(language=0.5), ("tlh", "de"))


def test_without_its_package_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    module.identifier.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    problem = r"^The filter 'language' needs py3langid: pip install \"attentional-nmt\[langid\]\"\.$"
    with pytest.raises(UsageError, match=problem):
        text_rules(FiltersConfig(language=0.5), ("en", "de"))
