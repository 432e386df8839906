"""Format counts, figures and excerpts of text in messages."""


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural unless the count is 1: `1 line`, `2,000 lines`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def perplexity(value: float) -> str:
    """A perplexity with two decimals."""
    return f"{value:,.2f}"


def escaped(text: str) -> str:
    """A text with its non-printable characters escaped, which could steer a terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def excerpt(text: str, length: int) -> str:
    """At most `length` characters of a text, the last of them `…` if it is cut; non-printable ones are escaped."""
    printable = escaped(text[: length + 1])
    return printable if len(printable) <= length else f"{printable[: length - 1]}…"
