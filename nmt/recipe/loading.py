"""Recipes read from YAML and written to it: bases, overrides, and one sentence for everything that is wrong."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from nmt.arguments import as_path
from nmt.errors import UsageError
from nmt.recipe.messages import describe_errors, is_within, name_type
from nmt.recipe.schema import DecodingConfig, Recipe, SectionT
from nmt.recipe.shipped import find_recipe, is_file, shipped_recipes
from nmt.recipe.strict_yaml import dump_yaml, parse_yaml

_LARGEST = 100_000
"""Bytes of a recipe, which is a few thousand long; YAML is read slowly."""


def load_recipe(name: str | Path, overrides: str | Iterable[str] = (), *, based: bool = True) -> Recipe:
    """Read a recipe, a file or one that ships with the toolkit, apply `a.b=value` overrides, validate. Raises UsageError.

    A recipe that says `base: FILE` or the name of a shipped recipe is that one with what it says itself laid over it; with
    `based` false no other file is read, and a recipe that names one is refused.
    """
    path = as_path(name, "The recipe")
    if based and isinstance(name, str):
        path = find_recipe(name)
    tree = _read_tree(path, ()) if based else _read_file(path)
    if not based and "base" in tree:
        raise UsageError(f"{path}: 'base' is not followed in a model folder, whose recipe says everything itself.")
    inherited = _inherited(path) if based else {}
    for override in [overrides] if isinstance(overrides, str) else overrides:
        _set(tree, override)
        inherited = {key: base for key, base in inherited.items() if not is_within(key, override.partition("=")[0])}
    if based and "data" not in tree:
        raise UsageError(_without_text(path))
    return parse_recipe(tree, str(path), inherited)


EXAMPLE_DATA = (
    '{source: en, target: de, train: "data/train.{en,de}", valid: "data/dev.{en,de}", test: "data/test.{en,de}"}'
)
"""What `data` may look like, for recipes that leave it to those laid over them."""


def leaves_data_open(path: Path) -> bool:
    """Whether a recipe names no text, which the one laid over it does (`small`, `medium`)."""
    return "data" not in _read_tree(path, ())


def _without_text(path: Path) -> str:
    """What to write where a recipe names no text."""
    name = next((name for name, shipped in shipped_recipes().items() if shipped.samefile(path)), None)
    if name is None:
        return f"{path}: 'data' is missing: say which text to train on, as in data: {EXAMPLE_DATA}."
    return (
        f"The recipe '{name}' is for text of your own: write the lines 'base: {name}', 'name: mine' and "
        f"'data: {EXAMPLE_DATA}' into a file mine.yaml, and train that."
    )


def _read_tree(path: Path, readers: tuple[Path, ...]) -> dict[str, Any]:
    """The plain tree of a recipe file, laid over its base; `readers` are the files on whose behalf it is read."""
    if path.resolve() in readers:
        raise UsageError(f"{path}: the recipe is its own base; take 'base' out of one of the files.")
    tree = _read_file(path)
    base = tree.pop("base", None)
    if base is None:
        return tree
    if not isinstance(base, str):
        raise UsageError(f"{path}: 'base' is the file or the name of a recipe, but is {name_type(base)}.")
    return _laid_over(_read_tree(_base_file(path, base), (*readers, path.resolve())), tree)


def _base_file(path: Path, base: str) -> Path:
    """The file that a recipe calls its base: one beside it, or what `find_recipe` knows by that name."""
    beside = path.parent / base
    return beside if is_file(beside) else find_recipe(base)


def _inherited(path: Path) -> dict[str, Path]:
    """The dotted keys that a recipe takes from its base, each with the file that gives it."""
    tree = _read_file(path)
    if "base" not in tree:
        return {}
    base = _base_file(path, tree["base"])
    given = {*_dotted_keys(tree)}
    below = dict.fromkeys(_dotted_keys(_read_file(base)), base) | _inherited(base)
    return {key: file for key, file in below.items() if key not in given}


def _dotted_keys(tree: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """The paths of all values that are no sections."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _dotted_keys(value, f"{at}{key}.")
        else:
            yield f"{at}{key}"


def _read_file(path: Path) -> dict[str, Any]:
    """The plain tree that a file holds itself."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{path} is no recipe: it has more than {_LARGEST:,} bytes.")
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the recipe {path}: {error}.") from None
    tree = parse_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise UsageError(
            f"{path}: a recipe is a mapping of sections (name, data, model, ...), but this is {name_type(tree)}."
        )
    return tree


def _laid_over(base: dict[str, Any], tree: dict[str, Any]) -> dict[str, Any]:
    """The base with the tree's values in place of its own; sections join unless they are of another kind."""
    joined = dict(base)
    for key, value in tree.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict) and value.get("kind") in (None, below.get("kind")):
            value = _laid_over(below, value)
        joined[key] = value
    return joined


def parse_recipe(tree: Mapping[str, Any], where: str, inherited: Mapping[str, Path] | None = None) -> Recipe:
    """Validate a plain tree of values. Raises UsageError naming every wrong key.

    Args:
        tree: the values; what it leaves out follows from what it gives.
        where: names the tree in errors.
        inherited: the dotted keys that come from another file, which is named with them in errors.
    """
    return _validated(Recipe, tree, where, inherited=inherited or {})


def change_decoding(decoding: DecodingConfig, settings: Mapping[str, Any], where: str) -> DecodingConfig:
    """Decoding settings with others laid over them; `where` names these in errors. Raises UsageError naming every wrong key."""
    return _validated(DecodingConfig, {**decoding.model_dump(mode="json"), **settings}, where, within=("decoding",))


def _validated(
    kind: type[SectionT],
    tree: Mapping[str, Any],
    where: str,
    *,
    within: tuple[str, ...] = (),
    inherited: Mapping[str, Path] = MappingProxyType({}),
) -> SectionT:
    """The section of a plain tree, which stands `within` a recipe."""
    try:
        return kind.model_validate_json(json.dumps(tree, ensure_ascii=False).encode())
    except ValidationError as error:
        raise UsageError(f"{where}: {describe_errors(error.errors(), inherited, within)}") from None
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{where}: {error.object[max(error.start - 20, 0) : error.end]!r} has a lone surrogate."
        ) from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}.") from None


def dump_recipe(recipe: Recipe) -> str:
    """The complete effective recipe as YAML, defaults included; `load_recipe` reads it back unchanged."""
    return dump_yaml(json.loads(recipe.model_dump_json()))


def changed_keys(recipe: Recipe, path: Path) -> list[str]:
    """The dotted paths at which a recipe differs from the one in a file."""
    return _differences(json.loads(recipe.model_dump_json()), json.loads(load_recipe(path).model_dump_json()))


def _differences(one: Any, other: Any, at: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        return [path for key in keys for path in _differences(one.get(key), other.get(key), f"{at}.{key}".lstrip("."))]
    return [] if one == other else [at]


def _set(tree: dict[str, Any], override: str) -> None:
    """Put one `a.b=value` into the tree; the value is YAML."""
    path, equals, value = override.partition("=")
    if not equals or not all(path.split(".")):
        raise UsageError(f"--set takes a.b=value, but got '{override}'.")
    *parents, last = path.split(".")
    for parent in parents:
        child = tree.get(parent)
        if child is None:  # not there, or an optional section that is off
            child = tree[parent] = {}
        elif isinstance(child, str):  # a union written as its bare kind
            child = tree[parent] = {"kind": child}
        if not isinstance(child, dict):
            raise UsageError(f"--set {override}: '{parent}' is {name_type(child)}, so it has no key '{last}'.")
        tree = child
    tree[last] = parse_yaml(value, f"--set {override}")
