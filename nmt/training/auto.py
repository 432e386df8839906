"""Load a recipe, and choose what it leaves open: from its text, from the model it starts from, or as the run it resumes did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nmt import recipe as recipes
from nmt.recipe import Choice, DataConfig, Recipe, choose_settings


def load_recipe(name: str | Path, overrides: str | Iterable[str] = (), *, run: Path | None = None) -> Recipe:
    """Load a recipe by file or shipped name, apply `a.b=value` overrides, and choose what it leaves open (`chosen: auto`).

    Args:
        name: the recipe.
        overrides: settings to change.
        run: the folder of a run to resume, whose choices stay.

    Raises:
        UsageError: the recipe cannot be used.
        DataError: its text cannot be used.
    """
    return recipes.load_recipe(name, overrides, choose=partial(_choose, run))


def _choose(run: Path | None, data: DataConfig, given: Mapping[str, Any]) -> list[Choice]:
    from nmt.bundle.folder import RECIPE, Bundle  # not at the top: a recipe that leaves nothing open needs no torch
    from nmt.data.locators import load_text, load_training_corpus
    from nmt.data.profile import profile_text
    from nmt.runtime.cache import expand_home

    if run is not None and (run / RECIPE).is_file():
        return recipes.recorded_choices(run / RECIPE)
    choices = choose_settings(profile_text(load_training_corpus(data), load_text(data, data.valid)), given)
    start = given.get("training.pretrained.model") or given.get("training.pretrained")
    if start is None:
        return choices
    pretrained = Bundle.load(expand_home(start), weights=False).recipe.model_dump(mode="json")
    settings = {"model": {key: value for key, value in pretrained["model"].items() if key != "dropout"}}
    if given.get("training.pretrained.subwords", "same") == "same":
        settings["subwords"] = pretrained["subwords"]
    return [*choices, Choice(settings, f"Start: as {start}, whose weights it takes over.")]
