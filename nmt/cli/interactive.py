"""`nmt translate` at a terminal: a prompt, and a translation after each line."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.streams import STANDARD, is_terminal

if TYPE_CHECKING:
    from nmt.alignment.translation import Translation


def is_conversation(source: Path, output: Path) -> bool:
    """Whether lines are typed at a terminal, and their translations are shown there."""
    return is_terminal(source) and output == STANDARD and sys.stdout is not None and sys.stdout.isatty()


def typed_lines(prompt: str) -> Iterator[str]:
    """Lines that are typed after a prompt, until Ctrl-D."""
    with suppress(ImportError):
        import readline  # noqa: F401 -- with it `input` edits lines and keeps a history
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    while True:
        try:
            line = input(prompt)
        except EOFError:
            print(file=sys.stderr)
            return
        yield line


def show_alignment(translation: Translation, rank: int) -> None:
    """Print the words of a hypothesis with the source words that they are linked to: `der(the) Hund(dog)`."""
    if not (translation.is_aligned(rank) and translation.hypotheses[rank].text):
        return
    alignment, links = translation.word_alignment(rank), translation.word_links(rank)
    words = []
    for number, word in enumerate(alignment.target):
        sources = [alignment.source[source] for source, target in sorted(links) if target == number]
        words.append(f"{word}({' '.join(sources)})" if sources else word)
    print(f"  {' '.join(words)}")
