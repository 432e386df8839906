"""`nmt info` and `nmt recipe`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from nmt.cli.commands import Command, SubCommands
from nmt.cli.options import AsJson, Model, argument, set_up
from nmt.runtime.wording import counted, escaped, in_columns, perplexity

recipe_app = typer.Typer(
    name="recipe",
    cls=SubCommands,
    help="""List and show recipes, and print their JSON Schema.

    Examples:
      nmt recipe list
      nmt recipe show quickstart > mine.yaml

    Details:

    A recipe is a YAML file with the settings of a model and its training. Without COMMAND the recipes are listed.
    """,
)


def info(model: Model, as_json: AsJson = False) -> None:
    """Print the settings of a model and its validation scores.

    Examples:
      nmt info runs/bahdanau
      nmt info runs/bahdanau --json | jq .best.bleu

    Details:

    With --json, print an object with the keys `recipe` (every setting, as `nmt train --dump-recipe` prints it),
    `vocabulary` (tokens of `source` and `target`), `parameters`, `data` (the content of data.json: number of lines and hash of
    the texts that the model was trained on, and what the filters removed; or null), `best` and `last` (the records of the best
    and the last validation in metrics.jsonl, or null).
    """
    set_up()
    from nmt.bundle.folder import Bundle
    from nmt.bundle.places import find_model
    from nmt.sharing.description import describe_model
    from nmt.training.data_file import load_data_description
    from nmt.training.log import best_validation, read_validations

    folder = find_model(model)
    bundle, data, validations = Bundle.load(folder), load_data_description(folder), read_validations(folder)
    if as_json:
        content = {
            "recipe": bundle.recipe.model_dump(mode="json"),
            "vocabulary": {"source": len(bundle.source), "target": len(bundle.target)},
            "parameters": bundle.parameters,
            "data": None if data is None else data.model_dump(),
            "best": best_validation(validations),
            "last": validations[-1] if validations else None,
        }
        typer.echo(json.dumps(content, ensure_ascii=False, indent=2))
    else:
        print_table({**describe_model(bundle, data), **_best(validations)}.items())


def _best(records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The best validation, if there is one, and the time of training."""
    from nmt.evaluation.metrics import VALIDATION_SCORES as SCORES
    from nmt.training.log import best_validation

    last = best_validation(records)
    if last is None:
        return {}
    scores = "".join(f"{name} {last[key]:.2f}, " for key, name in SCORES.items() if key in last)
    signatures = {f"signature of {SCORES[key]}": text for key, text in last.get("signatures", {}).items()}
    minutes = records[-1]["seconds"] / 60
    return {
        "best valid": f"{scores}perplexity {perplexity(last['perplexity'])} at update {last['update']}, epoch {last['epoch']}",
        **signatures,
        "trained for": f"{counted(records[-1]['update'], 'update')}, {minutes:.1f} minutes",
    }


def print_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows with aligned columns."""
    for line in in_columns([[escaped(cell) for cell in row] for row in rows]):
        typer.echo(line)


# --- recipes ----------------------------------------------------------------------------------------------------


@recipe_app.command("list", cls=Command)
def list_recipes() -> None:
    """List the recipes that ship with nmt.

    Examples:
      nmt recipe list
      nmt recipe list | grep -i local
    """
    from nmt.recipe import recipe_title, shipped_recipes

    print_table([name, recipe_title(path)] for name, path in sorted(shipped_recipes().items()))


@recipe_app.command("show", cls=Command)
def show_recipe(name: Annotated[str, argument("A recipe of `nmt recipe list`.", "RECIPE")]) -> None:
    """Print a recipe, to start one of your own.

    Examples:
      nmt recipe show quickstart
      nmt recipe show multi30k-en-de/bahdanau > mine.yaml
    """
    from nmt.recipe import find_recipe

    typer.echo(find_recipe(name).read_text(encoding="utf-8"), nl=False)


@recipe_app.command("schema", cls=Command)
def show_schema() -> None:
    """Print the JSON Schema of recipes, for editors.

    Examples:
      nmt recipe schema > recipe.schema.json
      nmt recipe schema | python -m json.tool | less
    """
    from nmt.recipe import recipe_schema

    typer.echo(json.dumps(recipe_schema(), indent=2, ensure_ascii=False))
