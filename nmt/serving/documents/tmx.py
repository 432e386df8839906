"""Translation memories: TMX 1.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.errors import DataError
from nmt.serving.documents.document import InlineDocument, Languages
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
from nmt.text.languages import best_match

if TYPE_CHECKING:
    from lxml.etree import _Element

    from nmt.text.inline import Piece


def read_tmx(content: bytes, languages: Languages) -> InlineDocument:
    """The units in the source language that lack the target language, of which they get a variant. Raises DataError."""
    tree = read_xml(content)
    if name_of(tree.getroot()) != "tmx":
        raise DataError("The file is no TMX: its first element is another.")
    sources = [source for unit in elements_of(tree, "tu") if (source := _open_source(unit, languages)) is not None]
    segments = [segment for source in sources if (segment := child_of(source, "seg")) is not None]

    def write(translations: Sequence[Sequence[Piece]]) -> bytes:
        for segment, pieces in zip(segments, translations, strict=True):
            source = segment.getparent()
            assert source is not None, "a segment is in a variant"
            target = source.makeelement(source.tag, {_language_name(source): languages[1]})
            target.append(renamed_copy(segment, "seg"))
            write_segment(target[0], pieces)
            target.tail = source.tail
            source.addnext(target)
        return write_xml(tree)

    return InlineDocument(map(read_segment, segments), write)


def _open_source(unit: _Element, languages: Languages) -> _Element | None:
    """The variant in the source language; None if there is none, or one in the target language."""
    variants = [child for child in unit if name_of(child) == "tuv"]
    codes = [variant.get(_language_name(variant), "") for variant in variants]
    source, target = (best_match(codes, *pair) for pair in (languages, languages[::-1]))
    return variants[source] if source is not None and target is None else None


def _language_name(variant: _Element) -> str:
    """What a variant calls its language: `xml:lang`, or `lang` as in old files."""
    return LANGUAGE if "lang" not in variant.attrib else "lang"
