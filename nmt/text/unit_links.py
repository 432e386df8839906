"""Links between the words of a text and those of its translation, down to parts of words and the punctuation beside them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from operator import attrgetter

import regex

Interval = tuple[int, int]

STAND_INS = range(0xF0000, 0xFFFFE)
"""Characters for private use, which count as letters: each stands for words that stay as they are."""
_IN_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}{chr(STAND_INS[0])}-{chr(STAND_INS[-1])}]"
CORE = regex.compile(rf"{_IN_WORD}(?:.*{_IN_WORD})?", regex.DOTALL)
"""A word without the punctuation beside it."""
_START, _END = attrgetter("start"), attrgetter("end")


@dataclass(frozen=True)
class LinkedWords:
    """The words of a text and of its translation, and their links: pairs (source word, target word), from 0."""

    source: Sequence[str]
    target: Sequence[str]
    links: AbstractSet[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Unit:
    """A word without the punctuation beside it, or that punctuation."""

    start: int
    end: int
    text: str
    is_word: bool


class UnitLinks:
    """Links between the units of a text and those of its translation."""

    def __init__(self, plain: str, translation: str, words: LinkedWords) -> None:
        sides = (plain, words.source), (translation, words.target)
        source, target = ([_units(text, span) for span in spans_of(text, side)] for text, side in sides)
        self.source, self.target = (
            sorted({unit for word in side for unit in word}, key=_START) for side in (source, target)
        )
        pairs = set[tuple[Unit, Unit]]()
        for left, right in _completed(words.links, len(source), len(target)):
            pairs.update(_linked_units(source[left], target[right]))
        if self.source and self.target and not (self.source[-1].is_word or self.target[-1].is_word):
            pairs.add((self.source[-1], self.target[-1]))
        self.targets_of, self.sources_of = defaultdict[Unit, list[Unit]](list), defaultdict[Unit, list[Unit]](list)
        for unit, other in sorted(pairs, key=lambda pair: (pair[0].start, pair[1].start)):
            self.targets_of[unit].append(other)
            self.sources_of[other].append(unit)
        self._linked = [number for number, unit in enumerate(self.source) if unit in self.targets_of]

    def intervals(self, start: int, end: int) -> list[Interval]:
        """The places of the translation that are linked to a stretch of the source; to its punctuation if it has no words."""
        units = _between(self.source, start, end)
        units = [unit for unit in units if unit.is_word] or units
        return sorted({share_of(unit, other, start, end) for unit in units for other in self.targets_of[unit]})

    def stretches(self, start: int, end: int, is_free: Callable[[int, int], bool]) -> list[Interval]:
        """The free places that are linked to a stretch of the source, joined where nothing between them is linked."""
        linked = {
            (*share_of(unit, other, start, end), other.is_word)
            for unit in _between(self.source, start, end)
            for other in self.targets_of[unit]
        }
        joined: list[tuple[int, int, bool]] = []
        for left, right, is_word in sorted(linked):
            if not is_free(left, right):
                continue
            if joined and not any(map(self.sources_of.get, _between(self.target, joined[-1][1], left))):
                first, last, has_word = joined.pop()
                joined.append((first, max(last, right), has_word or is_word))
            else:
                joined.append((left, right, is_word))
        return [(left, right) for left, right, has_word in joined if has_word]

    def neighbors(self, place: int, bounds: Interval, first_side: int) -> Iterator[tuple[Unit, int]]:
        """The linked units beside a place of the source and within bounds, nearest first, and their side: -1 before it, 1 after it.

        A unit around the place is on both sides. Of two that are as near, that on the first side comes first.
        """
        sides = (self._neighbors_on(side, place, bounds) for side in (first_side, -first_side))
        for _, unit, side in merge(*sides, key=lambda each: each[0]):
            yield unit, side

    def _neighbors_on(self, side: int, place: int, bounds: Interval) -> Iterator[tuple[int, Unit, int]]:
        """How far each linked unit on one side of a place is, nearest first, the unit, and the side."""
        if side < 0:
            nearest = bisect_left(self.source, place, key=_START) - 1
            order = range(bisect_right(self._linked, nearest) - 1, -1, -1)
        else:
            nearest = bisect_right(self.source, place, key=_END)
            order = range(bisect_left(self._linked, nearest), len(self._linked))
        for number in map(self._linked.__getitem__, order):
            unit = self.source[number]
            if unit.end <= bounds[0] or bounds[1] <= unit.start:
                return
            yield abs(number - nearest), unit, side

    def are_linked(self, place: int, other: int) -> bool:
        """Whether a character of the source and one of the translation belong to units that are linked."""
        units = _between(self.source, place, place + 1)
        return any(unit.start <= other < unit.end for source in units for unit in self.targets_of[source])

    def target_at(self, place: int, step: int) -> Unit | None:
        """The first unit of the translation from a place on, or the last one up to it."""
        number = bisect_left(self.target, place, key=_START) - (step < 0)
        return self.target[number] if 0 <= number < len(self.target) else None


# --- words and their units ------------------------------------------------------------------------------------------


def spans_of(text: str, words: Sequence[str]) -> list[Interval]:
    """Where the words stand in the text; those that a model spells otherwise are taken to have equal shares of it."""
    spans, end = list[Interval](), 0
    for word in words:
        start = text.find(word, end)
        if start < 0:
            runs = [match.span() for match in regex.finditer(r"\S+", text)]
            return [runs[number * len(runs) // len(words)] for number in range(len(words))] if runs else []
        end = start + len(word)
        spans.append((start, end))
    return spans


def _units(text: str, span: Interval) -> list[Unit]:
    """The units of a word: punctuation before it, the word, punctuation after it, as far as there are any."""
    start, end = span
    core = CORE.search(text, start, end)
    cuts = (start, end) if core is None else (start, core.start(), core.end(), end)
    return [
        Unit(left, right, text[left:right], core is not None and left == core.start())
        for left, right in pairwise(cuts)
        if left < right
    ]


def _between(units: Sequence[Unit], start: int, end: int) -> list[Unit]:
    """The units that lie at least partly between two places."""
    return list(units[bisect_right(units, start, key=_END) : bisect_left(units, end, key=_START)])


def _completed(links: AbstractSet[tuple[int, int]], source: int, target: int) -> set[tuple[int, int]]:
    """The links, with words that have none linked beside their neighbors; the diagonal if there are no links at all."""
    linked = {(left, right) for left, right in links if left < source and right < target}
    if not linked and source and target:
        diagonal = {(left, left * target // source) for left in range(source)}
        return diagonal | {(right * source // target, right) for right in range(target)}
    targets_of = defaultdict[int, list[int]](list)
    for left, right in sorted(linked):
        targets_of[left].append(right)
    taken = {right for _, right in linked}
    for step, words in ((1, range(source)), (-1, range(source - 1, -1, -1))):
        for word in words:
            if not targets_of[word]:
                beside = [right + step for right in targets_of[word - step]]
                free = [right for right in beside if 0 <= right < target and right not in taken][:1]
                targets_of[word] += free
                taken.update(free)
    return {(left, right) for left, rights in targets_of.items() for right in rights}


def _linked_units(source: Sequence[Unit], target: Sequence[Unit]) -> Iterator[tuple[Unit, Unit]]:
    """The units of two linked words that are linked: the words themselves, and the punctuation on the same side of both."""
    if not (source and target):
        return
    number, other = (next((n for n, unit in enumerate(units) if unit.is_word), 0) for units in (source, target))
    yield source[number], target[other]
    if number and other:
        yield source[0], target[0]
    if number + 1 < len(source) and other + 1 < len(target):
        yield source[-1], target[-1]


def share_of(unit: Unit, other: Unit, start: int, end: int) -> Interval:
    """What of a target unit is linked to a stretch of the source: the same text if it is part of both, as in `X-Y`, else all."""
    left, right = max(start - unit.start, 0), max(unit.end - end, 0)
    if unit.text == other.text:
        return other.start + left, other.end - right
    part = unit.text[left : len(unit.text) - right]
    place = other.text.find(part)
    beside = other.text[place - 1 : place] + other.text[place + len(part) :][:1]
    if unit.is_word and place >= 0 and not any(map(str.isalnum, beside)):
        return other.start + place, other.start + place + len(part)
    return other.start, other.end
