"""Read recipes from YAML, with bases and overrides, and write them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nmt.errors import UsageError
from nmt.recipe.choosing import AUTO, Choice, Choose
from nmt.recipe.data import HELD_OUT, REST, DataConfig, FiltersConfig
from nmt.recipe.messages import describe_errors
from nmt.recipe.schema import Recipe
from nmt.recipe.scoring import FOUND_IN_TRAINING
from nmt.recipe.section import SectionT
from nmt.recipe.shipped import QUOTE_BRACES, find_recipe
from nmt.recipe.strict_yaml import dump_yaml, parse_yaml
from nmt.runtime.arguments import as_path
from nmt.runtime.wording import excerpt

EXAMPLE_DATA = (
    '{source: en, target: de, train: "data/train.{en,de}", valid: "data/dev.{en,de}", test: "data/test.{en,de}"}'
)
"""An example of `data`, for recipes that leave it to the recipes based on them."""
_REMOVED = ("stream", "similarity")
"""Settings of `data`, or of a corpus in it, that model folders may have and that no longer exist."""
_LARGEST = 100_000
"""Maximum bytes of a recipe. Real ones have a few thousand, and parsing YAML is slow."""


def load_recipe(
    name: str | Path, overrides: str | Iterable[str] = (), *, based: bool = True, choose: Choose | None = None
) -> Recipe:
    """Load a recipe by file or shipped name, apply `a.b=value` overrides and validate it. Raises UsageError.

    A recipe with the key `base`, a file or the name of a shipped recipe, inherits all settings from it that it does not set
    itself. With `based` false, `base` is an error and no other file is read. A recipe with `chosen: auto` gets the settings that
    `choose` chooses and it does not set itself; without `choose` it is an error.
    """
    path, tree = read_recipe(name, overrides, based=based)
    if tree.get("chosen") == AUTO:
        if choose is None:
            raise UsageError(
                f"{path}: the settings that follow from the text are not known here: train it with `nmt train`."
            )
        data = _validated(DataConfig, tree["data"], str(path), within=("data",))
        try:
            tree = _with_choices(tree, partial(choose, data))
        except (TypeError, ValueError):  # a value of another type than the choices that depend on it need
            parse_recipe(tree, str(path))
            raise
    return parse_recipe(tree, str(path))


def read_recipe(
    name: str | Path, overrides: str | Iterable[str] = (), *, based: bool = True
) -> tuple[Path, dict[str, Any]]:
    """The file of a recipe, and its sections with those of its bases and the overrides, as `load_recipe` validates them."""
    path = as_path(name, "The recipe")
    if based and isinstance(name, str):
        path = find_recipe(name)
    tree = _read_tree(path, ()) if based else _read_file(path)
    for override in [overrides] if isinstance(overrides, str) else overrides:
        _set(tree, override)
    if based and "data" not in tree:
        raise UsageError(
            f"{path}: 'data' is missing: say which text to train on. Write the lines 'base: {name}', 'name: mine' and "
            f"'data: {EXAMPLE_DATA}' into a file of your own, and train that."
        )
    if path.name == "recipe.yaml" and path.with_name("source.model").exists():  # in a model folder
        _complete(tree)
    _complete_data(tree.get("data"))
    return path, tree


def _is_within(key: str, section: str) -> bool:
    """Whether a dotted key is the section itself or a key in it."""
    return f"{key}.".startswith(f"{section}.")


def _with_choices(tree: dict[str, Any], choose: Callable[[Mapping[str, Any]], list[Choice]]) -> dict[str, Any]:
    """Fill in the settings that are chosen, but for those that the recipe says itself, and record which and why.

    Of two choices of one setting, the later is taken.
    """
    del tree["chosen"]
    given = dict(leaves(tree))
    choices = {
        leaf: (value, key, choice.reason)
        for choice in choose(given)
        for key, section in choice.settings.items()
        for leaf, value in leaves({key: section})
    }
    kinds = {key for key in given.keys() & choices.keys() if key.endswith(".kind") and given[key] != choices[key][0]}
    reasons: dict[str, dict[str, None]] = {}
    for leaf, (value, key, reason) in choices.items():
        is_said = any(_is_within(leaf, said) or _is_within(said, leaf) for said in given)
        is_of_another_kind = any(_is_within(leaf, kind.removesuffix(".kind")) for kind in kinds)
        if not is_said and not is_of_another_kind:
            put(tree, leaf, value)
            reasons.setdefault(reason, {})[key] = None
    return {**tree, "chosen": [{"settings": list(keys), "reason": reason} for reason, keys in reasons.items()]}


def is_chosen(recipe: Recipe, key: str) -> bool:
    """Whether a setting was left open, and chosen."""
    return any(key in choice.settings for choice in recipe.chosen)


def choose_again(recipe: Recipe, choice: Choice) -> Recipe:
    """The recipe with another choice for settings that were chosen by themselves."""
    tree = json.loads(recipe.model_dump_json())
    for key, value in choice.settings.items():
        put(tree, key, value)
    tree["chosen"] = [
        {**old, "reason": choice.reason} if choice.settings.keys() & set(old["settings"]) else old
        for old in tree["chosen"]
    ]
    return parse_recipe(tree, recipe.name)


def recorded_choices(path: Path) -> list[Choice]:
    """What was chosen for the recipe of a model folder."""
    recipe = load_recipe(path, based=False)
    values, removed = json.loads(recipe.model_dump_json()), {f"data.{key}" for key in _REMOVED}
    return [
        Choice({key: value_at(values, key) for key in choice.settings if key not in removed}, choice.reason)
        for choice in recipe.chosen
    ]


def _complete(tree: dict[str, Any]) -> None:
    """Set what a model was trained with before there was a setting for it, and drop settings that no longer exist."""
    if isinstance(data := tree.get("data"), dict):
        data.setdefault("normalization", "none")
        mixture = data["train"] if isinstance(data.get("train"), list) else ()
        for section in [data, *(corpus for corpus in mixture if isinstance(corpus, dict))]:
            for key in _REMOVED:
                section.pop(key, None)
    score = value_at(tree, "model.attention.score")
    if isinstance(score, dict) and score.get("coverage") is False:  # coverage was a part of some scores
        del score["coverage"]


def _complete_data(data: object) -> None:
    """Take languages that are not set from the corpora; without `valid`, validate on a part of `train` and train on the rest."""
    train = data.get("train") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(train, str) and data.get("valid") is None:
        data.update(train=train + REST, valid=train + HELD_OUT)
    for section in train if isinstance(train, list) else ():
        for key, name in (("source", "from"), ("target", "to")):
            if isinstance(data, dict) and isinstance(section, dict) and name in section:
                data.setdefault(key, section[name])


def leaves_data_open(path: Path) -> bool:
    """Whether a recipe has no `data`, which the recipes based on it set (`small`, `medium`)."""
    return "data" not in _read_tree(path, ())


def _read_tree(path: Path, readers: tuple[Path, ...]) -> dict[str, Any]:
    """Read a recipe file and merge it into its base; `readers` are the recipes based on it, to detect cycles."""
    if path.resolve() in readers:
        raise UsageError(f"{path}: the recipe is its own base; take 'base' out of one of the files.")
    tree = _read_file(path)
    base = tree.pop("base", None)
    if base is None:
        return tree
    if not isinstance(base, str):
        raise UsageError(f"{path}: 'base' is the file or the name of a recipe, but is {base!r}.")
    beside = path.parent / base
    inherited = _read_tree(beside if beside.is_file() else find_recipe(base), (*readers, path.resolve()))
    inherited.pop("reported", None)  # scores of the base's model
    return _merged(inherited, tree)


def _read_file(path: Path) -> dict[str, Any]:
    """Parse one recipe file, without its base."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{path} is not a recipe: it has more than {_LARGEST:,} bytes.")
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the recipe {path}: {error}.") from None
    tree = parse_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise UsageError(
            f"{path}: a recipe is a mapping of sections (name, data, model, ...), but this is {excerpt(repr(tree), 40)}."
            + QUOTE_BRACES
        )
    return tree


def _merged(base: dict[str, Any], tree: dict[str, Any]) -> dict[str, Any]:
    """Merge a recipe into its base. Sections are merged recursively unless their `kind` differs."""
    merged = dict(base)
    for key, value in tree.items():
        inherited = base.get(key)
        if (
            isinstance(inherited, dict)
            and isinstance(value, dict)
            and value.get("kind") in (None, inherited.get("kind"))
        ):
            value = _merged(inherited, value)
        merged[key] = value
    return merged


def parse_recipe(tree: Mapping[str, Any], where: str) -> Recipe:
    """Validate a recipe given as nested dicts; `where` names it in error messages. Raises UsageError naming every wrong key."""
    return _validated(Recipe, tree, where)


def change_decoding(decoding: SectionT, settings: Mapping[str, Any], where: str) -> SectionT:
    """Change some decoding settings; a beam size alone asks for beam search. Raises UsageError naming `where` and every wrong key."""
    search = {"mbr_samples": None} if "beam_size" in settings else {}
    try:
        return type(decoding).model_validate({**dict(decoding), **search, **settings})
    except ValidationError as error:
        raise UsageError(f"{where}: {describe_errors(error.errors(), ('decoding',))}") from None


def parse_filters(settings: Mapping[str, Any], where: str) -> FiltersConfig:
    """Validate filters given as a dict; `where` names them in error messages. Raises UsageError naming every wrong key."""
    return _validated(FiltersConfig, settings, where, within=("data", "filters"))


def _validated(kind: type[SectionT], tree: Mapping[str, Any], where: str, *, within: tuple[str, ...] = ()) -> SectionT:
    """Validate a section given as nested dicts; `within` is its path in the recipe."""
    try:
        return kind.model_validate_json(json.dumps(tree, ensure_ascii=False).encode())
    except ValidationError as error:
        raise UsageError(f"{where}: {describe_errors(error.errors(), within)}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}.") from None


def dump_recipe(recipe: Recipe) -> str:
    """The complete recipe as YAML, defaults included; `load_recipe` reads it back unchanged."""
    return dump_yaml(json.loads(recipe.model_dump_json()))


def flat_settings(recipe: Recipe) -> dict[str, Any]:
    """The settings by dotted key, as plain values, without what others reported and why settings were chosen."""
    return dict(leaves(json.loads(recipe.model_dump_json(exclude={"reported", "chosen"}))))


def changed_keys(recipe: Recipe, path: Path) -> list[str]:
    """The dotted keys whose values differ from those of the recipe in a file, as `flat_settings` has them.

    Settings that the recipe leaves to training, and that training has written into the file, do not differ.
    """
    ours, theirs = flat_settings(recipe), flat_settings(load_recipe(path))
    left = {f"decoding.{name}" for name in FOUND_IN_TRAINING if getattr(recipe.decoding, name) is None}
    return [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key) and key not in left]


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """The sections of a recipe that overrides `a.b=value` set. Raises UsageError."""
    tree: dict[str, Any] = {}
    for override in overrides:
        _set(tree, override)
    return tree


def _set(tree: dict[str, Any], override: str) -> None:
    """Apply one override `a.b=value` to the tree; the value is YAML."""
    path, equals, value = override.partition("=")
    if not equals or not all(path.split(".")):
        raise UsageError(f"--set takes a.b=value, but got '{override}'.")
    put(tree, path, parse_yaml(value, f"--set {override}"))


# --- values by dotted key, such as `model.encoder.hidden` --------------------------------------------------------------


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
    """Set the value of a key, in sections that are made where they are missing. Raises UsageError."""
    *sections, last = key.split(".")
    for name in sections:
        section = tree.get(name)
        if section is None:  # missing, or an optional section that is null
            section = tree[name] = {}
        elif isinstance(section, str):  # a union written as its kind alone
            section = tree[name] = {"kind": section}
        if not isinstance(section, dict):
            raise UsageError(f"{key} cannot be set: '{name}' is {section!r}, so it has no key '{last}'.")
        tree = section
    tree[last] = value
