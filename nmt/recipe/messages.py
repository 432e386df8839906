"""Error messages for invalid recipes, with the dotted path of each key."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nmt.recipe.schema import Recipe
from nmt.runtime.wording import did_you_mean

_CUTOFF = 0.5
"""Least similarity of a key or value that is suggested: they are few, so that a distant one may well be meant."""


def describe_errors(errors: Iterable[Any], inherited: Mapping[str, Path], within: tuple[str, ...] = ()) -> str:
    """Translate pydantic's errors into sentences.

    Args:
        errors: the errors, from `ValidationError.errors`.
        inherited: dotted keys that come from another file, which the messages then name.
        within: path of the section that was validated; empty for a whole recipe.
    """
    return " ".join(_sentence({**error, "loc": (*within, *error["loc"])}, inherited) for error in errors)


def _sentence(error: Any, inherited: Mapping[str, Path]) -> str:
    """One validation error as a sentence with its dotted path."""
    path = _dotted(error["loc"])
    match error["type"]:
        case "extra_forbidden":
            keys = _keys_at(error["loc"][:-1])
            known = f". Known keys: {', '.join(keys)}." if keys else "."
            return f"unknown key '{path}'" + did_you_mean(str(error["loc"][-1]), keys, known, cutoff=_CUTOFF)
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
            problem = error["ctx"]["error"]
            return (f"'{path}': " if path else "") + f"{problem}{_bases(path, problem, inherited)}."
        case _:
            message = error["msg"][0].lower() + error["msg"][1:]
            return f"'{path}': {message}, but is {error['input']!r}."


def _bases(path: str, problem: Exception, inherited: Mapping[str, Path]) -> str:
    """A note that names the contradictory keys that come from a base."""
    keys = [f"{path}.{key}".lstrip(".") for key in getattr(problem, "keys", ())]
    files = {key: file for key in keys for name, file in inherited.items() if is_within(name, key)}
    sources = ", ".join(f"{key} comes from the base {file}" for key, file in files.items())
    return f" ({sources})" if files else ""


def is_within(key: str, section: str) -> bool:
    """Whether a dotted key is the section itself or a key in it."""
    return f"{key}.".startswith(f"{section}.")


def name_type(value: object) -> str:
    """The type of a YAML value in plain words."""
    names = {
        list: "a list",
        dict: "a mapping",
        str: "text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
    }
    return names.get(type(value), "nothing")


def _dotted(location: tuple[int | str, ...]) -> str:
    """The dotted path in the YAML file, without the tags that pydantic adds for unions."""
    return ".".join(str(part) for part in _follow(location)[0])


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    """The valid keys of the section at a location."""
    return list(_follow(location)[1].get("properties", {}))


def _follow(location: tuple[int | str, ...]) -> tuple[list[int | str], Any]:
    """Follow a location through the schema; returns the keys without tags of unions, and the schema there."""
    schema: Any = Recipe.model_json_schema()
    path: list[int | str] = []
    node, definitions = schema, schema["$defs"]
    for part in location:
        node = _resolve(node, definitions)
        tagged = node.get("discriminator", {}).get("mapping", {})
        if part in tagged:
            node = {"$ref": tagged[part]}
        elif "oneOf" in node and not tagged:  # a locator or a mixture, by their types
            node = next(case for case in node["oneOf"] if (case["type"] == "array") == (part == "mixture"))
        elif isinstance(part, int):
            path.append(part)
            node = node.get("items", {})
        else:
            path.append(part)
            node = node.get("properties", {}).get(part, {})
    return path, _resolve(node, definitions)


def _resolve(node: Any, definitions: Any) -> Any:
    """Resolve references, and sections that may be null or a short form."""
    while "$ref" in node or "anyOf" in node:
        if "$ref" in node:
            node = definitions[node["$ref"].rsplit("/", 1)[-1]]
        else:
            node = next((case for case in node["anyOf"] if "$ref" in case), node["anyOf"][0])
    return node
