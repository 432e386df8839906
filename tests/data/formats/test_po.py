"""PO files: entries, plurals, escapes, languages, and lines that belong to no PO file."""

import json
import logging
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.formats.loading import load, refusal

HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
CONTENT = (
    HEADER
    + r"""# a translator
#: main.c:12
msgctxt "menu"
msgid "Open \"%s\""
msgstr "\"%s\" "
"öffnen"

#, c-format, fuzzy
#| msgid "Close"
msgid "Close it"
msgstr "Schließen"
msgid "Untranslated"
msgstr ""

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"
msgid "one\ntwo\ttabs\x41\101\\"
msgstr ""
"eins\n"
"zwei"

#~ msgid "Old"
#~ msgstr "Alt"
"""
)
PAIRS = [
    ('Open "%s"', '"%s" öffnen'),
    ("%d file", "%d Datei"),
    ("%d files", "%d Dateien"),
    ("one two\ttabsAA\\", "eins zwei"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "messages.po"


def test_entries_in_both_directions(path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text(CONTENT, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert load(path) == PAIRS
    assert caplog.messages == [f"{path}: skipped 2 messages without translation, or fuzzy."]
    assert load(path, "de", "en") == [(target, source) for source, target in PAIRS]
    (tmp_path / "messages.po.xz").write_bytes(lzma.compress(CONTENT.replace("\n", "\r\n").encode()))
    assert load(tmp_path / "messages.po.xz") == PAIRS


@pytest.mark.parametrize(
    ("fields", "languages"),
    [
        ("Language: pt_BR\\n", ("en", "pt")),
        ("Language: sr@latin\\n", ("en", "sr")),
        ("Language: en\\nX-Source-Language: fr\\n", ("fr", "en")),
        ("Language: \\n", ("en", "ja")),
        ("", ("en", "ja")),
    ],
)
def test_the_header_names_the_languages(path: Path, fields: str, languages: tuple[str, str]) -> None:
    path.write_text(f'msgid ""\nmsgstr "{fields}"\nmsgid "a"\nmsgstr "b"\n')
    assert load(path, *languages) == [("a", "b")]


def test_comments_need_no_space_and_only_the_next_message_is_fuzzy(path: Path) -> None:
    obsolete = '#, fuzzy\n#~ msgid "old"\n#~ msgstr "alt"\n'
    fuzzy = '#comment\n#,fuzzy\nmsgctxt "x"\nmsgid "b"\nmsgstr "B"\n'
    path.write_text(f'{HEADER}{obsolete}\nmsgid "a"\nmsgstr "A"\n{fuzzy}msgid"c"\nmsgstr"C"\n{obsolete}')
    assert load(path) == [("a", "A"), ("c", "C")]


def test_without_a_header_the_source_is_english(path: Path) -> None:
    path.write_text('msgid "a"\nmsgstr "b"\n')
    assert load(path, "ja", "en") == [("b", "a")]
    assert refusal(path, "de", "fr").endswith("translates en to an unnamed language, but the languages are de and fr.")


def test_a_language_with_one_form_has_no_plural(path: Path) -> None:
    path.write_text('msgid "%d dog"\nmsgid_plural "%d dogs"\nmsgstr[0] "x"\n')
    assert load(path, "en", "ja") == [("%d dog", "x")]


RUSSIAN = "n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"


@pytest.mark.parametrize(
    ("rule", "forms", "expected"),
    [
        (RUSSIAN, ["кот", "кота", "котов"], [("cat", "кот"), ("cats", "кота"), ("cats", "котов")]),
        (
            "n%100==1 ? 1 : n%100==2 ? 2 : 0",
            ["mačk", "mačka", "mački"],
            [("cat", "mačka"), ("cats", "mačk"), ("cats", "mački")],
        ),
        ("n != 1", ["Kater", "Kater"], [("cat", "Kater"), ("cats", "Kater")]),
        ("n == 1 ? 0 : n == 2 ? 1 : 2", ["a", "b", "b"], [("cat", "a"), ("cats", "b")]),
        ("0", ["猫"], [("cat", "猫")]),
        ("n / 0", ["a", "b"], [("cat", "a"), ("cats", "b")]),
        ("import os", ["a", "b"], [("cat", "a"), ("cats", "b")]),
    ],
)
def test_the_plural_pairs_with_all_forms_but_that_of_one(
    path: Path, rule: str, forms: list[str], expected: list[tuple[str, str]]
) -> None:
    lines = "".join(f'msgstr[{number}] "{form}"\n' for number, form in enumerate(forms))
    header = f'msgid ""\nmsgstr "Plural-Forms: nplurals={len(forms)}; plural={rule};\\n"\n'
    path.write_text(f'{header}msgid "cat"\nmsgid_plural "cats"\n{lines}', encoding="utf-8")
    assert load(path, "en", "sl") == expected


def test_escapes_are_bytes_of_utf_8(path: Path) -> None:
    path.write_text(HEADER + r'msgid "gr\303\274n"' + "\n" + r'msgstr "\xc3\xbc \ü"', encoding="utf-8")
    assert load(path) == [("grün", "ü ü")]
    path.write_text(HEADER + r'msgid "\303"')
    assert refusal(path) == f"{path}, line 6: an escape is not valid UTF-8 (byte 0xC3)."


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (HEADER + 'msgid "a"\nmsgstr "b\n', ", line 7: not a line of a PO file: 'msgstr \"b'."),
        (HEADER + 'msgid "a"\n', ", line 6: the file ends before msgstr."),
        (HEADER + 'msgid "a"\nmsgid "b"\n', ", line 7: msgid is out of place."),
        (HEADER + '# b\nmsgstr "b"\n', ", line 7: msgstr is out of place."),
        ('"a"\n', ", line 1: a text is out of place."),
        ("[section]\n", ", line 1: not a line of a PO file: "),
        (
            HEADER.replace("de", "fr") + 'msgid "a"\nmsgstr "b"\n',
            " translates en to fr, but the languages are en and de.",
        ),
        (HEADER, ": it has no line."),
        ("", ": it has no line."),
    ],
)
def test_bad_files_are_refused_in_a_sentence(path: Path, content: str, problem: str) -> None:
    path.write_text(content)
    assert problem in refusal(path)


def test_text_that_is_not_utf_8_is_named(path: Path) -> None:
    path.write_bytes(HEADER.encode() + b'msgid "a"\nmsgstr "\xe9"\n')
    assert refusal(path) == f"{path}, line 7: not valid UTF-8 (byte 0xE9)."


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x7f"), min_size=1)


@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("round") / "trip.po"
    lines = (
        f"msgid {json.dumps(s, ensure_ascii=False)}\nmsgstr {json.dumps(t, ensure_ascii=False)}\n" for s, t in pairs
    )
    path.write_text(HEADER + "".join(lines), encoding="utf-8")
    assert load(path) == pairs
