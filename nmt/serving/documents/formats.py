"""The formats of documents, by the end of the file's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nmt.serving.documents.document import Document, InlineDocument, Languages
from nmt.serving.documents.docx import read_docx
from nmt.serving.documents.plain import read_plain
from nmt.serving.documents.po import read_po
from nmt.serving.documents.subtitles import read_subtitles
from nmt.serving.documents.tmx import read_tmx
from nmt.serving.documents.web import read_web_page
from nmt.serving.documents.xliff import read_xliff


@dataclass(frozen=True)
class Format:
    """How files are read whose name ends so.

    Attributes:
        read: raises DataError for a file that is not of the format, or in other languages.
        media_type: of what is written.
    """

    read: Callable[[bytes, Languages], Document | InlineDocument]
    media_type: str


FORMATS: dict[str, Format] = {
    ".txt": Format(read_plain, "text/plain"),
    ".html": Format(read_web_page, "text/html"),
    ".htm": Format(read_web_page, "text/html"),
    ".docx": Format(read_docx, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ".xliff": Format(read_xliff, "application/xliff+xml"),
    ".xlf": Format(read_xliff, "application/xliff+xml"),
    ".tmx": Format(read_tmx, "application/xml"),
    ".srt": Format(read_subtitles, "application/x-subrip"),
    ".po": Format(read_po, "text/x-gettext-translation"),
    ".pot": Format(read_po, "text/x-gettext-translation"),
}
