"""The OpenAPI document of a server, with the languages and models that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from nmt import __version__
from nmt.serving.documents.formats import FORMATS
from nmt.serving.schemas import (
    AUTO,
    PICTURES,
    TEXT_FIELDS,
    DetectedLanguage,
    DetectInput,
    ErrorOutput,
    FileInput,
    FileOutput,
    HealthOutput,
    LanguageOutput,
    ModelDescription,
    PictureInput,
    ScoreInput,
    ScoreOutput,
    TranslateInput,
    TranslateOutput,
)
from nmt.serving.work import ServedModel

_ERRORS = {
    400: "The request is invalid.",
    403: "The key is missing or wrong, or the request comes from a page of another site.",
    408: "The request did not arrive in time.",
    413: "The text is too long.",
    421: "The server does not answer to this host name.",
    429: "This client has sent too much: try again after `Retry-After` seconds.",
    503: "There is too much to do: try again after `Retry-After` seconds.",
}
_OPERATIONS: dict[str, tuple[str, str, type[BaseModel] | None, str | None]] = {
    "/translate": ("post", "Translate a text", TranslateInput, "TranslateOutput"),
    "/translate_file": ("post", "Translate a file", FileInput, "FileOutput"),
    "/score": ("post", "Score and align a given translation", ScoreInput, "ScoreOutput"),
    "/detect": ("post", "The source language, if there is only one", DetectInput, "DetectedLanguage[]"),
    **{
        f"/alignment.{form}": ("post", f"Alignment of a given translation as {form.upper()}", PictureInput, None)
        for form in PICTURES
    },
    "/languages": ("get", "Languages and what they can be translated to", None, "LanguageOutput[]"),
    "/models": ("get", "Models of this server", None, "ModelDescription[]"),
    "/health": ("get", "Whether the server takes requests", None, "HealthOutput"),
    "/frontend/settings": ("get", "Limits, as LibreTranslate tells them to its page", None, ""),
    "/metrics": ("get", "Metrics in the text format of Prometheus", None, None),
}
_SCHEMAS: tuple[type[BaseModel], ...] = (
    TranslateInput, FileInput, ScoreInput, DetectInput, PictureInput, TranslateOutput, FileOutput, ScoreOutput, DetectedLanguage,
    LanguageOutput, ModelDescription, HealthOutput, ErrorOutput,
)  # fmt: skip
_ERROR_CONTENT = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorOutput"}}}
_MEDIA_TYPES = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"


def openapi(models: Sequence[ServedModel], root_path: str = "") -> dict[str, Any]:
    """The OpenAPI 3.1 document of a server with these models, which clients see below a path."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nmt",
            "version": __version__,
            "description": "Translation by the models of this server. Compatible with the API of LibreTranslate.",
        },
        "servers": [{"url": root_path or "/"}],
        "paths": {
            **{path: {entry[0]: _operation(path, *entry[1:])} for path, entry in _OPERATIONS.items()},
            "/download_file/{name}": {"get": _download()},
        },
        "components": {
            "schemas": {**_schemas(), "Direction": _direction(models)},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        },
    }


def _schemas() -> dict[str, Any]:
    """The schemas of inputs, whose optional fields may be null or empty, and of outputs."""
    _, definitions = models_json_schema(
        [(schema, "validation") for schema in _SCHEMAS], ref_template="#/components/schemas/{model}"
    )
    schemas: dict[str, Any] = definitions["$defs"]
    for schema in (TranslateInput, FileInput, ScoreInput, PictureInput, DetectInput):
        definition = schemas[schema.__name__]
        for name in definition["properties"].keys() - {*definition["required"], *TEXT_FIELDS}:
            definition["properties"][name] = _optional(definition["properties"][name])
        if "target" in definition["properties"]:
            definition["allOf"] = [{"$ref": "#/components/schemas/Direction"}]
    return schemas


def _optional(schema: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {name: schema[name] for name in ("title", "description", "default") if name in schema}
    core = {name: value for name, value in schema.items() if name not in described}
    return {**described, "anyOf": [*core.get("anyOf", [core]), {"enum": [None, ""]}]}


def _direction(models: Sequence[ServedModel]) -> dict[str, Any]:
    """What requests may name: a target, or a model, and what fits it."""
    any_source = [AUTO] if len({model.source for model in models}) == 1 else []
    return {
        "description": "`target` or `model` is needed. Codes may be in capitals or name a region, as in `EN` and `en-US`.",
        "anyOf": [each for model in models for each in (_by_target(model, any_source), _by_model(model))],
    }


def _by_target(model: ServedModel, any_source: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"target": {"const": model.target}, "model": {"enum": [None, ""]}}
    fields["source"] = {"enum": [model.source, *any_source, *([None, ""] if any_source else [])]}
    return {"properties": fields, "required": ["target"] if any_source else ["source", "target"]}


def _by_model(model: ServedModel) -> dict[str, Any]:
    fields = {
        "model": {"const": model.identifier},
        "source": {"enum": [model.source, AUTO, None, ""]},
        "target": {"enum": [model.target, None, ""]},
    }
    return {"properties": fields, "required": ["model"]}


def _operation(path: str, summary: str, body: type[BaseModel] | None, answer: str | None) -> dict[str, Any]:
    name = path.strip("/").replace("/", "_").replace(".", "_")
    good = {"description": summary, **_answer_content(path, answer)}
    operation: dict[str, Any] = {"operationId": name, "summary": summary, "responses": {"200": good}}
    if body is None:
        return operation
    schema = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}
    media_types = _MEDIA_TYPES[-1:] if body is FileInput else _MEDIA_TYPES
    operation["requestBody"] = {"required": True, "content": dict.fromkeys(media_types, schema)}
    for status, text in _ERRORS.items():
        operation["responses"][str(status)] = {"description": text, "content": _ERROR_CONTENT}
    for later in ("429", "503"):
        operation["responses"][later]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    operation["security"] = [{}, {"key": []}]
    return operation


def _download() -> dict[str, Any]:
    """The operation that fetches a translated file."""
    return {
        "operationId": "download_file",
        "summary": "A translated file, by the address in the answer to `/translate_file`",
        "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
        "responses": {
            "200": {
                "description": "The translated file",
                "content": {each.media_type: {} for each in FORMATS.values()},
            },
            "404": {"description": "There is no such file, or no more.", "content": _ERROR_CONTENT},
        },
    }


def _answer_content(path: str, answer: str | None) -> dict[str, Any]:
    if answer is None:
        media = {"png": "image/png", "svg": "image/svg+xml", "html": "text/html", "json": "application/json"}
        return {"content": {media.get(path.rpartition(".")[2], "text/plain"): {}}}
    if not answer:
        return {"content": {"application/json": {}}}
    reference: dict[str, Any] = {"$ref": f"#/components/schemas/{answer.removesuffix('[]')}"}
    schema = {"type": "array", "items": reference} if answer.endswith("[]") else reference
    return {"content": {"application/json": {"schema": schema}}}
