"""PO files and templates, filled in."""

import polib
import pytest

from nmt.errors import DataError
from nmt.serving.documents.po import read_po

LANGUAGES = ("en", "de")
HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
POLISH = HEADER.replace("de", "pl") + (
    '"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\\n"\n'
)
PLURAL = '\nmsgid "one dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'


def filled(content: str, languages: tuple[str, str] = LANGUAGES) -> tuple[list[str], polib.POFile]:
    """What is to be translated, and the file with it in capitals."""
    document = read_po(content.encode(), languages)
    return document.texts, polib.pofile(document.write([text.upper() for text in document.texts]).decode())


def test_messages_without_a_translation_are_filled_in_as_fuzzy() -> None:
    content = HEADER + (
        '\n#. a hint\n#: main.c:5\n#, c-format\nmsgid "a dog\\n"\n"runs"\nmsgstr ""\n'
        '\nmsgctxt "menu"\nmsgid "file"\nmsgstr "Datei"\n'
        '\n#, fuzzy\nmsgid "almost"\nmsgstr "fast"\n'
        '\n#~ msgid "old"\n#~ msgstr ""\n'
    )
    texts, file = filled(content)
    assert texts == ["a dog\nruns"]
    dog, menu, almost, old = file
    assert (dog.msgstr, dog.flags, dog.comment) == ("A DOG\nRUNS", ["c-format", "fuzzy"], "a hint")
    assert dog.occurrences == [("main.c", "5")]
    assert (menu.msgctxt, menu.msgstr, menu.flags) == ("menu", "Datei", [])
    assert (almost.msgstr, almost.flags) == ("fast", ["fuzzy"])
    assert old.obsolete


@pytest.mark.parametrize(
    ("content", "languages", "forms"),
    [
        (HEADER + PLURAL, LANGUAGES, {0: "ONE DOG", 1: "%D DOGS"}),
        (POLISH + PLURAL, ("en", "pl"), {0: "ONE DOG", 1: "%D DOGS", 2: "%D DOGS"}),
        (HEADER + '"Plural-Forms: nplurals=1; plural=0;\\n"\n' + PLURAL, LANGUAGES, {0: "%D DOGS"}),
        (HEADER + '"Plural-Forms: nplurals=2; plural=1/0;\\n"\n' + PLURAL, LANGUAGES, {0: "ONE DOG", 1: "%D DOGS"}),
        (HEADER + '"Plural-Forms: nplurals=99; plural=n;\\n"\n' + PLURAL, LANGUAGES, {0: "ONE DOG", 1: "%D DOGS"}),
        (HEADER + PLURAL.replace('[0] ""', '[0] "ein Hund"'), LANGUAGES, {0: "ein Hund", 1: "%D DOGS"}),
    ],
)
def test_each_plural_form_is_filled_in(content: str, languages: tuple[str, str], forms: dict[int, str]) -> None:
    _, file = filled(content, languages)
    assert file[0].msgstr_plural == forms
    assert file.metadata["Plural-Forms"].startswith(f"nplurals={len(forms)};")


def test_a_template_gets_its_language_and_charset() -> None:
    content = 'msgid ""\nmsgstr ""\n"Language: \\n"\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
    texts, file = filled(content + '\nmsgid "é"\nmsgstr ""\n')
    assert texts == ["é"]
    assert file.metadata == {"Language": "de", "Content-Type": "text/plain; charset=UTF-8"}


def test_only_line_ends_separate_lines() -> None:
    document = read_po('msgid "a\u2028b"\r\n"c"\r\nmsgstr ""\r\n'.encode(), LANGUAGES)
    assert document.texts == ["a\u2028bc"]


def test_the_charset_of_the_header_is_read_and_utf_8_written() -> None:
    content = HEADER.replace("UTF-8", "ISO-8859-1") + '\nmsgid "é"\nmsgstr ""\n'
    document = read_po(content.encode("latin-1"), LANGUAGES)
    assert document.texts == ["é"]
    written = document.write(["\u0416"]).decode("utf-8")
    assert 'msgstr "\u0416"' in written
    assert "charset=UTF-8" in written


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'msgid "a"\nmsgstr "b\n\nnonsense', "The file is no PO file: line 4 is not one of it."),
        (b'msgid "a "b"\nmsgstr ""', "The file is no PO file: line 1 is not one of it."),
        (b"\xff\xfe\xff", "The file is not text in UTF-16-LE."),
        (b'msgid ""\nmsgstr "Content-Type: text/plain; charset=no-such\\n"\n', "The file is not text in NO-SUCH."),
        (b'msgid ""\nmsgstr "Content-Type: text/plain; charset=zip\\n"\n', "The file is not text in ZIP."),
        (HEADER.replace("de", "fr").encode(), "The file is in an unnamed language and fr, not in en and de."),
        (
            b'msgid ""\nmsgstr "X-Source-Language: cs\\nLanguage: de\\n"\n',
            "The file is in cs and de, not in en and de.",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        read_po(content, LANGUAGES)
    assert str(caught.value) == sentence


def test_the_name_of_a_file_is_not_opened() -> None:
    with pytest.raises(DataError, match="line 1"):
        read_po(b"/etc/passwd", LANGUAGES)
