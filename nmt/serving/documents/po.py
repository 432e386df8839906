"""PO files of GNU gettext, and their templates (POT)."""

from __future__ import annotations

import gettext
import re
from collections.abc import Sequence
from itertools import chain

import polib

from nmt.errors import DataError
from nmt.serving.documents.document import Document, Languages, check_languages, decode

_CHARSET = re.compile(rb"charset=([\w.:-]+)")
_FORMS = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=([^;]+)")
_TWO_FORMS = "nplurals=2; plural=(n != 1);"
_MOST_FORMS = 10


class _Lines(str):
    """Content that polib cuts at line ends alone, not at other characters that separate lines."""

    __slots__ = ()

    def splitlines(self, keepends: bool = False) -> list[str]:
        return self.split("\n")


def read_po(content: bytes, languages: Languages) -> Document:
    """The messages without a translation; their translations are fuzzy, for somebody to review.

    Messages that are translated, fuzzy or obsolete stay as they are. Of a message with plurals the form for n = 1 is the
    translation of msgid, the other forms that of msgid_plural. The file that is written is UTF-8. Raises DataError.
    """
    file = _parse(content)
    header = file.metadata
    check_languages(header.get("X-Source-Language"), header.get("Language"), languages)
    messages = [entry for entry in file if entry.msgid and not (entry.translated() or entry.fuzzy or entry.obsolete)]
    sides = [[entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid] for entry in messages]

    def write(translations: Sequence[str]) -> bytes:
        rest = iter(translations)
        forms, one = _forms(file)
        for entry, texts in zip(messages, sides, strict=True):
            _fill(entry, [next(rest) for _ in texts], forms, one)
        header["Language"] = header.get("Language") or languages[1]
        header["Content-Type"] = "text/plain; charset=UTF-8"
        return f"{file}\n".encode("utf-8", "replace")

    return Document(list(chain.from_iterable(sides)), write)


def _parse(content: bytes) -> polib.POFile:
    charset = _CHARSET.search(content)
    name = charset[1].decode() if charset and charset[1] != b"CHARSET" else "utf-8"  # as templates have it
    text, _ = decode(content, name)
    try:
        # A text that is the name of a file would be read from there; no name has a line end.
        return polib.pofile(_Lines(text.replace("\r\n", "\n") + "\n"), encoding="utf-8")
    except OSError as error:
        line = re.search(r"line (\d+)", str(error))
        raise DataError(f"The file is no PO file: line {line[1] if line else 1} is not one of it.") from None


def _forms(file: polib.POFile) -> tuple[int, int]:
    """How many plural forms the language has, and which of them is for n = 1; English ones unless the header says."""
    match = _FORMS.search(file.metadata.get("Plural-Forms", ""))
    try:
        count, one = (int(match[1]), int(gettext.c2py(match[2])(1))) if match else (0, 0)
    except (ValueError, ArithmeticError):
        count, one = 0, 0
    if 0 < count <= _MOST_FORMS and 0 <= one < count:
        return count, one
    if any(entry.msgid_plural for entry in file):
        file.metadata["Plural-Forms"] = _TWO_FORMS
    return 2, 0


def _fill(entry: polib.POEntry, translations: Sequence[str], forms: int, one: int) -> None:
    """Fill in what a message lacks."""
    if entry.msgid_plural:
        singular, plural = translations
        filled = {form: singular if form == one and forms > 1 else plural for form in range(forms)}
        entry.msgstr_plural = filled | {form: text for form, text in entry.msgstr_plural.items() if text}
    else:
        [entry.msgstr] = translations
    entry.flags.append("fuzzy")
