"""What all sections of a recipe share: strictness, types with limits, derived defaults, unions by kind."""

import re
from types import UnionType
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticUndefined

_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Controls, line and paragraph separators, and what turns the direction of text."""

Size = Annotated[int, Field(ge=1, lt=2**31)]
WIDEST = 2**16
Width = Annotated[int, Field(ge=1, le=WIDEST)]
"""Width of a layer or window. The limit keeps a damaged model folder from asking for more memory than any machine has."""
Layers = Annotated[int, Field(ge=1, le=100)]
BeamSize = Annotated[int, Field(ge=1, le=10_000)]
Heads = Annotated[int, Field(ge=1, le=1024)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Ratio = Annotated[float, Field(gt=0, le=1000)]
Penalty = Annotated[float, Field(ge=0, le=100)]


class Section(BaseModel):
    """A section of the recipe: immutable, strict about types, without unknown keys.

    Its texts are names of languages, files and models: single lines that cannot steer a terminal, a page or a model card, since
    recipes come with the models of strangers.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @field_validator("*")
    @classmethod
    def _steers_nothing(cls, value: object) -> object:
        if isinstance(value, str) and (match := _STEERING.search(value)):
            raise ValueError(f"it has a character that cannot be seen, U+{ord(match[0]):04X}: remove it")
        return value


SectionT = TypeVar("SectionT", bound=Section)


def complete(section: SectionT, **values: object) -> SectionT:
    """Set values of keys that the recipe does not set."""
    return section.model_copy(
        update={key: value for key, value in values.items() if key not in section.model_fields_set}
    )


def derived(start: int | str) -> Any:
    """A default that other keys determine; `start` is the value if none of them is set."""
    return Field(default=start, json_schema_extra=lambda schema: schema.pop("default", None))


def default_kind(default: str) -> BeforeValidator:
    """Accept a union written as its kind alone, and settings without a kind as those of the default kind."""

    def with_kind(value: object) -> object:
        if isinstance(value, str):
            return {"kind": value}
        return {"kind": default, **value} if isinstance(value, dict) else value

    return BeforeValidator(with_kind)


def short_form(kind: type | UnionType, *keys: str, schema: Any = PydanticUndefined) -> BeforeValidator:
    """Accept a value of this type as that of some keys of a section; `schema` is what may be written."""

    def with_keys(value: object) -> object:
        return dict.fromkeys(keys, value) if isinstance(value, kind) and not isinstance(value, bool) else value

    return BeforeValidator(with_keys, json_schema_input_type=schema)


BY_KIND = Field(discriminator="kind")
