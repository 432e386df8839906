"""Read lines ahead in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

ItemT = TypeVar("ItemT")

_WINDOW_CHARACTERS = 300_000
"""Most characters per group of lines, to bound its memory: alignments grow with the square of a line's length."""


def read_ahead(
    items: Iterable[ItemT], count: int, *, size: Callable[[ItemT], int], first: int = 1
) -> Iterator[tuple[int, list[ItemT]]]:
    """Group consecutive items: up to `count`, or fewer if their sizes add up to 300,000 characters.

    Yields the number of the first item, counted from `first`, with each group. A full group is yielded before the next item is
    read.
    """
    group: list[ItemT] = []
    characters = 0
    for item in items:
        group.append(item)
        characters += size(item)
        if len(group) == count or characters >= _WINDOW_CHARACTERS:
            yield first, group
            first, group, characters = first + len(group), [], 0
    if group:
        yield first, group
