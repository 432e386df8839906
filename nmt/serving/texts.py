"""Texts as lines to translate, and translated lines as texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE_END = re.compile(r"(\r?\n)")


@dataclass(frozen=True)
class SplitText:
    """A text cut into lines, which are translated unless they are blank, and line ends, which are kept."""

    parts: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """What is translated."""
        return [part for part in self.parts if part.strip()]

    def join(self, translations: Sequence[str]) -> str:
        """The text with its lines replaced by their translations."""
        rest = iter(translations)
        return "".join(next(rest) if part.strip() else part for part in self.parts)


def split_lines(text: str) -> SplitText:
    r"""Cut a text into lines. Line ends (`\n` or `\r\n`) and blank lines are kept."""
    return SplitText(tuple(_LINE_END.split(text)))
