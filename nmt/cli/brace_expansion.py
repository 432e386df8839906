"""What a shell makes of `--train data/train.{es,gn}`: an option `--train data/train.es` and an argument `data/train.gn`."""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"([./_-])")


def rejoin_braces(name: str, arguments: list[str]) -> str:
    """The pattern that a shell expanded into a name and one of the arguments, which is taken out of them; else the name itself.

    The two differ in one part: `data/train.es` and `data/train.gn` give `data/train.{es,gn}`.
    """
    for argument in arguments:
        if pattern := _pattern(name, argument):
            arguments.remove(argument)
            return pattern
    return name


def _pattern(first: str, second: str) -> str | None:
    """The pattern with braces that stands for both names; None unless they differ in one part."""
    one, other = _SEPARATORS.split(first), _SEPARATORS.split(second)
    if len(one) != len(other):
        return None
    parts = [a if a == b else f"{{{a},{b}}}" for a, b in zip(one, other, strict=True)]
    return "".join(parts) if sum(a != b for a, b in zip(one, other, strict=True)) == 1 else None
