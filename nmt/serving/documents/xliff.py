"""XLIFF 1.2 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.errors import DataError
from nmt.serving.documents.document import InlineDocument, Languages, check_languages
from nmt.serving.documents.xml import (
    LANGUAGE,
    child_of,
    elements_of,
    name_of,
    read_segment,
    read_xml,
    renamed_copy,
    write_segment,
    write_xml,
)

if TYPE_CHECKING:
    from lxml.etree import _Element, _ElementTree

    from nmt.text.inline import Piece

_SIDES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}
"""What the elements call their languages, in version 1.2 and in version 2."""
_OPEN_STATES = frozenset({"initial", "needs-l10n", "needs-translation", "new"})


def read_xliff(content: bytes, languages: Languages) -> InlineDocument:
    """The segments without a translation; their translations are marked as such, for somebody to review. Raises DataError.

    In version 1.2 their targets get the state `needs-review-translation` and the qualifier `leveraged-mt`, in version 2 the segments
    get the state `translated`. What is translated, or is not to be, stays as it is.
    """
    tree = read_xml(content)
    if name_of(tree.getroot()) != "xliff":
        raise DataError("The file is no XLIFF: its first element is another.")
    for element in elements_of(tree, *_SIDES):
        source_name, target_name = _SIDES[name_of(element)]
        check_languages(element.get(source_name), element.get(target_name), languages)
    sources = [source for segment in _segments(tree) if (source := _open_source(segment)) is not None]
    targets = [_new_target(source, languages[1]) for source in sources]
    parts = [
        (part, not _is_translatable(source))
        for source, target in zip(sources, targets, strict=True)
        for part in _parts(target)
    ]

    def write(translations: Sequence[Sequence[Piece]]) -> bytes:
        for (part, _), pieces in zip(parts, translations, strict=True):
            write_segment(part, pieces)
        for source, target in zip(sources, targets, strict=True):
            _put(source, target)
        for element in elements_of(tree, *_SIDES):
            source_name, target_name = _SIDES[name_of(element)]
            if element.get(source_name) is not None and element.get(target_name) is None:
                element.set(target_name, languages[1])
        return write_xml(tree)

    return InlineDocument((read_segment(part, is_kept=is_kept) for part, is_kept in parts), write)


def _segments(tree: _ElementTree) -> list[_Element]:
    """What holds a source and its target, and is to be translated, or something in it."""
    return [
        element
        for element in elements_of(tree, "trans-unit", "segment")
        if _is_translatable(element) or any(each.get("translate") == "yes" for each in element.iterdescendants())
    ]


def _is_translatable(element: _Element) -> bool:
    """Whether the nearest element that says so lets it be translated."""
    said = (each.get("translate") for each in (element, *element.iterancestors()))
    return next(filter(None, said), "yes") != "no"


def _open_source(segment: _Element) -> _Element | None:
    """The source of a segment, as it is segmented in version 1.2; None if it has a translation that counts."""
    target = child_of(segment, "target")
    states = [element.get("state", "") for element in (segment, target) if element is not None]
    if target is not None and "".join(target.itertext()).strip() and not _OPEN_STATES & set(states):
        return None
    segmented = child_of(segment, "seg-source")
    return child_of(segment, "source") if segmented is None else segmented


def _new_target(source: _Element, language: str) -> _Element:
    """A copy of a source as a target."""
    target = renamed_copy(source, "target")
    if target.get(LANGUAGE) is not None:
        target.set(LANGUAGE, language)
    return target


def _parts(target: _Element) -> list[_Element]:
    """The parts of a target that are texts of their own: its segments in version 1.2, else the whole of it."""
    marks = [mark for mark in elements_of(target, "mrk") if mark.get("mtype") == "seg"]
    return marks or [target]


def _put(source: _Element, target: _Element) -> None:
    """Put a target after its source, in place of another, and say that a machine made it."""
    segment = source.getparent()
    assert segment is not None, "a source is in a segment"
    if (old := child_of(segment, "target")) is not None:
        segment.remove(old)
    target.tail = source.tail
    source.addnext(target)
    if name_of(segment) == "segment":
        segment.set("state", "translated")
    else:
        target.set("state", "needs-review-translation")
        target.set("state-qualifier", "leveraged-mt")
