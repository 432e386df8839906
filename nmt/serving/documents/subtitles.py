"""Subtitles: SubRip (SRT)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

from nmt.errors import DataError
from nmt.serving.documents.document import Document, Languages, decode

_TIME = r"\d+:\d\d:\d\d[,.]\d+"
_TIMES = re.compile(rf"\s*{_TIME}\s+-->\s+{_TIME}")
_SPEAKER = re.compile(r"\s*[-–—]")
"""How the line of another speaker begins."""
_WORD = re.compile(r"(?:<[^<>]*>|\S)+")
_WIDTH = 42
"""Characters per line, as is usual."""


def read_subtitles(content: bytes, _: Languages) -> Document:
    """The cues; the lines that one speaker says are one text. It is HTML, since `<i>` may be in it. Raises DataError."""
    text, encode = decode(content)
    lines, speeches = _cut(text)
    if text.strip() and not speeches:
        raise DataError("The file has no subtitles: no line has two times, as in 00:00:01,000 --> 00:00:02,500.")

    def write(translations: Sequence[str]) -> bytes:
        spoken = iter(translations)
        written = [_wrapped(unescape(next(spoken))) if line is None else line for line in lines]
        return encode("\n".join(written))

    return Document([speech.replace("&", "&amp;") for speech in speeches], write, markup="html")


def _cut(text: str) -> tuple[list[str | None], list[str]]:
    """The lines that stay, with None in place of each speech, and the speeches, as one line each."""
    lines: list[str | None] = []
    speeches: list[list[str]] = []
    is_cue = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if not is_cue or not line.strip():
            is_cue = _TIMES.match(line) is not None
            lines.append(line)
        elif lines[-1] is None and not _SPEAKER.match(line):
            speeches[-1].append(line.strip())
        else:
            lines.append(None)
            speeches.append([line.strip()])
    return lines, [" ".join(speech) for speech in speeches]


def _wrapped(text: str) -> str:
    """A speech in lines of the usual width; a tag is never cut."""
    lines: list[str] = []
    for word in _WORD.findall(text):
        if lines and len(lines[-1]) + 1 + len(word) <= _WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)
