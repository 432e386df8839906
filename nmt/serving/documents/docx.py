"""Documents of Word (DOCX)."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from lzma import LZMAError
from typing import TYPE_CHECKING, Literal
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from lxml import etree

from nmt.errors import DataError
from nmt.serving.documents.document import InlineDocument, Languages
from nmt.serving.documents.xml import child_of, elements_of, name_of, protected, read_xml, unprotected, write_xml
from nmt.text.inline import Code, InlineText
from nmt.text.languages import best_match

if TYPE_CHECKING:
    from lxml.etree import _Element, _ElementTree

    from nmt.text.inline import Kind, Piece

_MAIN = "word/document.xml"
_STYLES = "word/styles.xml"
_TEXTS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|styles)\.xml")
_MOST_BYTES = 20_000_000
"""Most bytes of a document, unpacked."""
_MOST_XML = 4_000_000
"""Most bytes of those parts of it that are read."""
_DAMAGES = BadZipFile, EOFError, LZMAError, OSError, RuntimeError, ValueError, struct.error, zlib.error
"""What reading an archive raises if it is damaged, or, as RuntimeError, encrypted or compressed in another way."""
_CONTAINERS = frozenset({"hyperlink", "ins", "moveTo", "sdt", "sdtContent", "smartTag"})
"""Elements of a paragraph whose content is text of it."""
_NOTHING = frozenset({"lastRenderedPageBreak", "proofErr", "softHyphen"})
"""What Word notes for itself, and where a word may be broken that will be another."""
_BREAKS = frozenset({"br", "cr", "ptab", "tab"})
"""What separates words, without white space."""
_UNSEEN = frozenset({"lang", "noProof"})
"""Properties of text that nobody sees."""
_WORDS = frozenset({"fldSimple", "oMath"})
"""Elements between runs that stand for words."""
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass(frozen=True, eq=False)
class _WordCode(Code):
    """A code of a document.

    Attributes:
        role: whether it is elements that stay as they are, or opens or closes a container, or a format of text.
        elements: the elements; the container; the properties of the format, if it has any.
        run: what the elements are in, if they are in a run.
    """

    role: Literal["elements", "container", "format"] = "elements"
    elements: tuple[_Element, ...] = ()
    run: _Element | None = None

    @property
    def is_break(self) -> bool:
        """Whether it separates words without white space."""
        return any(name_of(element) in _BREAKS for element in self.elements)


def read_docx(content: bytes, languages: Languages) -> InlineDocument:
    """The paragraphs, also of headers, footers, notes and text boxes. Raises DataError.

    Formats, links, pictures and notes go with the words that they belong to. Fields, such as numbers of pages, and what is
    deleted in tracked changes stay as they are.
    """
    trees = _read_parts(content)
    elements = [
        element
        for name, tree in trees.items()
        if name != _STYLES
        for element in elements_of(tree, "p")
        if element.tag.partition("}")[0] == tree.getroot().tag.partition("}")[0]
    ]
    paragraphs: list[_Paragraph] = []

    def texts() -> Iterator[InlineText]:
        for element in elements:
            paragraphs.append(_Paragraph(element))
            yield paragraphs[-1].text

    def write(translations: Sequence[Sequence[Piece]]) -> bytes:
        for paragraph, pieces in zip(paragraphs, translations, strict=True):
            if paragraph.text.has_letters:
                paragraph.write(pieces)
        for tree in trees.values():
            _name_language(tree, languages)
        return _with_parts(content, {name: write_xml(tree) for name, tree in trees.items()})

    return InlineDocument(texts(), write)


# --- the archive ----------------------------------------------------------------------------------------------------


def _read_parts(content: bytes) -> dict[str, _ElementTree]:
    """The parts that have text, and the styles. Raises DataError."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            members = archive.infolist()
            texts = [member for member in members if _TEXTS.fullmatch(member.filename)]
            if _MAIN not in archive.namelist():
                raise DataError("The file is no document of Word: it has no word/document.xml.")
            if _size(members) > _MOST_BYTES or _size(texts) > _MOST_XML:
                raise DataError(
                    f"The file has too much in it: {_MOST_BYTES:,} bytes are allowed, {_MOST_XML:,} of text."
                )
            if archive.testzip() is not None:
                raise BadZipFile
            return {name: read_xml(archive.read(name)) for name in dict.fromkeys(member.filename for member in texts)}
    except _DAMAGES:
        raise DataError("The file is no document of Word, or is encrypted or damaged.") from None


def _size(members: Iterable[ZipInfo]) -> int:
    """Bytes unpacked; reading a member never gives more than it says."""
    return sum(member.file_size for member in members)


def _with_parts(content: bytes, parts: dict[str, bytes]) -> bytes:
    """The archive with other parts in place of those of the same names."""
    written = BytesIO()
    with ZipFile(BytesIO(content)) as archive, ZipFile(written, "w", ZIP_DEFLATED) as new:
        for name in dict.fromkeys(archive.namelist()):
            new.writestr(name, archive.read(name) if name not in parts else parts[name])
    return written.getvalue()


def _name_language(tree: _ElementTree, languages: Languages) -> None:
    """Say of text in the source language that it is in the target language, for Word to check its spelling."""
    for element in elements_of(tree, "lang"):
        for name, code in element.attrib.items():
            if name.endswith("}val") and best_match([code], *languages) is not None:
                element.set(name, languages[1])


# --- a paragraph ----------------------------------------------------------------------------------------------------


class _Paragraph:
    """A paragraph as text with codes. Most of its text has one format; stretches in another one are pairs of codes."""

    def __init__(self, element: _Element) -> None:
        self._element = element
        lengths = Counter[bytes]()
        formats: dict[bytes, _Element | None] = {}
        for run in _runs(element):
            properties = child_of(run, "rPr")
            formats.setdefault(_key(properties), properties)
            lengths[_key(properties)] += sum(len(text.text or "") for text in run if name_of(text) == "t")
        usual = max(lengths, key=lengths.__getitem__, default=b"")
        self._usual = formats.get(usual)
        self.text = protected(_pieces(element, usual, count()))

    def write(self, pieces: Sequence[Piece]) -> None:
        """Replace the content of the paragraph."""
        _empty(self._element)
        path, formats = [self._element], [self._usual]
        after_break = False
        for piece in unprotected(pieces):
            if isinstance(piece, str):
                if text := piece[after_break and piece.startswith(" ") :]:
                    path[-1].append(self._run(formats[-1], self._text(text)))
            elif isinstance(piece, _WordCode):
                self._write_code(piece, path, formats)
            after_break = isinstance(piece, _WordCode) and piece.is_break

    def _write_code(self, code: _WordCode, path: list[_Element], formats: list[_Element | None]) -> None:
        """Write what a code stands for into the last element of a path; keep the path and the formats up to date."""
        match code.role, code.kind:
            case "format", "open":
                formats.append(code.elements[0] if code.elements else None)
            case "format", _:
                formats[1:] = formats[1:-1]
            case "container", "open":
                [container] = code.elements
                _empty(container)
                path[-1].append(container)
                path.append(container)
            case "container", _:
                path[1:] = path[1:-1]
            case _ if code.run is None:
                path[-1].extend(code.elements)
            case _:
                path[-1].append(self._run(child_of(code.run, "rPr"), *code.elements))

    def _run(self, properties: _Element | None, *elements: _Element) -> _Element:
        run = self._new("r")
        run.extend([*([] if properties is None else [deepcopy(properties)]), *elements])
        return run

    def _text(self, text: str) -> _Element:
        element = self._new("t")
        element.text = text
        element.set(_SPACE, "preserve")
        return element

    def _new(self, name: str) -> _Element:
        return self._element.makeelement(etree.QName(etree.QName(self._element).namespace, name))


def _content(element: _Element) -> list[_Element]:
    """What is in a paragraph or a container, but for its properties."""
    return [child for child in element if not name_of(child).endswith("Pr")]


def _empty(element: _Element) -> None:
    for child in _content(element):
        element.remove(child)


def _runs(element: _Element) -> Iterator[_Element]:
    """The runs of a paragraph, without those of paragraphs inside it."""
    for child in element:
        if name_of(child) == "r":
            yield child
        elif name_of(child) in _CONTAINERS:
            yield from _runs(child)


def _key(properties: _Element | None) -> bytes:
    """The same for formats that look the same."""
    seen = [] if properties is None else [each for each in properties if name_of(each) not in _UNSEEN]
    return b"".join(etree.tostring(each, with_tail=False) for each in seen)


def _pieces(parent: _Element, usual: bytes, numbers: Iterator[int]) -> Iterator[Piece]:
    """The content of a paragraph, or of a container in it."""
    children = [child for child in _content(parent) if name_of(child) not in _NOTHING]
    fields = _fields(children)
    key, name, end = usual, "", 0
    """The format that is open, the name of its pair, and where the children go on."""
    for number, child in enumerate(children):
        if number < end:
            continue
        is_run = name_of(child) == "r" and number not in fields
        changed = _key(child_of(child, "rPr")) if is_run else usual if name_of(child) in _CONTAINERS else key
        if changed != key:
            if key != usual:
                yield _WordCode("", "close", name, "format")
            key, name = changed, f"format {next(numbers)}"
            if key != usual:
                yield _WordCode("", "open", name, "format", tuple(each for each in child if name_of(each) == "rPr"))
        if number in fields:
            end = fields[number] + 1
            yield _WordCode("", "word", elements=tuple(children[number:end]))
        elif is_run:
            yield from _run_pieces(child)
        elif name_of(child) in _CONTAINERS:
            pair = f"container {next(numbers)}"
            yield _WordCode("", "open", pair, "container", (child,))
            yield from _pieces(child, usual, numbers)
            yield _WordCode("", "close", pair, "container")
        else:
            yield _other(child)
    if key != usual:
        yield _WordCode("", "close", name, "format")


def _attribute(element: _Element, name: str) -> str:
    """The value of an attribute, whatever its namespace; empty without."""
    return next((value for key, value in element.attrib.items() if key.endswith(f"}}{name}")), "")


def _run_pieces(run: _Element) -> Iterator[Piece]:
    """The text of a run, and what else is in it."""
    for child in _content(run):
        match name_of(child):
            case "t":
                yield child.text or ""
            case "noBreakHyphen":
                yield "\u2011"
            case name if name not in _NOTHING:
                yield _WordCode("", "mark", elements=(child,), run=run)
                yield " " if name in _BREAKS else ""


def _other(element: _Element) -> _WordCode:
    """An element between runs: the start or end of a range such as a bookmark, or what has no text of the paragraph."""
    name = name_of(element)
    kinds: dict[str, Kind] = {"Start": "open", "End": "close"}
    for end, kind in kinds.items():
        if name.endswith(end):
            return _WordCode("", kind, f"{name.removesuffix(end)} {_attribute(element, 'id')}", elements=(element,))
    return _WordCode("", "word" if name in _WORDS else "mark", elements=(element,))


def _fields(children: Sequence[_Element]) -> dict[int, int]:
    """Where fields start and end, by the number of the child that does."""
    fields: dict[int, int] = {}
    starts: list[int] = []
    for number, child in enumerate(children):
        for mark in child if name_of(child) == "r" else ():
            if name_of(mark) == "fldChar":
                kind = _attribute(mark, "fldCharType")
                if kind == "begin":
                    starts.append(number)
                elif kind == "end" and starts:
                    fields[starts.pop()] = number
    return fields
