"""The recipe and text that a training command is given."""

from __future__ import annotations

import json
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
TrainText = Annotated[str | None, _text("Training text: 'data/train.{es,gn}', a table, a corpus.", "TEXT", "--train")]
ValidText = Annotated[str | None, _text("Validation text.", "TEXT", "--valid")]
TestText = Annotated[str | None, _text("Text for `nmt evaluate`.", "TEXT", "--test")]


def named_recipe(recipes: list[str] | None, **text: str | None) -> tuple[str, list[str]]:
    """The name of the recipe, and the settings of its text.

    Without a recipe it is `auto`. A recipe that leaves its text open is named after the two languages.

    Args:
        recipes: the recipe, if one is given.
        text: the options `source`, `target`, `train`, `valid` and `test`.

    Raises:
        UsageError: there are several recipes, or neither a recipe nor all of the text.
    """
    from nmt.recipe import find_recipe, leaves_data_open

    values = {key: value for key, value in text.items() if value is not None}
    missing = [f"--{key}" for key in ("source", "target", "train", "valid") if key not in values]
    if recipes and len(recipes) > 1:
        quote = "Quote a pattern, so that the shell leaves its braces alone: --train 'data/train.{es,gn}'."
        raise UsageError(f"There is one recipe, not {len(recipes)}: {' '.join(recipes)}. {quote}")
    if not recipes and missing:
        raise UsageError(f"Give a recipe, or the text to train on: {', '.join(missing)} missing (`nmt train --help`).")
    name = recipes[0] if recipes else "auto"
    settings = {f"data.{key}": value for key, value in values.items()}
    if not missing and leaves_data_open(find_recipe(name)):
        settings["name"] = f"{values['source']}-{values['target']}"
    return name, [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
