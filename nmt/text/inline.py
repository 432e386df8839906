"""Text with inline codes: tags, placeholders and whatever else belongs to a sentence but is not translated.

A model reads the text without its codes. Afterwards each code is put back by the links between words:

* a pair of tags around the words that are linked to those inside it,
* a single code beside the word that is linked to its neighbor, with the white space that it had,
* a code that keeps words, such as a name, in place of the words that are linked to those; these a model does read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from typing import Literal

import regex

from nmt.text.unit_links import CORE, STAND_INS, Interval, LinkedWords, Unit, UnitLinks, share_of, spans_of

Kind = Literal["open", "close", "word", "mark"]

_DEEPEST = 50
"""Most pairs inside one another; further tags count as single codes."""
_LETTER = regex.compile(r"\p{L}")
_CLOSING = regex.compile(r"[.,;:!?…\"'\p{Pe}\p{Pf}]")
_OPENING = regex.compile(r"[¿¡\"'\p{Ps}\p{Pi}]")


@dataclass(frozen=True, eq=False)
class Code:
    """What belongs to a sentence but is not translated.

    Attributes:
        text: as it stands in the text.
        kind: `open` and `close` are a pair of tags; `word` stands for words, as a placeholder does; `mark` for none, as
            `<img>` does.
        name: which opening belongs to which closing.
        words: the words that a single code keeps, which a model reads; if they have no letters, it does not.
    """

    text: str
    kind: Kind = "word"
    name: str = ""
    words: str = field(default="", kw_only=True)


Piece = str | Code


def written(pieces: Iterable[Piece]) -> str:
    """The pieces as one text."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def kept_text(text: str, words: str) -> Iterator[Piece]:
    """A stretch of text that stays as it is, of which a model reads these words; white space around it is text."""
    core = text.strip()
    before, after = text.split(core) if core else (text, "")
    yield " " * bool(before)
    if core:
        yield Code(core, words=words.strip())
    yield " " * bool(after)


class InlineText:
    """A text with inline codes.

    Attributes:
        pieces: stretches of text, and codes, in their order.
        plain: what a model reads: the text without its codes, but with the words that they keep.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = tuple(piece for piece in pieces if piece != "")
        self._root = _nested(self.pieces)
        self.plain = _place(self._root)

    @property
    def has_codes(self) -> bool:
        """Whether there are any codes."""
        return any(isinstance(piece, Code) for piece in self.pieces)

    @property
    def has_letters(self) -> bool:
        """Whether there is anything to translate; else the text is its own translation."""
        return any(isinstance(piece, str) and _LETTER.search(piece) for piece in self.pieces)

    def restore(self, translation: str, words: LinkedWords | None = None) -> list[Piece]:
        """Put the codes into a translation of the plain text, each once.

        Args:
            translation: the translation, one line.
            words: the links; without them, codes go to the same place relative to the length.

        Returns:
            Stretches of the translation, and the codes.
        """
        if words is None:
            words = LinkedWords(self.plain.split(), translation.split())
        translation, words, stand_ins = _with_stand_ins(self._root, self.plain, translation, words)
        root = _nested(_stand_in(piece, stand_ins) for piece in self.pieces) if stand_ins else self._root
        pieces = _Restoring(_place(root), translation, words).pieces(root, 0, len(translation))
        return list(_without_stand_ins(pieces, {character: code for code, character in stand_ins.items()}))


# --- the codes of a text --------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Point:
    """Single codes without text between them.

    Attributes:
        codes: the codes, and white space between them.
        place: where they were in the plain text.
        before, after: whether they have white space there (True) or are attached (False); None at an end of the text.
    """

    codes: list[Piece]
    place: int = 0
    before: bool | None = None
    after: bool | None = None

    @property
    def is_word(self) -> bool:
        """Whether the codes stand for words."""
        return any(isinstance(code, Code) and code.kind == "word" for code in self.codes)


@dataclass(eq=False)
class _Pair:
    """A pair of codes with text between them, from `start` to `end` of the plain text; that of the whole text has no codes.

    A code that keeps words is a pair without closing.
    """

    opening: Code | None = None
    closing: Code | None = None
    children: list[str | _Point | _Pair] = field(default_factory=list)
    start: int = 0
    end: int = 0
    visible: Interval = (0, 0)
    """Where the text in it starts and ends without the white space around it."""

    @property
    def kept(self) -> Code | None:
        """The code that keeps the words of the pair."""
        return self.opening if self.closing is None else None

    @property
    def pairs(self) -> list[_Pair]:
        """The pairs inside, without those inside them and without kept words."""
        return [child for child in self.children if isinstance(child, _Pair) and child.kept is None]


def _nested(pieces: Iterable[Piece]) -> _Pair:
    """The pieces as a tree. An opening or closing without its partner is a single code, and so is a pair without text."""
    path = [_Pair()]
    for piece in pieces:
        if isinstance(piece, str) or piece.kind in ("word", "mark"):
            _append(path[-1], piece)
        elif piece.kind == "open" and len(path) <= _DEEPEST:
            path.append(_Pair(piece))
        elif piece.kind == "close" and any(pair.opening and pair.opening.name == piece.name for pair in path):
            while (pair := path.pop()).opening is None or pair.opening.name != piece.name:
                _append_unpaired(path[-1], pair)
            pair.closing = piece
            _append_pair(path[-1], pair)
        else:
            _append(path[-1], piece)
    while len(path) > 1:
        pair = path.pop()
        _append_unpaired(path[-1], pair)
    return path[0]


def _append(pair: _Pair, piece: Piece) -> None:
    """Add text, or a code."""
    if isinstance(piece, str):
        pair.children.append(piece)
    elif _LETTER.search(piece.words):
        pair.children.append(_Pair(piece, children=[piece.words]))
    else:
        _append_codes(pair, [piece])


def _append_codes(pair: _Pair, codes: Sequence[Piece]) -> None:
    """Add codes to the codes just before, if there are any."""
    if pair.children and isinstance(last := pair.children[-1], _Point):
        last.codes += codes
    else:
        pair.children.append(_Point(list(codes)))


def _append_pair(parent: _Pair, pair: _Pair) -> None:
    """Add a pair, as single codes if it has no text."""
    texts = [child for child in pair.children if isinstance(child, str)]
    if any(isinstance(child, _Pair) for child in pair.children) or any(map(str.strip, texts)):
        parent.children.append(pair)
        return
    codes = [code for child in pair.children for code in ([child] if isinstance(child, str) else _codes(child))]
    _append_codes(parent, [*filter(None, [pair.opening]), *codes, *filter(None, [pair.closing])])
    if texts and len(texts) == len(pair.children):
        _append(parent, " ")


def _append_unpaired(parent: _Pair, pair: _Pair) -> None:
    """Add the opening of a pair without closing, and what came after it."""
    assert pair.opening is not None, "the whole text has no opening"
    _append_codes(parent, [pair.opening])
    for child in pair.children:
        if isinstance(child, _Point):
            _append_codes(parent, child.codes)
        else:
            parent.children.append(child)


def _codes(node: _Point | _Pair) -> Iterator[Piece]:
    """All codes of a point or pair, in their order."""
    if isinstance(node, _Point):
        yield from node.codes
        return
    yield from filter(None, [node.opening])
    for child in node.children:
        if not isinstance(child, str):
            yield from _codes(child)
    yield from filter(None, [node.closing])


_Event = str | _Point | tuple[_Pair, bool]
"""Text, single codes, or the start (True) or end of a pair."""


def _place(root: _Pair) -> str:
    """Give every code its place in the plain text, and return that text."""
    events = list(_events(root))
    solid = [number for number, event in enumerate(events) if not isinstance(event, tuple)]
    for left, number, right in zip([None, *solid], solid, [*solid[1:], None], strict=False):
        if isinstance(point := events[number], _Point):
            _look_around(point, events, left, right)
    texts, length = [], 0
    for event in events:
        match event:
            case str():
                texts.append(event)
                length += len(event)
            case _Point():
                event.place = length
            case (pair, True):
                pair.start = length
            case (pair, _):
                pair.end = length
    plain = "".join(texts)
    for pair in (event[0] for event in events if isinstance(event, tuple)):
        text = plain[pair.start : pair.end]
        pair.visible = pair.end - len(text.lstrip()), pair.start + len(text.rstrip())
    return plain


def _events(pair: _Pair) -> Iterator[_Event]:
    yield pair, True
    for child in pair.children:
        if isinstance(child, _Pair):
            yield from _events(child)
        else:
            yield child
    yield pair, False


def _look_around(point: _Point, events: list[_Event], left: int | None, right: int | None) -> None:
    """Note the white space around a point. That between a word that is taken out and punctuation goes: `at {place}.` is `at.`"""
    before, after = (None if number is None else events[number] for number in (left, right))
    point.before = None if before is None else isinstance(before, str) and before[-1:].isspace()
    point.after = None if after is None else isinstance(after, str) and after[:1].isspace()
    if not point.is_word:
        return
    if left is not None and point.before and isinstance(after, str) and _CLOSING.match(after):
        events[left] = str(before).rstrip()
    elif right is not None and point.after and isinstance(before, str) and _OPENING.match(before[-1:]):
        events[right] = str(after).lstrip()


# --- kept words -----------------------------------------------------------------------------------------------------


def _with_stand_ins(
    root: _Pair, plain: str, translation: str, words: LinkedWords
) -> tuple[str, LinkedWords, dict[Code, str]]:
    """Put a character in place of the words that each code keeps, and of those that are linked to them.

    Returns:
        The translation, the words of both sides, and the character of each code; codes to which nothing is linked have none.
    """
    pairs = [event[0] for event in _events(root) if isinstance(event, tuple) and event[1] and event[0].kept]
    stand_ins: dict[Code, str] = {}
    if not pairs:
        return translation, words, stand_ins
    links = UnitLinks(plain, translation, words)
    source, target = list(plain), list(translation)
    used = frozenset(source + target)
    unused = (character for character in map(chr, STAND_INS) if character not in used)
    for pair, character in zip(pairs, unused, strict=False):
        stretches = links.stretches(
            pair.start, pair.end, lambda start, end: "".join(target[start:end]) == translation[start:end]
        )
        if pair.kept is not None and stretches:
            stand_ins[pair.kept] = character
            _overwrite(source, pair.visible, character)
            longest = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
            for other in stretches:
                _overwrite(target, other if other == longest else _with_space(translation, other), "")
            target[longest[0]] = character
    sides = _rewritten(plain, source, words.source), _rewritten(translation, target, words.target)
    numbers = [{character: number for number, word in enumerate(side) for character in word} for side in sides]
    linked = {(numbers[0].get(each, 0), numbers[1].get(each, 0)) for each in stand_ins.values()}
    return "".join(target), LinkedWords(*sides, links=words.links | linked), stand_ins


def _rewritten(text: str, letters: Sequence[str], words: Sequence[str]) -> list[str]:
    """The words of a text whose letters are replaced by others."""
    return ["".join(letters[start:end]) for start, end in spans_of(text, words)]


def _overwrite(letters: list[str], interval: Interval, character: str) -> None:
    """Put a character, or none, in place of a stretch of letters; the list keeps its length."""
    start, end = interval
    letters[start:end] = [character] + [""] * (end - start - 1)


def _with_space(text: str, interval: Interval) -> Interval:
    """A stretch of text with the white space before it, or after it if the text begins with it."""
    start, end = interval
    before = len(text[:start].rstrip())
    return (before, end) if before else (0, len(text) - len(text[end:].lstrip()))


def _stand_in(piece: Piece, stand_ins: Mapping[Code, str]) -> Piece:
    """A piece; for a code that has a character, this with the white space around its words."""
    if isinstance(piece, str) or piece not in stand_ins:
        return piece
    return piece.words.replace(piece.words.strip(), stand_ins[piece])


def _without_stand_ins(pieces: Iterable[Piece], codes: Mapping[str, Code]) -> Iterator[Piece]:
    """The pieces with codes in place of the characters that stand for them."""
    for piece in pieces:
        if isinstance(piece, Code):
            yield piece
            continue
        for is_text, characters in groupby(piece, key=lambda character: character not in codes):
            if is_text:
                yield "".join(characters)
            else:
                yield from map(codes.__getitem__, characters)


# --- putting codes back ---------------------------------------------------------------------------------------------


class _Restoring:
    """Puts the codes of a text into one translation."""

    def __init__(self, plain: str, translation: str, words: LinkedWords) -> None:
        self._plain, self._translation = plain, translation
        self._links = UnitLinks(plain, translation, words)

    def pieces(self, pair: _Pair, start: int, end: int) -> Iterator[Piece]:
        """A stretch of the translation with the codes inside a pair."""
        intervals = self._pair_intervals(pair, start, end)
        taken, starts = sorted(intervals.values()), {interval[0]: child for child, interval in intervals.items()}
        points = defaultdict[int, list[_Point]](list)
        for child in pair.children:
            if isinstance(child, _Pair) and child not in intervals:
                child = _Point(list(_codes(child)), child.start)
            if isinstance(child, _Point):
                points[self._point_place(child, pair, (start, end), taken)].append(child)
        place = start
        for at in sorted({*points, *starts}):
            yield self._translation[place:at]
            place = at
            if at in points:
                yield from self._point_pieces(points[at], at, (start, end))
                place = self._gap_end(at, end)
            if inner := starts.get(at):
                place = intervals[inner][1]
                yield from filter(None, [inner.opening])
                yield from self.pieces(inner, at, place)
                yield from filter(None, [inner.closing])
        yield self._translation[place:end]

    def _pair_intervals(self, parent: _Pair, start: int, end: int) -> dict[_Pair, Interval]:
        """Where the pairs inside a pair go: disjoint stretches of its translation. Pairs that have none are left out."""
        linked = {
            pair: [each for each in self._links.intervals(pair.start, pair.end) if start <= each[0] and each[1] <= end]
            for pair in parent.pairs
        }
        taken: list[Interval] = []
        for pair in sorted(parent.pairs, key=lambda pair: _extent(linked[pair])):
            edges = pair.start <= parent.visible[0], pair.end >= parent.visible[1]
            if all(edges):
                interval = self._stripped(start, end)
            elif interval := _best_run(linked[pair], taken):
                interval = self._grown(interval, pair, edges, _room(interval, taken, (start, end)))
            linked[pair] = [] if interval is None else [interval]
            for each in linked[pair]:
                insort(taken, each)
        return {pair: each[0] for pair, each in linked.items() if each}

    def _grown(self, interval: Interval, pair: _Pair, edges: tuple[bool, bool], room: Interval) -> Interval:
        """Add the punctuation of the pair beside its words, and at an edge of the text words without links too."""
        start, end = interval
        while (unit := self._links.target_at(start, -1)) and unit.end <= start:
            share = self._joining(unit, pair, is_edge=edges[0])
            if share is None or share[0] < room[0] or self._translation[share[1] : start].strip():
                break
            start = share[0]
        while unit := self._links.target_at(end, 1):
            share = self._joining(unit, pair, is_edge=edges[1])
            if share is None or share[1] > room[1] or self._translation[end : share[0]].strip():
                break
            end = share[1]
        return start, end

    def _joining(self, unit: Unit, pair: _Pair, *, is_edge: bool) -> Interval | None:
        """What of a unit beside those of a pair belongs to the pair."""
        sources = self._links.sources_of[unit]
        if not (is_edge or (sources and not unit.is_word)):
            return None
        if any(source.end <= pair.start or pair.end <= source.start for source in sources):
            return None
        shares = [share_of(source, unit, pair.start, pair.end) for source in sources] or [(unit.start, unit.end)]
        return min(start for start, _ in shares), max(end for _, end in shares)

    def _point_place(self, point: _Point, parent: _Pair, bounds: Interval, taken: Sequence[Interval]) -> int:
        """Where single codes go inside a stretch of the translation: beside their neighbor, but not into a pair."""
        place, step = self._anchor(point, parent, bounds)
        number = bisect_left(taken, (place, 0)) - 1
        if number >= 0 and place < taken[number][1]:
            place = taken[number][step < 0]
        while place > bounds[0] and self._translation[place - 1].isspace():
            place -= 1
        return place

    def _anchor(self, point: _Point, parent: _Pair, bounds: Interval) -> tuple[int, int]:
        """The place beside the nearest linked neighbor, and its side: -1 if the codes go after it, 1 if before it."""
        if not point.is_word and point.place <= parent.visible[0]:
            return bounds[0], 1
        if not point.is_word and point.place >= parent.visible[1]:
            return bounds[1], -1
        limits = {-1: (parent.start, point.place), 1: (point.place, parent.end)}
        for unit, side in self._links.neighbors(point.place, (parent.start, parent.end), self._first_side(point)):
            if places := self._places_beside(unit, limits[side], side, bounds):
                return (max(places) if side < 0 else min(places)), side
        return bounds[1], -1

    def _first_side(self, point: _Point) -> int:
        """The side whose neighbor counts first: that of the word to which the codes are attached, else the next word."""
        before, after = self._plain[point.place - 1 : point.place], self._plain[point.place : point.place + 1]
        if point.before is False and CORE.match(before):
            return -1
        if point.after is False:
            return 1 if CORE.match(after) else -1
        return -1 if point.before is False and not _OPENING.match(before) else 1

    def _places_beside(self, unit: Unit, limits: Interval, step: int, bounds: Interval) -> list[int]:
        """The places after or before the translations of a unit; in other punctuation than that around the codes there is none."""
        start, end = max(unit.start, limits[0]), min(unit.end, limits[1])
        is_cut = end - start < unit.end - unit.start and not unit.is_word
        others = [other for other in self._links.targets_of[unit] if not is_cut or other.text == unit.text]
        shares = [share_of(unit, other, start, end) for other in others]
        return [share[step < 0] for share in shares if bounds[0] <= share[0] and share[1] <= bounds[1]]

    def _point_pieces(self, points: Sequence[_Point], place: int, bounds: Interval) -> Iterator[Piece]:
        """Single codes with white space as they had it, in place of the white space of the translation."""
        gap_end = self._gap_end(place, bounds[1])
        gap = self._translation[place:gap_end]
        first, last = points[0], points[-1]
        before = after = ""
        has_left, has_right = place > bounds[0], gap_end < bounds[1]
        is_beside = last.after is False and self._links.are_linked(last.place, gap_end)
        if has_right and not is_beside:
            is_open = bool(gap) or not has_left or not _CLOSING.match(self._translation, gap_end)
            after = " " * is_open if _wants_space(last, last.after) else gap
        if has_left and not (first.before is False and self._links.are_linked(first.place - 1, place - 1)):
            is_open = bool(gap) or not has_right or not _OPENING.match(self._translation, place - 1)
            before = " " * is_open if _wants_space(first, first.before) else gap * is_beside
        yield before
        for point, following in zip_longest(points, points[1:]):
            yield from point.codes
            yield " " if following is not None and (point.after or following.before) else ""
        yield after

    def _gap_end(self, place: int, end: int) -> int:
        while place < end and self._translation[place].isspace():
            place += 1
        return place

    def _stripped(self, start: int, end: int) -> Interval | None:
        start = self._gap_end(start, end)
        while end > start and self._translation[end - 1].isspace():
            end -= 1
        return (start, end) if start < end else None


def _wants_space(point: _Point, side: bool | None) -> bool:
    """Whether there is to be a space beside a point, given whether there was one; a word that was at the end has one too."""
    return side is True or (side is None and point.is_word)


def _extent(intervals: Sequence[Interval]) -> int:
    return max(end for _, end in intervals) - intervals[0][0] if intervals else 0


def _best_run(intervals: Sequence[Interval], taken: Sequence[Interval]) -> Interval | None:
    """The longest of the stretches from the first to the last interval between those that are taken."""
    runs = defaultdict[int, list[Interval]](list)
    for start, end in intervals:
        number = bisect_right(taken, (start, end))
        is_free = (number == 0 or taken[number - 1][1] <= start) and (number == len(taken) or end <= taken[number][0])
        if is_free:
            runs[number].append((start, end))
    best = max(runs.values(), key=lambda run: sum(end - start for start, end in run), default=None)
    return None if best is None else (best[0][0], max(end for _, end in best))


def _room(interval: Interval, taken: Sequence[Interval], bounds: Interval) -> Interval:
    """How far an interval may grow."""
    number = bisect_right(taken, interval)
    start = taken[number - 1][1] if number else bounds[0]
    return start, taken[number][0] if number < len(taken) else bounds[1]
