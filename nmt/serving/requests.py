"""Requests of the API: their fields, read from JSON or a form, and checked by pydantic."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from nmt.alignment.weights import AlignmentWeights

AUTO = "auto"
"""The source language that asks for detection."""
MOST_HYPOTHESES = 10
_WIDEST_BEAM = 20
_MOST_FIELDS = 1000
_TEXT_FIELDS = ("q", "translation", "compared_translation")
"""Fields that may be empty; any other is left out where it is empty or null, as clients of LibreTranslate send it."""


class ModelInput(BaseModel):
    """A request to a model that it names, or whose languages it names. Unknown fields are ignored, as LibreTranslate ignores them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    source: str = ""
    target: str = ""
    model: str | None = None
    api_key: str | None = None


class TranslateInput(ModelInput):
    """A text to translate, or several."""

    q: str | list[str]
    format: Literal["text"] = "text"
    alternatives: int = Field(0, ge=0, lt=MOST_HYPOTHESES)
    prefix: str = ""
    """What the translation must begin with, of a text of one line."""
    alignment: bool = False
    n_best: Annotated[int, Field(ge=1, le=MOST_HYPOTHESES)] | None = None
    beam_size: Annotated[int, Field(ge=1, le=_WIDEST_BEAM)] | None = None

    @property
    def texts(self) -> list[str]:
        """The texts, one if `q` is a str."""
        return [self.q] if isinstance(self.q, str) else self.q

    @property
    def hypotheses(self) -> int:
        """Number of hypotheses to search for."""
        return max(self.n_best or 1, self.alternatives + 1)


class ScoreInput(ModelInput):
    """A line and a translation of it, to score and align."""

    q: str = Field(pattern=r"\S")
    translation: str
    weights: AlignmentWeights = "posterior"


class PictureInput(ScoreInput):
    """A line and a translation of it, to draw; with a second model, to compare."""

    compared: str | None = None
    compared_translation: str | None = None


class DetectInput(ModelInput):
    """A text whose language is asked for."""

    q: str


InputT = TypeVar("InputT", bound=ModelInput)


async def read_input(kind: type[InputT], request: Request, most_bytes: int) -> InputT:
    """Read and check a request. Raises HTTPException, which names the wrong field but quotes nothing that was sent."""
    body = await _body(request, most_bytes)
    try:
        if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
            texts = [value for name, value in pairs if name == "q"]
            fields: Any = dict(pairs)
            if len(texts) > 1:
                fields["q"] = texts
        else:
            fields = from_json(body)
    except ValueError:
        raise HTTPException(400, "The request is neither a JSON object nor a urlencoded form in UTF-8.") from None
    if isinstance(fields, dict):
        fields = {
            name: value for name, value in fields.items() if value is not None and (value != "" or name in _TEXT_FIELDS)
        }
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
        name = f"{first['loc'][0]}: " if first["loc"] else ""
        raise HTTPException(400, f"Invalid request: {name}{first['msg']}.") from None


async def _body(request: Request, most_bytes: int) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most_bytes:
                raise HTTPException(413, f"The request is longer than {most_bytes:,} bytes.", {"connection": "close"})
    except ClientDisconnect:
        raise HTTPException(400, "The request is incomplete.") from None
    return bytes(body)
