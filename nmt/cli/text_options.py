"""The recipe and text that a training command is given."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Annotated

from nmt.cli.options import THE_RECIPES, argument, option
from nmt.errors import UsageError

_text = partial(option, panel="Text", default=THE_RECIPES)
RecipeArgument = Annotated[
    list[str] | None,
    argument("YAML file, or a recipe that ships with nmt (`nmt recipe list`).", "RECIPE", default="auto"),
]
SourceCode = Annotated[str | None, _text("Source language, such as es.", "CODE", "--source")]
TargetCode = Annotated[str | None, _text("Target language, such as gn.", "CODE", "--target")]
TrainText = Annotated[str | None, _text("Training text: data/train.{es,gn}, a table, a corpus.", "TEXT", "--train")]
ValidText = Annotated[str | None, _text("Validation text.", "TEXT", "--valid")]
TestText = Annotated[str | None, _text("Text for `nmt evaluate`.", "TEXT", "--test")]
_SEPARATORS = re.compile(r"([./_-])")


def named_recipe(arguments: list[str] | None, **text: str | None) -> tuple[str, list[str]]:
    """The name of the recipe, and the settings of its text.

    Where a shell has expanded `--train data/train.{es,gn}` to `--train data/train.es data/train.gn`, the second is one of the
    arguments. A recipe that leaves its text open is named after the two languages.

    Args:
        arguments: the recipe, and what a shell made of braces; without a recipe it is `auto`.
        text: the options `source`, `target`, `train`, `valid` and `test`.

    Raises:
        UsageError: there are several recipes, or neither a recipe nor all of the text.
    """
    from nmt import recipe as recipes

    arguments = list(arguments or [])
    values = {
        key: value if key in ("source", "target") else _rejoin_braces(value, arguments)
        for key, value in text.items()
        if value is not None
    }
    if len(arguments) > 1:
        raise UsageError(f"There is one recipe, not {len(arguments)}: {' '.join(arguments)}.")
    missing = [f"--{key}" for key in ("source", "target", "train", "valid") if key not in values]
    if not arguments and missing:
        raise UsageError(f"Give a recipe, or the text to train on: {', '.join(missing)} missing (`nmt train --help`).")
    name = arguments[0] if arguments else "auto"
    settings = {f"data.{key}": value for key, value in values.items()}
    if not missing and recipes.leaves_data_open(recipes.find_recipe(name)):
        settings["name"] = f"{values['source']}-{values['target']}"
    return name, [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]


def _rejoin_braces(name: str, arguments: list[str]) -> str:
    """The pattern that a shell expanded into a name and one of the arguments, which is taken out of them; else the name itself."""
    for other_name in arguments:
        if pattern := _pattern(name, other_name):
            arguments.remove(other_name)
            return pattern
    return name


def _pattern(first: str, second: str) -> str | None:
    """`data/train.{es,gn}` for `data/train.es` and `data/train.gn`; None unless two names differ in one part."""
    one, other = _SEPARATORS.split(first), _SEPARATORS.split(second)
    if len(one) != len(other) or sum(a != b for a, b in zip(one, other, strict=True)) != 1:
        return None
    return "".join(a if a == b else f"{{{a},{b}}}" for a, b in zip(one, other, strict=True))
