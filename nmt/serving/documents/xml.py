"""XML as it stands in files: read without entities and other documents, and written with all that was not changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from io import BytesIO
from itertools import groupby, islice
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser
from lxml import etree

from nmt.errors import DataError
from nmt.text.element_codes import read_codes, write_codes
from nmt.text.inline import InlineText, Piece
from nmt.text.protection import protect_pieces

if TYPE_CHECKING:
    from lxml.etree import _Element, _ElementTree


LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_MOST_ELEMENTS = 100_000
"""Each takes memory of a hundred times its shortest form."""


_LONGEST = 50_000
_MOST_PIECES = 5_000
"""Most of one text, whose codes take longer the more there are."""
_TOO_LONG = f"A text has more than {_LONGEST:,} characters, or {_MOST_PIECES:,} elements and texts between."
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot have."""


class _ElementCounter:
    """Counts elements, without keeping any."""

    def __init__(self) -> None:
        self._elements = 0

    def start(self, _tag: str, _attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > _MOST_ELEMENTS:
            raise DataError(f"The file has more than {_MOST_ELEMENTS:,} elements.")

    def close(self) -> None:
        """The reading ends; there is no tree."""


def read_xml(content: bytes) -> _ElementTree:
    """The document, with its comments and its document type. Raises DataError if it is not valid, or declares entities."""
    checker = DefusedXMLParser(target=_ElementCounter(), forbid_entities=True, forbid_external=True)
    try:
        checker.feed(content)
        checker.close()
        return etree.parse(
            BytesIO(content), etree.XMLParser(resolve_entities=False, no_network=True, strip_cdata=False)
        )
    except ParseError as error:
        reason = str(error).rpartition(": line ")[0]
        raise DataError(f"The file is not valid XML: {reason}, line {error.position[0]}.") from None
    except DefusedXmlException:
        raise DataError("The file declares entities or refers to other documents, which is not safe to read.") from None
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise DataError(f"The file cannot be read as XML: {str(error).rpartition(', line ')[0] or error}.") from None


def write_xml(tree: _ElementTree) -> bytes:
    """The document in its encoding."""
    info = tree.docinfo
    content = etree.tostring(
        tree, encoding=info.encoding or "UTF-8", xml_declaration=True, standalone=info.standalone or None
    )
    return bytes(content)


def protected(pieces: Iterable[Piece]) -> InlineText:
    """A text in which, besides its elements, addresses, placeholders and tags are codes. Raises DataError if it is too long."""
    pieces = list(islice(pieces, _MOST_PIECES + 1))
    if len(pieces) > _MOST_PIECES or sum(len(piece) for piece in pieces if isinstance(piece, str)) > _LONGEST:
        raise DataError(_TOO_LONG)
    return InlineText(protect_pieces(pieces))


def unprotected(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The translation of a protected text, with codes for elements alone, and without the characters that XML cannot have."""
    for is_text, group in groupby(pieces, key=lambda piece: isinstance(piece, str) or bool(piece.text)):
        if is_text:
            yield _INVALID.sub("", "".join(piece if isinstance(piece, str) else piece.text for piece in group))
        else:
            yield from group


def read_segment(element: _Element, *, is_kept: bool = False) -> InlineText:
    """The content of a segment of XLIFF or TMX, see `read_codes`. Raises DataError if it is too long."""
    if len(list(islice(element.iter(), _MOST_PIECES))) == _MOST_PIECES:
        raise DataError(_TOO_LONG)
    return protected(read_codes(element, is_kept=is_kept).pieces)


def write_segment(element: _Element, pieces: Iterable[Piece]) -> None:
    """Replace the content of a segment."""
    write_codes(element, unprotected(pieces))


def name_of(element: _Element) -> str:
    """The name of an element without its namespace; empty for comments and the like."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def child_of(element: _Element, name: str) -> _Element | None:
    """The first child of this name."""
    return next((child for child in element if name_of(child) == name), None)


def elements_of(parent: _Element | _ElementTree, *names: str) -> list[_Element]:
    """All elements of these names, in order."""
    return [element for element in parent.iter() if name_of(element) in names]


def renamed_copy(element: _Element, name: str) -> _Element:
    """A copy of an element under another name of its namespace, without the text after it."""
    copy = deepcopy(element)
    copy.tag = etree.QName(etree.QName(element).namespace, name)
    copy.tail = None
    return copy
