"""Texts as lines to translate, and translated lines as texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nmt.text.inline import Code, InlineText, Piece
from nmt.text.markup import html_blocks, html_text
from nmt.text.protection import protect, protect_pieces

_LINE_END = re.compile(r"(\r?\n)")


@dataclass(frozen=True)
class SplitText:
    """A text cut into what is translated and what is kept.

    Attributes:
        lines: what is translated, with its inline codes; it is never blank.
        kept: what is before the first line, between lines, and after the last one.
        is_html: whether the text is HTML, in which translations are escaped.
    """

    lines: tuple[InlineText, ...]
    kept: tuple[str, ...]
    is_html: bool = False

    def write(self, pieces: Iterable[Piece]) -> str:
        """A line or its translation as it stands in the text."""
        return "".join(piece.text if isinstance(piece, Code) else self._written(piece) for piece in pieces)

    def join(self, translations: Sequence[str]) -> str:
        """The text with its lines replaced by translations that `write` made."""
        pairs = zip(translations, self.kept[1:], strict=True)
        return self.kept[0] + "".join(text + between for text, between in pairs)

    def _written(self, text: str) -> str:
        return html_text(text) if self.is_html else text


def split_lines(text: str, *, protects: bool = True) -> SplitText:
    r"""Cut a text into lines. Line ends (`\n` or `\r\n`) and blank lines are kept.

    Args:
        text: any text.
        protects: whether addresses, placeholders and tags are inline codes.
    """
    pieces = _LINE_END.split(text)
    split = _Splitting()
    for number, piece in enumerate(pieces):
        if number % 2 or not piece.strip():
            split.keep(piece)
        else:
            split.add(protect(piece) if protects else InlineText([piece]))
    return split.result(is_html=False)


def split_html(text: str, *, protects: bool = True) -> SplitText:
    """Cut HTML into the texts of its blocks. Tags inside a block are inline codes; markup between blocks is kept.

    Args:
        text: any text.
        protects: whether addresses and placeholders are inline codes too.
    """
    split = _Splitting()
    for block in html_blocks(text):
        if isinstance(block, str):
            split.keep(block)
        else:
            split.add(InlineText(_protected_html(block) if protects else block))
    return split.result(is_html=True)


def _protected_html(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        parts = protect_pieces([piece])
        yield from map(_escaped, parts) if isinstance(piece, str) else parts


def _escaped(piece: Piece) -> Piece:
    """A code as it stands in HTML."""
    return replace(piece, text=html_text(piece.text)) if isinstance(piece, Code) else piece


class _Splitting:
    """Collects what is translated and what is kept."""

    def __init__(self) -> None:
        self._lines: list[InlineText] = []
        self._kept: list[list[str]] = [[]]

    def keep(self, text: str) -> None:
        self._kept[-1].append(text)

    def add(self, line: InlineText) -> None:
        self._lines.append(line)
        self._kept.append([])

    def result(self, *, is_html: bool) -> SplitText:
        return SplitText(tuple(self._lines), tuple(map("".join, self._kept)), is_html)
