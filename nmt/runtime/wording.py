"""Format counts, figures, suggestions and excerpts of text in messages."""

import difflib
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural unless the count is 1: `1 line`, `2,000 lines`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Iterable[str]) -> str:
    """Names as one reads them: `a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def perplexity(value: float) -> str:
    """A perplexity with two decimals."""
    return f"{value:,.2f}"


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def nearest(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The most similar of some names; None if the similarity of none, from 0 to 1, reaches `cutoff`."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, names: Iterable[str], otherwise: str = ".", *, cutoff: float = 0.6) -> str:
    """The end of a message about an unknown name: `; did you mean 'x'?`, or `otherwise` if none of the names is near."""
    guess = nearest(name, names, cutoff=cutoff)
    return otherwise if guess is None else f"; did you mean '{guess}'?"


def reason(error: BaseException) -> str:
    """What an error says, in one line without a full stop; the name of its type if it says nothing.

    An error of a connection says its reason, one of the system what its number means.
    """
    text: object = error
    if isinstance(error, OSError):
        text = getattr(error, "reason", None) or error.strerror or error
    return " ".join(str(text).split()).rstrip(".") or type(error).__name__


def escaped(text: str) -> str:
    """A text with its non-printable characters escaped, which could steer a terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def excerpt(text: str, length: int) -> str:
    """At most `length` characters of a text, the last of them `…` if it is cut; non-printable ones are escaped."""
    printable = escaped(text[: length + 1])
    return printable if len(printable) <= length else f"{printable[: length - 1]}…"
