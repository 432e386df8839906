"""Fields of requests, from a query string and a body of JSON or a form, checked by pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from nmt.serving.refusals import RefusedError
from nmt.serving.schemas import TEXT_FIELDS

InputT = TypeVar("InputT", bound=BaseModel)
_MOST_FIELDS = 1000


def read_input(kind: type[InputT], query: bytes, content_type: str, body: bytes) -> InputT:
    """Read a request. What the body says counts before what the query string says. Raises RefusedError."""
    try:
        fields = {**_form(query), **_body_fields(content_type, body)}
        return kind.model_validate({name: value for name, value in fields.items() if _is_given(name, value)})
    except ValidationError as error:
        raise RefusedError(400, _sentence(error)) from None
    except UnicodeDecodeError:
        raise RefusedError(400, "The request is not UTF-8.") from None


def _is_given(name: str, value: object) -> bool:
    return value is not None and (value != "" or name in TEXT_FIELDS)


def _body_fields(content_type: str, body: bytes) -> Mapping[str, Any]:
    if not body:
        return {}
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/x-www-form-urlencoded":
        return _form(body)
    return _json(body)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        fields = from_json(body)
    except ValueError:
        raise RefusedError(400, "The request is neither a JSON object nor a form.") from None
    if not isinstance(fields, dict):
        raise RefusedError(400, "Invalid request: input should be an object.")
    return fields


def _form(data: bytes) -> dict[str, str | list[str]]:
    text = data.decode()
    try:
        return _gathered(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise RefusedError(400, f"The form has more than {_MOST_FIELDS:,} fields.") from None


def _gathered(fields: list[tuple[str, str]]) -> dict[str, str | list[str]]:
    """The fields of a form; several `q` are a list of texts, of any other field the last one counts."""
    texts = [value for name, value in fields if name == "q"]
    result: dict[str, str | list[str]] = dict(fields)
    return {**result, "q": texts} if len(texts) > 1 else result


def _sentence(error: ValidationError) -> str:
    """What is wrong with a request, without what was sent."""
    [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter."
    message = first["msg"][:1].lower() + first["msg"][1:]
    return f"Invalid request: {name}: {message}." if name else f"Invalid request: {message}."
