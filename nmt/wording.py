"""How counts and figures are written in messages."""


def counted(count: int, noun: str) -> str:
    """`1 line`, `2,000 lines`: a count with its noun, in the plural unless it is one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def perplexity(value: float) -> str:
    """A perplexity, with two decimals wherever it is shown."""
    return f"{value:,.2f}"
