"""What every format of documents has in common."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.errors import DataError
from nmt.text.inline import InlineText, Piece
from nmt.text.languages import best_match

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""Encodings by the mark at the start of a file."""
Languages = tuple[str, str]
"""Codes of the source and the target language."""


@dataclass(frozen=True)
class Document:
    """A file that has been read, with its texts as they stand in it.

    Attributes:
        texts: what is to be translated, in order.
        write: the file with a translation in place of each text.
        markup: whether the texts and their translations are plain or HTML.
    """

    texts: list[str]
    write: Callable[[Sequence[str]], bytes]
    markup: Literal["text", "html"] = "text"


@dataclass(frozen=True)
class InlineDocument:
    """A file that has been read, with texts that have inline codes.

    Attributes:
        texts: what is to be translated, in order; each is made when it is asked for, and raises DataError if it is too long.
        write: the file with a translation in place of each text, once all have been asked for.
    """

    texts: Iterator[InlineText]
    write: Callable[[Sequence[Sequence[Piece]]], bytes]


def decode(content: bytes, encoding: str = "utf-8", *, errors: str = "replace") -> tuple[str, Callable[[str], bytes]]:
    """The text of a file without its byte order mark, and what makes bytes of a text in the same way. Raises DataError.

    Args:
        content: the file.
        encoding: its encoding, unless it has a byte order mark.
        errors: what becomes of new characters that the encoding lacks, as for `str.encode`.
    """
    mark = next((mark for mark in _MARKS if content.startswith(mark)), b"")
    encoding = _MARKS.get(mark, encoding)
    try:
        text = content[len(mark) :].decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise DataError(f"The file is not text in {encoding.upper()}.") from None
    return text, lambda new: mark + new.encode(encoding, errors)


def check_languages(source: str | None, target: str | None, languages: Languages) -> None:
    """Raise DataError if a file names other languages than it is to be translated from and to; None and "" fit any."""
    for code, language, other in zip((source, target), languages, languages[::-1], strict=True):
        if code and best_match([code], language, other) is None:
            raise DataError(
                f"The file is in {source or 'an unnamed language'} and {target or 'an unnamed language'}, "
                f"not in {languages[0]} and {languages[1]}."
            )
