"""Read XML files of any length element by element, without entities and external documents."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.data.lines import blocks
from nmt.errors import DataError
from nmt.runtime.archive_members import ArchiveMember

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_PART = 2**14
_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Elements of TMX and XLIFF 1.2 whose own text is markup of the original format."""


def read_elements(
    place: Path | ArchiveMember,
    *,
    starts: Collection[str] = (),
    ends: Collection[str] = (),
    inherited: Collection[str] = (),
) -> "Iterator[tuple[str, Element]]":
    """Yield the elements of these names, without namespaces: with attributes alone at their start, or complete at their end.

    A complete element inside another one is not yielded. An element takes the `inherited` attributes that it lacks from its
    parent. Elements are forgotten once they have ended, so memory is constant.

    Raises:
        DataError: the file is not valid XML, or declares entities. The message names file and line.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    path: list[Element] = []
    inside = 0
    try:
        for event, element in iterparse(_Stream(blocks(place)), ("start", "end")):
            name = local_name(element)
            if event == "start":
                if path:
                    _inherit(element, path[-1], inherited)
                path.append(element)
                inside += name in ends
                if name in starts:
                    yield name, element
                continue
            path.pop()
            inside -= name in ends
            if name in ends and not inside:
                yield name, element
            if path and not inside:
                path[-1].remove(element)
    except ParseError as error:
        reason = str(error).rpartition(": line ")[0]
        raise DataError(f"{place}, line {error.position[0]}: not valid XML ({reason}).") from None
    except DefusedXmlException:
        raise DataError(
            f"{place} declares entities or refers to other documents, which is not safe to read: "
            "remove them from its document type declaration."
        ) from None
    except (ValueError, LookupError) as error:  # of the encoding it declares
        raise DataError(f"{place} cannot be read as XML: {error}.") from None


def _inherit(element: "Element", parent: "Element", names: Collection[str]) -> None:
    for name in names:
        if element.get(name) is None and (value := parent.get(name)) is not None:
            element.set(name, value)


class _Stream:
    """What `iterparse` reads from. The parts are small, since it builds all elements of one before it yields the first."""

    def __init__(self, content: Iterator[bytes]) -> None:
        self._parts = (block[start : start + _PART] for block in content for start in range(0, len(block), _PART))

    def read(self, _size: int) -> bytes:
        return next(self._parts, b"")


def local_name(element: "Element") -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def child_of(element: "Element", name: str) -> "Element | None":
    """The first child of this name."""
    return next((child for child in element if local_name(child) == name), None)


def child_text(element: "Element", name: str) -> str:
    """The text of the first child of this name, as `text_of` reads it; empty if there is none."""
    child = child_of(element, name)
    return "" if child is None else text_of(child)


def text_of(element: "Element") -> str:
    """The text inside an element and its markup, without the codes of the original format.

    `<sub>` in a code is text again, such as the title of a picture.
    """
    parts = [element.text or ""]
    path = [(element, iter(element))]  # a stack instead of recursion, since files may nest to any depth
    while path:
        parent, children = path[-1]
        if (child := next(children, None)) is not None:
            parts.append("" if local_name(child) in _CODES else child.text or "")
            path.append((child, iter(child)))
            continue
        path.pop()
        if path and local_name(path[-1][0]) not in _CODES:
            parts.append(parent.tail or "")
    return "".join(parts)
