"""Checks of annotated shapes and types, limited per test: a loop over time steps repeats the same check hundreds of times.

In each test every annotated function is checked in its first `EACH` calls, until `TOTAL` calls were counted over all functions.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from beartype import BeartypeConf, beartype
from jaxtyping import config

EACH = 5
TOTAL = 1000

_check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float
_calls: Counter[object] = Counter()


def check_first_calls(function: Callable[..., Any]) -> Callable[..., Any]:
    """The type checker for jaxtyping: beartype, until the limits of the running test are reached."""
    check = cache(partial(_check, function))  # compiled at the first call: many functions have none

    def limited(*args: Any, **named: Any) -> Any:
        _calls[limited] += 1
        _calls["total"] += 1
        if _calls["total"] >= TOTAL:
            config.update("jaxtyping_disable", True)
        return check()(*args, **named) if _calls[limited] <= EACH else None

    return limited


def renew() -> None:
    """Start counting again, for the next test."""
    _calls.clear()
    config.update("jaxtyping_disable", False)
