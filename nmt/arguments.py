"""Arguments of the Python API: accepted in every form that says the same, or refused in a sentence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path

from nmt.errors import UsageError


def as_path(value: object, name: str) -> Path:
    """A path that may be given as text. Raises UsageError."""
    if isinstance(value, str | os.PathLike) and isinstance(path := os.fspath(value), str):
        return Path(path)
    raise UsageError(f"{name} must be a path, as a str or a Path, but is {described(value)}.")


def described(value: object) -> str:
    """A wrong value and its type, in a few words."""
    shown = repr(value)
    return "None" if value is None else f"{shown if len(shown) <= 60 else shown[:60] + ' ...'} ({type(value).__name__})"


def check_counts(counts: Mapping[str, object]) -> None:
    """Raise UsageError unless each is a whole number of at least 1."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UsageError(f"{name} must be a whole number, but is {described(value)}.")
        if int(value) < 1:
            raise UsageError(f"{name} must be at least 1, but is {value}.")


def check_flags(flags: Mapping[str, object]) -> None:
    """Raise UsageError unless each is True or False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise UsageError(f"{name} must be True or False, but is {described(value)}.")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise UsageError unless a value is one of a few names."""
    names = list(choices)
    if value not in names:
        raise UsageError(f"{name} must be {', '.join(names[:-1])} or {names[-1]}, but is {described(value)}.")
