"""Texts as lines to translate, and translated lines as texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nmt.text.inline import Code, InlineText, Piece, written
from nmt.text.markup import html_blocks, html_text
from nmt.text.protection import protect, protect_pieces

_LINE_END = re.compile(r"(\r?\n)")


@dataclass(frozen=True)
class SplitText:
    """A text cut into what is translated and what is kept.

    Attributes:
        parts: what is translated, with its inline codes, which is never blank; and what is kept.
        is_html: whether the text is HTML, in which translations are escaped.
    """

    parts: tuple[InlineText | str, ...]
    is_html: bool = False

    @property
    def lines(self) -> list[InlineText]:
        """What is translated."""
        return [part for part in self.parts if isinstance(part, InlineText)]

    def write(self, pieces: Iterable[Piece]) -> str:
        """A line or its translation as it stands in the text."""
        return written(html_text(piece) if self.is_html and isinstance(piece, str) else piece for piece in pieces)

    def join(self, translations: Sequence[str]) -> str:
        """The text with its lines replaced by translations that `write` made."""
        rest = iter(translations)
        return "".join(part if isinstance(part, str) else next(rest) for part in self.parts)


def split_lines(text: str, *, protects: bool = True) -> SplitText:
    r"""Cut a text into lines. Line ends (`\n` or `\r\n`) and blank lines are kept.

    If it protects them, addresses, placeholders and tags are inline codes.
    """
    make = protect if protects else lambda line: InlineText([line])
    return SplitText(tuple(make(part) if part.strip() else part for part in _LINE_END.split(text)))


def split_html(text: str, *, protects: bool = True) -> SplitText:
    """Cut HTML into the texts of its blocks. Tags inside a block are inline codes; markup between blocks is kept.

    If it protects them, addresses and placeholders are inline codes too.
    """
    parts = (
        block if isinstance(block, str) else InlineText(_protected_html(block) if protects else block)
        for block in html_blocks(text)
    )
    return SplitText(tuple(parts), is_html=True)


def _protected_html(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        parts = protect_pieces([piece])
        yield from map(_escaped, parts) if isinstance(piece, str) else parts


def _escaped(piece: Piece) -> Piece:
    """A code as it stands in HTML."""
    return replace(piece, text=html_text(piece.text)) if isinstance(piece, Code) else piece
