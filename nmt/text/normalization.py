"""The normal form of a line, the same for training, translating, scoring and aligning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import regex

if TYPE_CHECKING:
    from nmt.recipe import Normalization

_UNICODE_FORMS: dict[Normalization, Literal["NFC", "NFKC"] | None] = {"nfc": "NFC", "nfkc": "NFKC", "none": None}
_SPACES = regex.compile(r"[\p{Zs}\p{Zl}\p{Zp}\p{Cc}]+")
_CONTROLS = regex.compile(r"[\p{Zl}\p{Zp}\p{Cc}]+")
_SURROGATES = regex.compile(r"[\ud800-\udfff]")
_REPEATED = regex.compile(" {2,}")
_INVISIBLE = regex.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")
"""Soft hyphens, zero-width spaces, marks of direction, invisible operators and byte order marks."""
_NEEDLESS_JOINERS = regex.compile(
    # after a letter or mark of a script that joins its letters, such as Arabic or Devanagari, they are spelling
    r"(?<![[\p{L}\p{M}]--[\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]])"
    # between the parts of an emoji too
    r"(?<![\p{Extended_Pictographic}\ufe0f\U0001f3fb-\U0001f3ff](?=\u200d\p{Extended_Pictographic}))"
    r"[\u200c\u200d]",
    regex.VERSION1,
)
_SUSPECTS = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\xa0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2069\u3000\ud800-\udfff\ufeff]"
)
"""Characters that a normal line has not, or in some places only; line feeds separate the lines that are looked at."""


@dataclass(frozen=True)
class Normalizer:
    """Brings lines into a normal form.

    * `none`: control characters are spaces, lone surrogates U+FFFD; there are no outer and no repeated spaces.
    * `nfc`: also Unicode's canonical composition; every space is U+0020; soft hyphens and invisible marks are removed, but for
      joiners between letters that need them (Persian, Indic scripts) and in emoji.
    * `nfkc`: also compatibility composition: full-width letters, ligatures and superscripts are plain characters.
    """

    form: Normalization = "nfc"

    def __call__(self, line: str) -> str:
        """The normal form of a line, which is a single line for any reader."""
        return line if self.is_normal([line]) else self._normalized(line)

    def all(self, lines: Sequence[str]) -> list[str]:
        """The normal form of each line."""
        return list(lines) if self.is_normal(lines) else [self(line) for line in lines]

    def is_normal(self, lines: Sequence[str]) -> bool:
        """Whether the lines are surely in the normal form already; of other lines it may be false too."""
        text, form = "\n".join(lines), _UNICODE_FORMS[self.form]
        return (
            (text.isascii() or form is None or unicodedata.is_normalized(form, text))
            and "  " not in text
            and "\n " not in text
            and " \n" not in text
            and not text.startswith(" ")
            and not text.endswith(" ")
            and text.count("\n") == len(lines) - 1
            and not _SUSPECTS.search(text)
        )

    def _normalized(self, line: str) -> str:
        form = _UNICODE_FORMS[self.form]
        if form is None:
            line = _CONTROLS.sub(" ", line)
        else:
            line = _INVISIBLE.sub("", unicodedata.normalize(form, line))
            line = unicodedata.normalize(form, _NEEDLESS_JOINERS.sub("", line))
            line = _SPACES.sub(" ", line)
        normal: str = _REPEATED.sub(" ", _SURROGATES.sub("\ufffd", line))
        return normal.strip(" ")
