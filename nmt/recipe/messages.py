"""Error messages for invalid recipes, with the dotted path of each key."""

import re
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any

from nmt.recipe.schema import Recipe
from nmt.runtime.wording import did_you_mean

_CUTOFF = 0.5
"""Least similarity of a key or value that is suggested: they are few, so that a distant one may well be meant."""


def describe_errors(errors: Iterable[Any], within: tuple[str, ...] = ()) -> str:
    """Translate pydantic's errors into sentences.

    Args:
        errors: the errors, from `ValidationError.errors`.
        within: path of the section that was validated; empty for a whole recipe.
    """
    return " ".join(_sentence({**error, "loc": (*within, *error["loc"])}) for error in errors)


def _sentence(error: Any) -> str:
    """One validation error as a sentence with its dotted path."""
    keys, _ = _follow(error["loc"])
    path = ".".join(map(str, keys))
    match error["type"]:
        case "extra_forbidden":
            known = list(
                dict.fromkeys(key for node in _follow(error["loc"][:-1])[1] for key in node.get("properties", ()))
            )
            otherwise = f". Known keys: {', '.join(known)}." if known else "."
            return f"unknown key '{path}'" + did_you_mean(str(keys[-1]), known, otherwise, cutoff=_CUTOFF)
        case "missing":
            return f"'{path}' is missing."
        case "union_tag_invalid":
            tag, tags = error["ctx"]["tag"], error["ctx"]["expected_tags"]
            names = [name.strip("' ") for name in tags.split(",")]
            return f"'{path}' cannot be '{tag}'" + did_you_mean(tag, names, f"; it is one of {tags}.", cutoff=_CUTOFF)
        case "literal_error":
            value, expected = error["input"], error["ctx"]["expected"]
            names = re.findall("'([^']*)'", expected)
            guess = did_you_mean(str(value), names, f"; it is {expected}.", cutoff=_CUTOFF)
            return f"'{path}' cannot be {value!r}{guess}"
        case "union_tag_not_found" | "model_type" | "model_attributes_type":
            return f"'{path}' is a section with keys of its own, but is {error['input']!r}."
        case "value_error":
            return (f"'{path}': " if path else "") + f"{error['ctx']['error']}."
        case _:
            message = error["msg"][0].lower() + error["msg"][1:]
            return f"'{path}': {message}, but is {error['input']!r}."


def _follow(location: tuple[int | str, ...]) -> tuple[list[int | str], list[Any]]:
    """Follow a location through the schema; returns the keys without tags of unions, and the schemas that may stand there."""
    schema = Recipe.model_json_schema()

    def cases(node: Any) -> Iterator[Any]:
        """What a reference or a union stands for."""
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        for case in node.get("anyOf", node.get("oneOf", ())):
            yield from cases(case)
        yield node

    path: list[int | str] = []
    nodes: list[Any] = [schema]
    for part in location:
        kinds = [node.get("properties", {}).get("kind", {}) for node in nodes]
        tagged = [part == kind.get("const") or part in kind.get("enum", ()) for kind in kinds]
        if len(nodes) > 1 and any(tagged):
            nodes = list(compress(nodes, tagged))
        elif part not in ("locator", "mixture"):
            path.append(part)
            below = [
                node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part) for node in nodes
            ]
            nodes = [case for node in filter(None, below) for case in cases(node)]
    return path, nodes
