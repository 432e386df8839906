"""Inline elements of XLIFF 1.2, XLIFF 2 and TMX as inline codes, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.text.inline import Code, InlineText, Piece

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

    element: Element | None = None
    has_text: bool = False


def read_codes(element: Element) -> InlineText:
    """The content of a segment (`<source>`, `<seg>`) as text with inline codes.

    `<g>`, `<hi>`, `<mrk>` and `<pc>` are pairs around text, `<bpt>` with `<ept>`, `<bx>` with `<ex>`, `<sc>` with `<ec>` and `<sm>`
    with `<em>` are pairs too. Others are single codes with their content, and so is a `<mrk>` that is not to be translated; its
    words are kept.
    """
    return InlineText(_pieces(element))


def write_codes(element: Element, pieces: Iterable[Piece]) -> None:
    """Replace the content of an element by text and by codes that `read_codes` found. Its attributes stay."""
    for child in list(element):
        element.remove(child)
    element.text = None
    path = [element]
    for piece in pieces:
        if isinstance(piece, str):
            _append_text(path[-1], piece)
        elif isinstance(piece, _ElementCode) and piece.element is not None:
            if not piece.has_text:
                path[-1].append(_alone(piece.element))
            elif piece.kind == "open":
                child = element.makeelement(piece.element.tag, dict(piece.element.attrib))
                path[-1].append(child)
                path.append(child)
            elif len(path) > 1:
                path.pop()


def _pieces(element: Element) -> Iterator[Piece]:
    yield element.text or ""
    for child in element:
        yield from _codes(child, element)
        yield child.tail or ""


def _codes(child: Element, parent: Element) -> Iterator[Piece]:
    name = _local_name(child)
    if name in _CONTAINERS and _is_protected(child):
        yield _ElementCode("", element=child, words=InlineText(_pieces(child)).plain)
        return
    if name in _CONTAINERS:
        key = f"{id(child)}"
        yield _ElementCode("", "open", key, child, has_text=True)
        yield from _pieces(child)
        yield _ElementCode("", "close", key, child, has_text=True)
        return
    kind: Kind = "mark" if name in _NO_WORDS or _type(child) in _NO_WORD_TYPES else "word"
    if name in _OPENINGS:
        kind = "open"
    elif name in _CLOSINGS:
        kind = "close"
    yield _ElementCode("", kind, f"{id(parent)} {_OPENINGS.get(name, name)} {_number(child)}", child)


def _local_name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _is_protected(element: Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"


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
