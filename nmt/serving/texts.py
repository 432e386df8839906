"""Texts as lines to translate, and translated lines as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape

_LINE_END = re.compile(r"(\r?\n)")
_TAG = re.compile(r"(<!--.*?-->|<!\[CDATA\[.*?\]\]>|</?[A-Za-z!?][^>]*>)", re.DOTALL)
_OPAQUE = re.compile(
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)"
    r"(?:(script|style|code|pre|textarea)\b"
    r"|([a-z][\w:-]*)(?=\s)(?:[^>\"']|\"[^\"]*\"|'[^']*')*?\s"
    r"(?:translate\s*=\s*[\"']?no\b|class\s*=\s*(?:notranslate\b|\"[^\">]*\bnotranslate\b|'[^'>]*\bnotranslate\b)))",
    re.IGNORECASE,
)
"""Elements whose content is not translated: code, and those whose author says so, other than such as have no content."""


@dataclass(frozen=True)
class SplitText:
    """A text cut into what is translated and what is kept.

    Attributes:
        parts: what is translated and what is kept, in turn, beginning and ending with what is kept.
        is_html: whether the text is HTML, in which translations are escaped.
    """

    parts: tuple[str, ...]
    is_html: bool = False

    @property
    def lines(self) -> list[str]:
        """What is translated; it is never blank."""
        lines = list(self.parts[1::2])
        return [unescape(line) for line in lines] if self.is_html else lines

    def join(self, translations: Sequence[str]) -> str:
        """The text with its lines replaced by their translations."""
        texts = [escape(text, quote=False) for text in translations] if self.is_html else translations
        pairs = zip(texts, self.parts[2::2], strict=True)
        return self.parts[0] + "".join(text + between for text, between in pairs)


def split_lines(text: str) -> SplitText:
    r"""Cut a text into lines. Line ends (`\n` or `\r\n`) and blank lines are kept."""
    pieces = _LINE_END.split(text)
    parts = [pieces[number] if number % 2 or pieces[number].strip() else "" for number in range(len(pieces))]
    return SplitText(tuple(_alternating(parts)))


def split_html(text: str) -> SplitText:
    """Cut HTML into its stretches of text. Tags, comments and the content of scripts, styles and code are kept."""
    return SplitText(tuple(_alternating(list(_markup(text)), trims=True)), is_html=True)


def _alternating(pieces: Sequence[str], *, trims: bool = False) -> Iterator[str]:
    """What is kept and what is translated in turn: odd pieces and blank ones are kept, and white space if `trims`."""
    before = ""
    for number, piece in enumerate(pieces):
        if number % 2 or not piece.strip():
            before += piece
            continue
        core = piece.strip() if trims else piece
        start = piece.index(core)
        yield before + piece[:start]
        yield core
        before = piece[start + len(core) :]
    yield before


def _markup(text: str) -> Iterator[str]:
    """Stretches of text and tags in turn; an element that is not translated counts as one tag."""
    pieces = _TAG.split(text)
    number = 0
    while number < len(pieces):
        yield pieces[number]
        if number + 1 == len(pieces):
            return
        tag, number = pieces[number + 1], number + 2
        if (opaque := _OPAQUE.match(tag)) and not tag.endswith("/>"):
            name, depth = (opaque[1] or opaque[2]).lower(), 1
            is_nested = opaque[1] is None
            while number < len(pieces):
                tag += pieces[number]
                if number + 1 == len(pieces):
                    number += 1
                    break
                closing, number = pieces[number + 1], number + 2
                tag += closing
                depth += is_nested and _begins(closing, f"<{name}") and not closing.endswith("/>")
                depth -= _begins(closing, f"</{name}")
                if depth == 0:
                    break
        yield tag


def _begins(tag: str, start: str) -> bool:
    """Whether a tag is of the name that `start` ends with, not of a longer one."""
    return tag.lower().startswith(start) and tag[len(start)] in " \t\r\n\f/>"
