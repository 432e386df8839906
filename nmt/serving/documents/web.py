"""HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nmt.serving.documents.document import Document, Languages, decode

_LANGUAGE = re.compile(r"(<html\b[^<>]{0,200}\blang=[\"']?)([\w-]+)", re.IGNORECASE)
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([\w.:-]+)", re.IGNORECASE)


def read_web_page(content: bytes, languages: Languages) -> Document:
    """The page as one text, in the encoding that it names. Raises DataError."""
    charset = _CHARSET.search(content, 0, 1024)
    text, encode = decode(content, charset[1].decode() if charset else "utf-8", errors="xmlcharrefreplace")

    def write(translations: Sequence[str]) -> bytes:
        [page] = translations
        return encode(_LANGUAGE.sub(rf"\g<1>{languages[1]}", page, count=1))

    return Document([text], write, markup="html")
