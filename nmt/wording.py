"""Format counts and figures in messages."""


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural unless the count is 1: `1 line`, `2,000 lines`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def perplexity(value: float) -> str:
    """A perplexity with two decimals."""
    return f"{value:,.2f}"
