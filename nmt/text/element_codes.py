"""Inline elements of XLIFF 1.2, XLIFF 2 and TMX as inline codes, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nmt.text.inline import Code, InlineText, Piece, kept_text

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from nmt.text.inline import Kind

_CONTAINERS = frozenset({"g", "hi", "mrk", "pc"})
"""Elements whose content is text; all others are codes with their content."""
_OPENINGS = {"bpt": "ept", "bx": "ex", "sc": "ec", "sm": "em"}
_CLOSINGS = {closing: opening for opening, closing in _OPENINGS.items()}
_NO_WORDS = frozenset({"cp", "it", "sub"})
_NO_WORD_TYPES = frozenset({"image", "lb", "pb"})
"""What `ctype` (XLIFF 1.2), `type` or `subType` say of codes that stand for no words."""


@dataclass(frozen=True, eq=False)
class _ElementCode(Code):
    """An element, or the start or end of one that has text."""

    element: Element = field(kw_only=True)
    has_text: bool = field(default=False, kw_only=True)


def read_codes(element: Element, *, is_kept: bool = False) -> InlineText:
    """The content of a segment (`<source>`, `<seg>`) as text with inline codes.

    `<g>`, `<hi>`, `<mrk>` and `<pc>` are pairs around text, `<bpt>` with `<ept>`, `<bx>` with `<ex>`, `<sc>` with `<ec>` and `<sm>`
    with `<em>` are pairs too. Others are single codes with their content, and so is a `<mrk>` that is not to be translated; its
    words are kept. Where one that is to be translated is inside, each text around it is kept.

    Args:
        element: the segment.
        is_kept: whether only what says `translate="yes"` is to be translated.
    """
    return InlineText(_pieces(element, is_kept=is_kept))


def write_codes(element: Element, pieces: Iterable[Piece]) -> None:
    """Replace the content of an element by text and by codes that `read_codes` found. Its attributes stay."""
    for child in list(element):
        element.remove(child)
    element.text = None
    path = [element]
    for piece in pieces:
        if not isinstance(piece, _ElementCode):
            _append_text(path[-1], piece if isinstance(piece, str) else piece.text)
        elif not piece.has_text:
            path[-1].append(_alone(piece.element))
        elif piece.kind == "open":
            child = element.makeelement(piece.element.tag, dict(piece.element.attrib))
            path[-1].append(child)
            path.append(child)
        elif len(path) > 1:
            path.pop()


def _pieces(element: Element, *, is_kept: bool) -> Iterator[Piece]:
    """The content of an element; with `is_kept`, text is not to be translated."""
    yield from _text(element.text or "", is_kept=is_kept)
    for child in element:
        yield from _codes(child, element, is_kept=is_kept)
        yield from _text(child.tail or "", is_kept=is_kept)


def _text(text: str, *, is_kept: bool) -> Iterator[Piece]:
    return kept_text(text, text) if is_kept else iter([text])


def _codes(child: Element, parent: Element, *, is_kept: bool) -> Iterator[Piece]:
    name = _local_name(child)
    if name in _CONTAINERS:
        is_inner_kept = (is_kept or _is_protected(child)) and not _is_translated(child)
        if is_inner_kept and not is_kept and not any(map(_is_translated, child.iter())):
            yield _ElementCode("", element=child, words=InlineText(_pieces(child, is_kept=False)).plain)
            return
        key = f"{id(child)}"
        yield _ElementCode("", "open", key, element=child, has_text=True)
        yield from _pieces(child, is_kept=is_inner_kept)
        yield _ElementCode("", "close", key, element=child, has_text=True)
        return
    kind: Kind = "mark" if name in _NO_WORDS or _type(child) in _NO_WORD_TYPES else "word"
    if name in _OPENINGS:
        kind = "open"
    elif name in _CLOSINGS:
        kind = "close"
    yield _ElementCode("", kind, f"{id(parent)} {_OPENINGS.get(name, name)} {_number(child)}", element=child)


def _local_name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _is_protected(element: Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"


def _is_translated(element: Element) -> bool:
    return element.get("translate") == "yes"


def _type(element: Element) -> str | None:
    subtype = (element.get("subType") or "").rpartition(":")[2]
    return subtype or element.get("ctype") or element.get("type")


def _number(element: Element) -> str | None:
    """What an opening and its closing have in common, in the order in which versions of the formats define it."""
    return next(filter(None, map(element.get, ("i", "rid", "startRef", "id"))), None)


def _append_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    elif text:
        element.text = (element.text or "") + text


def _alone(element: Element) -> Element:
    """A copy of an element without the text after it."""
    copy = deepcopy(element)
    copy.tail = None
    return copy
