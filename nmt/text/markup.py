"""HTML as a browser reads it: blocks, each a text with inline codes, and what is between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape, unescape
from typing import Literal

from nmt.text.inline import Code, Kind, Piece, kept_text

_BLOCKS = frozenset(
    """
    address article aside audio blockquote body br button canvas caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link main menu meta nav noframes
    noscript object ol optgroup option p param pre search section select source summary table tbody td template textarea tfoot
    th thead title tr track ul video
    """.split()
)
"""Elements that end a sentence; all others are parts of one."""
_EMPTY = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_CODE = frozenset("code pre script style textarea".split())
"""Elements whose content is not translated."""
_RAW = frozenset("script style textarea title".split())
"""Elements in which there are no tags but their end."""
_MARKUP = re.compile(
    r"""
      <!--.*?(?:-->|\Z)
    | <!\[CDATA\[.*?(?:\]\]>|\Z)
    | <[!?][^>]*(?:>|\Z)
    | <(?P<slash>/?)(?P<name>[A-Za-z][^\s/>]*)(?P<attributes>(?:=\s*+"[^"]*"|=\s*+'[^']*'|[^>])*+)(?:>|\Z)
    """,
    re.DOTALL | re.VERBOSE,
)
"""Comments, declarations and tags; one that does not end goes to the end of the text, so that time is linear."""
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]++)(?:\s*+=\s*+("[^"]*"|'[^']*'|[^\s>]++))?""")
_SELF_CLOSING = re.compile(r"(?:^|[\s\"'])/\Z")
_SPACES = re.compile(r"[ \t\r\n\f]+")


@dataclass(frozen=True)
class _Token:
    """Text, a tag, or an element that is not translated, as it is written.

    Attributes:
        kind: `whole` is an element without end tag, or with its content; `kept` is text that is not translated.
        name: of the element, in small letters; empty for text and comments.
        translates: whether the content is to be translated; None if the element around it decides.
        words: the content without markup, if it is part of a sentence.
    """

    raw: str
    kind: Literal["text", "kept", "open", "close", "whole"]
    name: str = ""
    translates: bool | None = None
    words: str = ""


def html_blocks(text: str) -> Iterator[str | list[Piece]]:
    """The blocks of HTML, each as text and codes without entities, and markup between them as it is written.

    Scripts, code, and elements whose author says `translate="no"` or `notranslate` are codes with their content; the latter keep
    words. In an element that holds one with `translate="yes"`, tags are codes as elsewhere, and so is each text that stays.
    """
    run: list[_Token] = []
    for token in _elements(_tokens(text)):
        if token.name in _BLOCKS:
            yield from _block(run)
            run = []
            yield token.raw
        else:
            run.append(token)
    yield from _block(run)


def html_text(text: str) -> str:
    """Plain text as HTML."""
    return escape(text, quote=False)


def _block(run: list[_Token]) -> Iterator[str | list[Piece]]:
    """A block without the white space and the comments around it; only markup if it has no text."""
    raw = [token.raw for token in run]
    visible = [number for number, token in enumerate(run) if token.kind == "text" and token.raw.strip()]
    if not visible:
        yield "".join(raw)
        return
    pieces = [piece for token in run for piece in _pieces(token)]
    first, last = run[0].raw, run[-1].raw
    if run[0].kind == "text":
        yield first[: len(first) - len(first.lstrip())]
        pieces[0] = str(pieces[0]).lstrip()
    if run[-1].kind == "text":
        pieces[-1] = str(pieces[-1]).rstrip()
    yield pieces
    if run[-1].kind == "text":
        yield last[len(last.rstrip()) :]


def _pieces(token: _Token) -> Iterator[Piece]:
    match token.kind:
        case "text":
            yield _text(token)
        case "kept":
            yield from kept_text(token.raw, _text(token))
        case "whole":
            kind: Kind = "word" if token.translates is False and token.name not in _RAW else "mark"
            yield Code(token.raw, kind, words=token.words)
        case kind:
            yield Code(token.raw, kind, token.name)


def _text(token: _Token) -> str:
    return _SPACES.sub(" ", unescape(token.raw))


def _tokens(text: str) -> Iterator[_Token]:
    """The markup and the text between it."""
    place = 0
    while match := _MARKUP.search(text, place):
        if match.start() > place:
            yield _Token(text[place : match.start()], "text")
        place = match.end()
        token = _tag(match)
        yield token
        if token.kind == "open" and token.name in _RAW:
            end = re.compile(rf"</{token.name}(?=[\s/>])|\Z", re.IGNORECASE).search(text, place)
            assert end is not None, "the end of the text matches"
            if end.start() > place:
                yield _Token(text[place : end.start()], "text")
            place = end.start()
    if place < len(text):
        yield _Token(text[place:], "text")


def _tag(match: re.Match[str]) -> _Token:
    if match["name"] is None:
        return _Token(match[0], "whole")
    name = match["name"].lower()
    if match["slash"]:
        return _Token(match[0], "close", name)
    is_whole = name in _EMPTY or _SELF_CLOSING.search(match["attributes"]) is not None
    return _Token(match[0], "whole" if is_whole else "open", name, _translates(name, match["attributes"]))


def _translates(name: str, attributes: str) -> bool | None:
    """Whether an element says that its content is to be translated; None if it says nothing."""
    said = None
    if "translate" in attributes.lower():
        values = {match[1].lower(): (match[2] or "").strip("\"'") for match in _ATTRIBUTE.finditer(attributes)}
        is_kept = "notranslate" in values.get("class", "").split()
        said = False if is_kept else {"no": False, "yes": True, "": True}.get(values.get("translate", "-").lower())
    if name in _CODE and (said is None or name in _RAW):
        return False
    return said


def _elements(tokens: Iterator[_Token]) -> Iterator[_Token]:
    """The tokens, with each element that is not translated as one; an element that does not end goes to the end of the text."""
    for token in tokens:
        if token.kind != "open" or token.translates is not False:
            yield token
            continue
        parts, depth = [token], 1
        for inner in tokens:
            parts.append(inner)
            if inner.name == token.name and inner.kind != "whole":
                depth += 1 if inner.kind == "open" else -1
            if depth == 0:
                break
        if any(part.kind == "open" and part.translates for part in parts):
            yield from _partly_kept(parts)
            continue
        is_inline = not any(part.name in _BLOCKS or part.name in _CODE for part in parts)
        words = "".join(_text(part) for part in parts if part.kind == "text") if is_inline else ""
        yield _Token("".join(part.raw for part in parts), "whole", token.name, translates=False, words=words)


def _partly_kept(parts: list[_Token]) -> Iterator[_Token]:
    """The tokens of an element in which some is to be translated, and text that is not as `kept`."""
    path: list[tuple[str, bool]] = []
    for part in parts:
        if part.kind == "text" and not path[-1][1]:
            yield replace(part, kind="kept")
            continue
        yield part
        if part.kind == "open":
            path.append((part.name, path[-1][1] if part.translates is None else part.translates))
        elif part.kind == "close" and any(name == part.name for name, _ in path[1:]):
            while path.pop()[0] != part.name:
                pass
