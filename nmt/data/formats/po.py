"""Read PO files of GNU gettext.

Written here instead of taken from polib, because that knows no octal escapes, and reads files whole.
"""

import gettext
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nmt.data.lines import read_lines
from nmt.data.tables import Pairs
from nmt.errors import DataError
from nmt.runtime.archive_members import ArchiveMember
from nmt.runtime.wording import counted, excerpt
from nmt.text.languages import is_swapped

_LINE = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[[0-9]+\])?)?\s*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
_CONTROL = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_SOURCE = "en"
"""The language of msgid, unless the header has X-Source-Language."""
_log = logging.getLogger(__name__)


@dataclass
class _Entry:
    texts: dict[str, str] = field(default_factory=dict)
    """By keyword: msgctxt, msgid, msgid_plural, msgstr, msgstr[0], ..."""
    is_fuzzy: bool = False

    @property
    def is_translated(self) -> bool:
        """Whether its last part, a translation, has begun."""
        return any(key.startswith("msgstr") for key in self.texts)

    @property
    def is_header(self) -> bool:
        return self.texts.get("msgid") == "" and "msgctxt" not in self.texts

    def pairs(self, one: int) -> list[tuple[str, str]]:
        """msgid with its translation, of which form `one` is for n = 1; the plural with each of the other forms."""
        texts, singular = self.texts, f"msgstr[{one}]"
        forms = [(key, text) for key, text in texts.items() if key.startswith("msgstr[")]
        first = texts["msgid"], texts.get("msgstr", texts.get(singular, ""))
        others = [(texts.get("msgid_plural", ""), text) for key, text in forms if key != singular]
        return [pair for pair in dict.fromkeys([first, *others]) if all(pair)]


def read_po(place: Path | ArchiveMember, languages: tuple[str, str]) -> Pairs:
    """Read the translated messages, without fuzzy ones, with swapped sides if the file translates in the other direction.

    Raises:
        DataError: a line is not one of a PO file, or the file is in other languages.
    """
    swapped, skipped, one = is_swapped((None, None), languages, place), 0, 0
    for number, entry in enumerate(_entries(place)):
        if not number:
            fields = _fields(entry)
            swapped, one = is_swapped(_languages(fields), languages, place), _singular_form(fields)
        if entry.is_header:
            continue
        pairs = [] if entry.is_fuzzy else entry.pairs(one)
        skipped += not pairs
        for source, target in pairs:
            yield (target, source) if swapped else (source, target)
    if skipped:
        _log.warning("%s: skipped %s without translation, or fuzzy.", place, counted(skipped, "message"))


def _fields(first: _Entry) -> Mapping[str, str]:
    """The fields of the header, if the first entry is one."""
    lines = first.texts.get("msgstr", "").split("\n") if first.is_header else []
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _singular_form(fields: Mapping[str, str]) -> int:
    """The number of the form for n = 1, by the header's C expression; the first form if there is none, or none that is valid."""
    match = re.search(r"\bplural\s*=([^;]+)", fields.get("plural-forms", ""))
    try:
        return int(gettext.c2py(match[1])(1)) if match else 0
    except (ValueError, ArithmeticError):
        return 0


def _languages(fields: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The languages that the header names."""
    return fields.get("x-source-language") or _SOURCE, fields.get("language") or None


def _entries(place: Path | ArchiveMember) -> Iterator[_Entry]:
    """The entries in order, without obsolete ones, which are comments."""
    entry, key, number = _Entry(), "", 0
    for number, line in enumerate(map(str.strip, read_lines(place)), 1):
        if not line:
            continue
        is_comment, match = line.startswith("#"), _LINE.fullmatch(line)
        if not is_comment and (match is None or not (match[1] or key)):
            raise DataError(f"{place}, line {number}: not a line of a PO file: {excerpt(line, 60)!r}.")
        if entry.is_translated and (is_comment or (match and match[1] in ("msgctxt", "msgid"))):
            yield entry
            entry = _Entry()
        if is_comment or match is None:
            entry.is_fuzzy |= line.startswith("#,") and "fuzzy" in re.split(r"[\s,]+", line)
            key = ""
            continue
        if match[1]:
            key = match[1]
            if key in entry.texts or (key.startswith("msgstr") and "msgid" not in entry.texts):
                raise DataError(f"{place}, line {number}: {key} {'again' if key in entry.texts else 'without msgid'}.")
        entry.texts[key] = entry.texts.get(key, "") + _unescaped(match[2], f"{place}, line {number}")
    if entry.is_translated:
        yield entry
    elif entry.texts:
        raise DataError(f"{place}, line {number}: the file ends before msgstr.")


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
