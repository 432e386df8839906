"""Equality of dataclasses that hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import numpy as np


class EqualByValue:
    """Base class for frozen dataclasses (`eq=False`) with arrays or CPU tensors among their fields.

    Two instances are equal if they have the same class and equal fields. Arrays are equal if shape and all elements are.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(cast(Any, self)))

    def __hash__(self) -> int:
        """Hash of the fields that are not arrays."""
        values = [getattr(self, field.name) for field in fields(cast(Any, self))]
        return hash(tuple(value for value in values if not hasattr(value, "__array__")))


def _equal(one: object, another: object) -> bool:
    if hasattr(one, "__array__") and hasattr(another, "__array__"):
        return np.array_equal(np.asarray(one), np.asarray(another))
    return bool(one == another)
