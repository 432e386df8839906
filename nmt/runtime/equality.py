"""Equality of dataclasses that hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


class EqualByValue:
    """Base class for frozen dataclasses (`eq=False`) with arrays or CPU tensors among their fields.

    Two instances are equal if they have the same class and equal fields. Arrays are equal if shape and all elements are.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(one, another) for one, another in zip(_values(self), _values(other), strict=True))

    def __hash__(self) -> int:
        """Hash of the fields that are not arrays."""
        return hash(tuple(value for value in _values(self) if not _is_array(value)))


def _values(item: Any) -> list[Any]:
    return [getattr(item, field.name) for field in fields(item)]


def _is_array(value: object) -> bool:
    return hasattr(value, "__array__")


def _equal(one: Any, other: Any) -> bool:
    if _is_array(one) and _is_array(other):
        return np.array_equal(np.asarray(one), np.asarray(other))
    return bool(one == other)
