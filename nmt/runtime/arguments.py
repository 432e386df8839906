"""Checks of arguments of the Python API; each raises UsageError with one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Literal

from nmt.errors import UsageError

PrecisionName = Literal["auto", "fp32", "bf16", "fp16", "int8"]
"""Precision of decoding, as users name it."""


def refuse_address(name: str, locator: str) -> None:
    """Raise UsageError if a name is an address of the web; `locator` is how to write one of the hub after `hf:owner/name`."""
    if re.match("https?:/", name):
        raise UsageError(
            f"{name} is an address of the web: download the file, and name that, or write hf:owner/name{locator} for one on the "
            "Hugging Face hub."
        )


def as_path(value: object, name: str) -> Path:
    """Convert a str or path-like value to a Path. Raises UsageError for anything else."""
    if isinstance(value, str | os.PathLike) and isinstance(path := os.fspath(value), str):
        return Path(path)
    raise UsageError(f"{name} must be a path, as a str or a Path, but is {described(value)}.")


def described(value: object) -> str:
    """A value and its type, as error messages quote them."""
    shown = repr(value)
    return "None" if value is None else f"{shown if len(shown) <= 60 else shown[:60] + ' ...'} ({type(value).__name__})"


def check_counts(counts: Mapping[str, object]) -> None:
    """Raise UsageError unless every value is a whole number of at least 1."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UsageError(f"{name} must be a whole number, but is {described(value)}.")
        if int(value) < 1:
            raise UsageError(f"{name} must be at least 1, but is {value}.")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise UsageError unless the value is one of the choices."""
    names = list(choices)
    if value not in names:
        raise UsageError(f"{name} must be {', '.join(names[:-1])} or {names[-1]}, but is {described(value)}.")
