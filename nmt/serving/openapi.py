"""The OpenAPI document of a server, with the languages and models that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter

from nmt import __version__
from nmt.serving.input_schemas import add_rules, form_name, reference
from nmt.serving.schemas import (
    PICTURES,
    DetectedLanguage,
    DetectInput,
    ErrorOutput,
    HealthOutput,
    LanguageOutput,
    PictureInput,
    ScoreInput,
    ScoreOutput,
    TranslateInput,
    TranslateOutput,
)
from nmt.serving.work import ModelDescription

_ERRORS = {
    400: "The request is invalid.",
    403: "The key is missing or wrong, or the request comes from a page of another site.",
    408: "The request did not arrive in time.",
    413: "The text is too long.",
    421: "The server does not answer to this host name.",
    429: "This client has sent too much: try again after `Retry-After` seconds.",
    503: "There is too much to do: try again after `Retry-After` seconds.",
}
_OPERATIONS: dict[str, tuple[str, str, type[BaseModel] | None, Any]] = {
    "/translate": ("post", "Translate a text", TranslateInput, TranslateOutput),
    "/score": ("post", "Score and align a given translation", ScoreInput, ScoreOutput),
    "/detect": ("post", "The source language, if there is only one", DetectInput, list[DetectedLanguage]),
    **{
        f"/alignment.{form}": ("post", f"Alignment of a given translation as {form.upper()}", PictureInput, media_type)
        for form, media_type in PICTURES.items()
    },
    "/languages": ("get", "Languages and what they can be translated to", None, list[LanguageOutput]),
    "/models": ("get", "Models of this server", None, list[ModelDescription]),
    "/health": ("get", "Whether the server takes requests", None, HealthOutput),
    "/frontend/settings": ("get", "Limits, as LibreTranslate tells them to its page", None, dict[str, Any]),
    "/metrics": ("get", "Metrics in the text format of Prometheus", None, "text/plain"),
}
"""By path: method, summary, request, and answer: the type of its JSON, or its media type."""
_ERROR_CONTENT = {"application/json": {"schema": {"$ref": reference("ErrorOutput")}}}
_FORM = "application/x-www-form-urlencoded"


def openapi(models: Sequence[ModelDescription], root_path: str = "") -> dict[str, Any]:
    """The OpenAPI 3.1 document of a server with these models, which clients see below a path."""
    contents, schemas = _schemas(models)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nmt",
            "version": __version__,
            "description": "Translation by the models of this server. Compatible with the API of LibreTranslate.",
        },
        "servers": [{"url": root_path or "/"}],
        "paths": {
            path: {method: _operation(path, summary, body, contents[path])}
            for path, (method, summary, body, _) in _OPERATIONS.items()
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        },
    }


def _schemas(models: Sequence[ModelDescription]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The contents of answers by path, and the schemas that they and requests refer to by name."""
    inputs: list[type[BaseModel]] = list(
        dict.fromkeys(body for _, _, body, _ in _OPERATIONS.values() if body is not None)
    )
    named: dict[str, Any] = {body.__name__: body for body in inputs} | {"ErrorOutput": ErrorOutput}
    answers = {path: answer for path, (*_, answer) in _OPERATIONS.items() if not isinstance(answer, str)}
    by_key, definitions = TypeAdapter.json_schemas(
        [(key, "validation", TypeAdapter(kind)) for key, kind in {**named, **answers}.items()],
        ref_template=reference("{model}"),
    )
    schemas: dict[str, Any] = definitions["$defs"]
    add_rules(schemas, inputs, models)
    contents: dict[str, Any] = {path: {"application/json": {"schema": by_key[path, "validation"]}} for path in answers}
    files = {path: answer for path, (*_, answer) in _OPERATIONS.items() if isinstance(answer, str)}
    return contents | {path: {media_type.partition(";")[0]: {}} for path, media_type in files.items()}, schemas


def _operation(path: str, summary: str, body: type[BaseModel] | None, answer: dict[str, Any]) -> dict[str, Any]:
    name = path.strip("/").replace("/", "_").replace(".", "_")
    good = {"description": summary, "content": answer}
    operation: dict[str, Any] = {"operationId": name, "summary": summary, "responses": {"200": good}}
    if body is None:
        return operation
    form = {"schema": {"$ref": reference(form_name(body.__name__))}}
    content = {"application/json": {"schema": {"$ref": reference(body.__name__)}}, _FORM: form}
    operation["requestBody"] = {"required": True, "content": content}
    for status, text in _ERRORS.items():
        operation["responses"][str(status)] = {"description": text, "content": _ERROR_CONTENT}
    for later in ("429", "503"):
        operation["responses"][later]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    operation["security"] = [{}, {"key": []}]
    return operation
