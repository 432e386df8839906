"""`nmt info` and `nmt recipe`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from nmt.cli.commands import Command, SubCommands
from nmt.cli.options import Model, set_up
from nmt.errors import DataError
from nmt.wording import counted, perplexity

if TYPE_CHECKING:
    from nmt.model_folder import Bundle
    from nmt.recipe import (
        AttentionConfig,
        DataConfig,
        DecoderConfig,
        EncoderConfig,
        FiltersConfig,
        GuidedAlignmentConfig,
        ModelConfig,
        PretrainedConfig,
        RecurrentModelConfig,
    )
    from nmt.training.data_file import DataDescription

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


def info(model: Model, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
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
    from nmt.model_folder import Bundle
    from nmt.training.data_file import load_data_description

    bundle, data, validations = Bundle.load(model), load_data_description(model), _validations(model)
    if as_json:
        typer.echo(json.dumps(_as_json(bundle, data, validations), ensure_ascii=False, indent=2))
    else:
        print_table([list(row) for row in {**_description(bundle, data), **_best(validations)}.items()])


def _as_json(bundle: Bundle, data: DataDescription | None, validations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "recipe": bundle.recipe.model_dump(mode="json"),
        "vocabulary": {"source": len(bundle.source), "target": len(bundle.target)},
        "parameters": _parameters(bundle),
        "data": None if data is None else data.model_dump(),
        "best": next((record for record in reversed(validations) if record.get("best")), None),
        "last": validations[-1] if validations else None,
    }


def _parameters(bundle: Bundle) -> int:
    return sum(parameter.numel() for parameter in bundle.model.parameters())


def _description(bundle: Bundle, data: DataDescription | None) -> dict[str, str]:
    recipe, model = bundle.recipe, bundle.recipe.model
    scaled = "" if model.embedding_scale == 1 else f", times {model.embedding_scale:g}"
    subwords = f"{len(bundle.source):,}" + (" joint" if recipe.subwords.joint else f" + {len(bundle.target):,}")
    return {
        "name": recipe.name,
        "languages": f"{recipe.data.source} -> {recipe.data.target}",
        "trained on": _training_corpora(recipe.data),
        **_start(recipe.training.pretrained),
        **({} if data is None else _texts(data, recipe.data.filters)),
        **_guidance(recipe.training.guided_alignment),
        "subwords": f"{subwords} ({recipe.subwords.kind})",
        **_architecture(model),
        "embedding": f"{model.embedding}{scaled}, tied: {model.tie}",
        "parameters": f"{_parameters(bundle):,}",
        "decoding": f"beam {recipe.decoding.beam_size}, length penalty {recipe.decoding.length_penalty:g}",
    }


def _start(config: PretrainedConfig | None) -> dict[str, str]:
    """The model that training started from, if any."""
    return {} if config is None else {"started from": f"{config.model} ({config.subwords} subwords)"}


def _training_corpora(data: DataConfig) -> str:
    """The locators, with tags and weights."""
    mixed = "" if data.temperature is None else f", temperature {data.temperature:g}"
    return " + ".join(map(str, data.corpora)) + mixed


def _texts(data: DataDescription, filters: FiltersConfig) -> dict[str, str]:
    """Size and hash of the texts, and what the filters removed."""
    return {
        "training text": f"{data.train.report(filters)}; hash {data.train.fingerprint}",
        "validation text": f"{counted(data.valid.lines, 'pair')}; hash {data.valid.fingerprint}",
    }


def _architecture(model: ModelConfig) -> dict[str, str]:
    """Encoder, attention and decoder in words."""
    from nmt.recipe import RecurrentModelConfig, TransformerModelConfig

    match model:
        case RecurrentModelConfig():
            return _recurrent(model)
        case TransformerModelConfig():
            return {
                "encoder": f"Transformer, {counted(model.encoder.layers, 'layer')}, {model.norm}-norm",
                "attention": f"{counted(model.heads, 'head')}; alignment of {model.aligned_by}",
                "decoder": f"Transformer, {counted(model.decoder.layers, 'layer')}, {model.norm}-norm",
                "feed-forward": f"{model.feed_forward}",
            }
        case _:
            assert_never(model)


def _recurrent(model: RecurrentModelConfig) -> dict[str, str]:
    encoder, decoder = model.encoder, model.decoder
    order = ("conditional " if getattr(decoder.order, "conditional", False) else "") + decoder.order.kind
    feeding = " with input feeding" if getattr(decoder.order, "input_feeding", False) else ""
    return {
        "encoder": f"{_WAYS[encoder.direction]} {_stack(encoder)}",
        "attention": _attention(model.attention),
        "decoder": f"{_stack(decoder)}, {order}{feeding}",
        "readout": f"{decoder.readout.kind} of {decoder.readout.size}",
    }


_WAYS = {"both": "bidirectional", "forward": "left-to-right", "reversed": "right-to-left"}


def _stack(config: EncoderConfig | DecoderConfig) -> str:
    """Cell, layers and width of an encoder or decoder, and its options."""
    twice = "2 x " if getattr(config, "direction", None) == "both" else ""
    layers = counted(config.layers, "layer")
    residual = ", residual" * (config.residual and config.layers > 1)
    return f"{config.cell.upper()}, {layers} of {twice}{config.hidden}{residual}{', layer-normed' * config.layer_norm}"


def _attention(config: AttentionConfig) -> str:
    heads = f", {config.heads} heads" if config.heads > 1 else ""
    return f"{config.score.kind}, {config.window.kind}{heads}{', coverage' * getattr(config.score, 'coverage', False)}"


def _guidance(config: GuidedAlignmentConfig | None) -> dict[str, str]:
    """The links that the attention was trained on, if any."""
    if config is None:
        return {}
    decay = "" if config.decay == 1 else f", times {config.decay:g} every epoch"
    return {"guided by links": f"{config.links}, weight {config.weight:g}{decay}"}


def _validations(folder: Path) -> list[dict[str, Any]]:
    """The records of validations in `metrics.jsonl`."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    if lines and not lines[-1].endswith("\n"):  # incomplete after a crash
        lines.pop()
    try:
        return [record for line in lines if (record := json.loads(line))["kind"] == "valid"]
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path} is damaged: it must hold one JSON object per line.") from None


def _best(records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The best validation, if there is one, and the time of training."""
    from nmt.evaluation.metrics import VALIDATION_SCORES as SCORES

    best = [record for record in records if record.get("best")]
    if not best:
        return {}
    last = best[-1]
    scores = "".join(f"{name} {last[key]:.2f}, " for key, name in SCORES.items() if key in last)
    signatures = {f"signature of {SCORES[key]}": text for key, text in last.get("signatures", {}).items()}
    minutes = records[-1]["seconds"] / 60
    return {
        "best valid": f"{scores}perplexity {perplexity(last['perplexity'])} at update {last['update']}, epoch {last['epoch']}",
        **signatures,
        "trained for": f"{counted(records[-1]['update'], 'update')}, {minutes:.1f} minutes",
    }


def print_table(rows: list[list[str]]) -> None:
    """Print rows with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


# --- recipes ----------------------------------------------------------------------------------------------------


@recipe_app.callback(invoke_without_command=True)
def _list_recipes_by_default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_recipes()


@recipe_app.command("list", cls=Command)
def list_recipes() -> None:
    """List the recipes that ship with nmt.

    Examples:
      nmt recipe list
      nmt recipe list | grep -i local
    """
    from nmt.recipe import recipe_title, shipped_recipes

    print_table([[name, recipe_title(path)] for name, path in sorted(shipped_recipes().items())])


@recipe_app.command("show", cls=Command)
def show_recipe(
    name: Annotated[
        str, typer.Argument(metavar="RECIPE", help="YAML file, or a recipe of `nmt recipe list`.", show_default=False)
    ],
) -> None:
    """Print a recipe, to start one of your own.

    Examples:
      nmt recipe show quickstart
      nmt recipe show multi30k-en-de/bahdanau > mine.yaml
    """
    from nmt.recipe import EXAMPLE_DATA, find_recipe, leaves_data_open, load_recipe

    path = find_recipe(name)
    load_recipe(path, [f"data={EXAMPLE_DATA}"] if leaves_data_open(path) else [])  # validate it
    typer.echo(path.read_text(encoding="utf-8"), nl=False)


@recipe_app.command("schema", cls=Command)
def show_schema() -> None:
    """Print the JSON Schema of recipes, for editors.

    Examples:
      nmt recipe schema > recipe.schema.json
      nmt recipe schema | python -m json.tool | less
    """
    from nmt.recipe import recipe_schema

    typer.echo(json.dumps(recipe_schema(), indent=2, ensure_ascii=False))
