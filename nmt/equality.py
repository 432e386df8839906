"""Equality of results that hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


class EqualByValue:
    """A base of frozen dataclasses (with `eq=False`) of which some fields are arrays or tensors on the CPU.

    Two are equal if they are of one class, and so are all fields, arrays in shape and every element.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(one, another) for one, another in zip(_values(self), _values(other), strict=True))

    def __hash__(self) -> int:
        """Of what is no array."""
        return hash(tuple(value for value in _values(self) if not _is_array(value)))


def _values(item: Any) -> list[Any]:
    return [getattr(item, part.name) for part in fields(item)]


def _is_array(value: object) -> bool:
    return hasattr(value, "__array__")


def _equal(one: Any, other: Any) -> bool:
    if _is_array(one) and _is_array(other):
        return np.array_equal(np.asarray(one), np.asarray(other))
    return bool(one == other)
