"""Read the test sets of WMT: two SGML files with the same documents and segments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from nmt.data.lines import Place, blocks
from nmt.data.tables import Pairs, suffix_among
from nmt.errors import DataError
from nmt.runtime.wording import counted

_TAG = re.compile(rb"<doc\b(?P<doc>[^>]*)>|<seg\b(?P<seg>[^>]*)>(?P<text>.*?)</seg>", re.DOTALL | re.IGNORECASE)
_SUFFIXES = (".sgm", ".sgml")
_ENTITIES = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&"}


@dataclass(frozen=True)
class Segment:
    """A segment: the numbers of its document and of itself, as the file has them, its text, and where it begins, in bytes."""

    document: str
    number: str
    text: bytes
    start: int


def segments(content: bytes) -> Iterator[Segment]:
    """The segments of a file, with one space for white space and entities as they are."""
    document = ""
    for tag in _TAG.finditer(content):
        if tag["text"] is None:
            document = _attribute(tag["doc"], rb"docid|id")
        else:
            yield Segment(document, _attribute(tag["seg"], rb"id"), b" ".join(tag["text"].split()), tag.start())


def _attribute(attributes: bytes, name: bytes) -> str:
    match = re.search(rb"\b(?:%b)\s*=\s*[\"']?([^\"'\s>]*)" % name, attributes, re.IGNORECASE)
    return match[1].decode(errors="replace") if match else ""


def is_sgml(place: Place) -> bool:
    """Whether a file is SGML, by its suffix."""
    return suffix_among(_SUFFIXES, place) is not None


def read_sgml(source: Place, target: Place) -> Pairs:
    """The pairs of two files. Raises DataError if one is damaged, or their documents and segments differ."""
    contents = [b"".join(blocks(place)) for place in (source, target)]  # test sets have a few thousand lines
    sides = [list(segments(content)) for content in contents]
    for number, (one, other) in enumerate(zip_longest(*sides), 1):
        if one is None or other is None:
            raise DataError(
                f"{source} has {counted(len(sides[0]), 'segment')}, but {target} has {len(sides[1]):,}: "
                "segment n of one must translate segment n of the other."
            )
        if (one.document, one.number) != (other.document, other.number):
            raise DataError(
                f"Segment {number:,} is {_name(one)} in {source}, but {_name(other)} in {target}: "
                "both need the same segments in the same order."
            )
        yield _text(one, contents[0], source), _text(other, contents[1], target)


def _name(segment: Segment) -> str:
    return f"number {segment.number or '?'} of document {segment.document or '?'}"


def _text(segment: Segment, content: bytes, place: Place) -> str:
    """The text with its entities replaced. Raises DataError naming file and line."""
    problem = "<seg> without </seg>" if re.search(rb"<seg\b", segment.text, re.IGNORECASE) else ""
    try:
        text = segment.text.decode()
    except UnicodeDecodeError:
        problem = "not valid UTF-8"
    if problem:
        line = content.count(b"\n", 0, segment.start) + 1
        raise DataError(f"{place}, line {line}: {problem}.")
    return re.sub(r"&(lt|gt|quot|apos|amp);", lambda entity: _ENTITIES[entity[1]], text)
