"""Read PO files of GNU gettext, through polib, which holds a file in memory."""

import gettext
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import polib

from nmt.data.lines import read_lines
from nmt.data.tables import Pairs
from nmt.errors import DataError
from nmt.runtime.archive_members import ArchiveMember
from nmt.runtime.wording import counted, excerpt
from nmt.text.languages import is_swapped

_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[[0-9]\])?)\s*)?"((?:[^"\\]|\\.)*)"')
_FUZZY = re.compile(r"#,(.*[\s,])?fuzzy([\s,].*)?")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
_CONTROL = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_SOURCE = "en"
"""The language of msgid, unless the header has X-Source-Language."""
_log = logging.getLogger(__name__)


class _CheckedLines:
    """The lines of a file as polib takes them: comments left out, and only escapes that it knows.

    polib asks a text that is no path for `splitlines`; those of `str` end at more characters than line ends. It also takes a
    text without quotes for one, so each line is checked here.

    Attributes:
        where: the file and the line that is being read.
        keyword: the keyword of that line.
    """

    def __init__(self, place: Path | ArchiveMember) -> None:
        self._place = place
        self.where, self.keyword = str(place), "a text"

    def splitlines(self) -> Iterator[str]:
        """The lines. Raises DataError."""
        is_fuzzy = False
        for number, line in enumerate(map(str.strip, read_lines(self._place)), 1):
            self.where = f"{self._place}, line {number}"
            if not line or line.startswith("#"):
                is_obsolete = line.startswith("#~")
                is_fuzzy = not is_obsolete and (is_fuzzy or _FUZZY.fullmatch(line) is not None)
                continue
            match = _LINE.fullmatch(line)
            if match is None:
                raise DataError(f"{self.where}: not a line of a PO file: {excerpt(line, 60)!r}.")
            if is_fuzzy and match[1] in ("msgctxt", "msgid"):
                is_fuzzy = False
                yield "#, fuzzy"
            self.keyword = match[1] or self.keyword
            yield f'{match[1] or ""} "{polib.escape(_unescaped(match[2], self.where))}"'
        if self.keyword.startswith(("msgctxt", "msgid")):
            raise DataError(f"{self.where}: the file ends before msgstr.")


def read_po(place: Path | ArchiveMember, languages: tuple[str, str]) -> Pairs:
    """Read the translated messages, without fuzzy ones, with swapped sides if the file translates in the other direction.

    Raises:
        DataError: a line is not one of a PO file, or the file is in other languages.
    """
    lines, skipped = _CheckedLines(place), 0
    try:
        file = polib.pofile(lines, encoding="utf-8")
    except OSError:
        raise DataError(f"{lines.where}: {lines.keyword} is out of place.") from None
    fields = {name.lower(): value for name, value in file.metadata.items()}
    swapped = is_swapped((fields.get("x-source-language") or _SOURCE, fields.get("language") or None), languages, place)
    one = _singular_form(fields)
    for entry in file:
        pairs = [] if entry.fuzzy else _pairs(entry, one)
        skipped += not pairs
        for source, target in pairs:
            yield (target, source) if swapped else (source, target)
    if skipped:
        _log.warning("%s: skipped %s without translation, or fuzzy.", place, counted(skipped, "message"))


def _singular_form(fields: Mapping[str, str]) -> int:
    """The number of the form for n = 1, by the header's C expression; the first form if there is none, or none that is valid."""
    match = re.search(r"\bplural\s*=([^;]+)", fields.get("plural-forms", ""))
    try:
        return int(gettext.c2py(match[1])(1)) if match else 0
    except (ValueError, ArithmeticError):
        return 0


def _pairs(entry: polib.POEntry, one: int) -> list[tuple[str, str]]:
    """msgid with its translation, of which form `one` is for n = 1; the plural with each of the other forms."""
    forms: dict[int, str] = entry.msgstr_plural
    first = entry.msgid, forms.get(one, "") if forms else entry.msgstr
    others = [(entry.msgid_plural, text) for form, text in forms.items() if form != one]
    return [pair for pair in dict.fromkeys([first, *others]) if all(pair)]


def _unescaped(text: str, where: str) -> str:
    """Replace escapes; octal and hexadecimal ones are bytes of UTF-8. Raises DataError if they are none."""
    try:
        return _ESCAPE.sub(_byte, text.encode()).decode() if "\\" in text else text
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(f"{where}: an escape is not valid UTF-8 (byte 0x{byte:02X}).") from None


def _byte(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    return bytes([int(code, 8) % 256]) if code[:1] in b"01234567" else _CONTROL.get(code, code)
