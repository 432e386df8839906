"""Schemas of requests: pydantic's, with the rules between fields, as JSON and as forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from nmt.serving.schemas import AUTO, MOST_HYPOTHESES, NOT_BLANK, TEXT_FIELDS, PictureInput, TranslateInput
from nmt.serving.work import ModelDescription

_EMPTY = {"enum": [None, ""]}
_BOOLEANS = [True, False, *"01tfyn", "on", "off", "true", "false", "yes", "no"]
"""What a form may say for true and false."""


def add_rules(schemas: dict[str, Any], inputs: Sequence[type[BaseModel]], models: Sequence[ModelDescription]) -> None:
    """Complete the schemas of requests to a server with these models, and add those of the same requests as forms."""
    schemas["Direction"] = _direction(models)
    for kind in inputs:
        schema = schemas[kind.__name__]
        for field in schema["properties"].keys() - {*schema["required"], *TEXT_FIELDS}:
            schema["properties"][field] = _optional(schema["properties"][field])
        if "target" in schema["properties"]:
            schema["allOf"] = [{"$ref": reference("Direction")}]
    schemas[TranslateInput.__name__]["allOf"] += map(_wide_enough, range(2, MOST_HYPOTHESES + 1))
    schemas[PictureInput.__name__]["allOf"] = [_direction(models, drawn=True), _drawable()]
    names = [*(kind.__name__ for kind in inputs), "Direction"]
    schemas.update({form_name(name): _as_form(schemas[name]) for name in names})


def reference(name: str) -> str:
    """The address of a schema in the document."""
    return f"#/components/schemas/{name}"


def form_name(name: str) -> str:
    """The name of the schema of the same as a form."""
    return f"{name.removesuffix('Input')}Form"


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    """A field that may be null or empty."""
    described: dict[str, Any] = {name: schema[name] for name in ("title", "description", "default") if name in schema}
    core = {name: value for name, value in schema.items() if name not in described}
    return {**described, "anyOf": [*core.get("anyOf", [core]), _EMPTY]}


def _as_form(schema: Any) -> Any:
    """A schema of JSON as one of a form, where nothing is null and no list is empty."""
    if isinstance(schema, list):
        return [_as_form(item) for item in schema if item is not None and item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": reference(form_name(schema["$ref"].rpartition("/")[2]))}
    if schema == {"type": "boolean"}:
        return {"enum": _BOOLEANS}
    if schema.get("type") == "array":
        return {**schema, "minItems": 1}
    return {name: _as_form(value) for name, value in schema.items() if (name, value) != ("default", None)}


# --- rules between fields -------------------------------------------------------------------------------------------


def _direction(models: Sequence[ModelDescription], *, drawn: bool = False) -> dict[str, Any]:
    """What requests may name: a target, or a model, and what fits it; for drawings, of models that align."""
    is_only_source = len({model.source for model in models}) == 1
    ways: list[dict[str, Any] | bool] = []
    for model in models:
        alike = [each for each in models if (each.source, each.target) == (model.source, model.target)]
        second = {"compared": {"enum": [*(each.id for each in alike if each.alignment), None, ""]}} if drawn else {}
        by_target = {
            "target": {"const": model.target},
            "model": _EMPTY,
            "source": {"enum": [model.source, *([AUTO, None, ""] if is_only_source else [])]},
        }
        by_model = {
            "model": {"const": model.id},
            "source": {"enum": [model.source, AUTO, None, ""]},
            "target": {"enum": [model.target, None, ""]},
        }
        needed = ["target"] if is_only_source else ["source", "target"]
        if model.alignment or not drawn:
            ways += [{"properties": by_target | second, "required": needed}] if model is alike[0] else []
            ways.append({"properties": by_model | second, "required": ["model"]})
    return {
        "description": "`target` or `model` is needed. Codes may be in capitals or name a region, as in `EN` and `en-US`.",
        "anyOf": ways or [False],
    }


def _wide_enough(hypotheses: int) -> dict[str, Any]:
    """The rule that so many hypotheses need a beam as wide; without one, the recipe's is widened."""
    n_best, alternatives = (
        {"properties": {name: {"type": "integer", "minimum": least}}, "required": [name]}
        for name, least in (("n_best", hypotheses), ("alternatives", hypotheses - 1))
    )
    beam = {"anyOf": [{"type": "integer", "minimum": hypotheses}, _EMPTY]}
    return {"if": {"anyOf": [n_best, alternatives]}, "then": {"properties": {"beam_size": beam}}}


def _drawable() -> dict[str, Any]:
    """The rule that one of the translations of a drawing is not blank."""
    some = {"type": "string", "pattern": NOT_BLANK}
    second = {"compared": some, "compared_translation": some}
    return {"anyOf": [{"properties": {"translation": some}}, {"properties": second, "required": list(second)}]}
