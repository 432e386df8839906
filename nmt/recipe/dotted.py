"""Values of nested dicts by dotted key, such as `model.encoder.hidden`."""

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(tree: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """All values that are not sections, with their keys."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def value_at(tree: Mapping[str, Any], key: str) -> Any:
    """The value or section of a key; None if there is none."""
    value: Any = tree
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def put(tree: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a key, in sections that are made where they are missing."""
    *sections, last = key.split(".")
    for name in sections:
        tree = tree.setdefault(name, {})
    tree[last] = value
