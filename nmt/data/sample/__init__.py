"""The embedded sample: English-German sentence pairs with gold links, as a small bilingual grammar wrote them.

Equal sources have equal targets. The splits `valid` and `test` measure composition: each of their sentences has a combination
that no training sentence has (of an adjective with a noun, a verb with an object, or a verb with a tense and a kind of clause),
and all their words occur in training. The files beside this module are an ordinary corpus, compressed.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nmt.data.lines import read_lines
from nmt.errors import DataError

SIZES = {"train": 24_000, "valid": 500, "test": 1_000}
"""The pairs of each split."""


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, its translation and the links between their words, counted from 0; all links are sure."""

    source: str
    target: str
    links: frozenset[tuple[int, int]]


def path(split: str, side: str) -> Path:
    """The file of a split with its sentences in `en` or `de`, or its links in Pharaoh format, `align`. Raises DataError."""
    if split not in SIZES:
        raise DataError(f"The sample has no split '{split}', only {', '.join(SIZES)}.")
    return Path(__file__).with_name(f"{split}.{side}.bz2")


@cache
def examples(split: str) -> tuple[Example, ...]:
    """The English sentences of a split with their German translations and links. Raises DataError."""
    english, german = (read_lines(path(split, language)) for language in ("en", "de"))
    return tuple(map(Example, english, german, links(split, source="en")))


def links(split: str, *, source: str) -> list[frozenset[tuple[int, int]]]:
    """The links of each pair of a split, words of the `source` language first: `en` or `de`. Raises DataError."""
    pairs = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in read_lines(path(split, "align"))]
    return [frozenset((i, j) if source == "en" else (j, i) for i, j in pair) for pair in pairs]
