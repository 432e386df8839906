"""The models that a translator can be made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from nmt import recipe
from nmt.alignment.extraction import Extraction, fitting_extraction
from nmt.bundle.languages import choose_direction
from nmt.errors import DataError, UsageError
from nmt.model.interface import TranslationModel
from nmt.runtime.arguments import described
from nmt.text.normalization import Normalizer
from nmt.text.subwords import Subwords


@runtime_checkable
class Member(Protocol):
    """A model with its source and target subwords."""

    @property
    def source(self) -> Subwords: ...
    @property
    def target(self) -> Subwords: ...
    @property
    def model(self) -> TranslationModel[Any, Any]: ...


@runtime_checkable
class RecipeMember(Member, Protocol):
    """A member with a recipe, which has decoding settings: a `Bundle`."""

    @property
    def recipe(self) -> recipe.Recipe: ...


@dataclass(frozen=True)
class PlainMember:
    """A member without a recipe, and so without decoding settings of its own."""

    source: Subwords
    target: Subwords
    model: TranslationModel[Any, Any]


def own_recipe(member: Member) -> recipe.Recipe | None:
    """Its recipe; None if it has none."""
    return member.recipe if isinstance(member, RecipeMember) else None


def own_decoding(member: Member) -> recipe.DecodingConfig:
    """The decoding settings of its recipe, or the default ones."""
    own = own_recipe(member)
    return recipe.DecodingConfig() if own is None else own.decoding


def own_normalizer(member: Member) -> Normalizer:
    """What brings text into the form that it was trained on."""
    own = own_recipe(member)
    return Normalizer("none" if own is None else own.data.normalization)


def is_tagged(member: Member) -> bool:
    """Whether its source lines begin with the tag of the target language."""
    own = own_recipe(member)
    return own is not None and own.data.language_tag("") is not None


def language_tag(member: Member, to: str | None) -> list[int]:
    """The tokens that have it translate to a language. Raises UsageError as `choose_direction` does."""
    own = own_recipe(member)
    if own is None:
        return []
    _, target = choose_direction(own.data, to)
    tag = own.data.language_tag(target)
    return [] if tag is None else member.source.encode(tag)


def own_extraction(member: Member, *, posterior: bool) -> Extraction:
    """How links are extracted from its alignment."""
    return fitting_extraction(own_recipe(member), posterior=posterior)


def checked_members(members: object) -> tuple[Member, ...]:
    """Check one member or several. Raises UsageError and DataError."""
    checked: list[Member] = []
    for member in members if isinstance(members, list | tuple) else [members]:
        if not isinstance(member, Member):
            raise UsageError(f"A Translator takes bundles (nmt.load takes folders), but got {described(member)}.")
        checked.append(member)
    if not checked:
        raise UsageError("A translator needs at least one model, but got none.")
    _check_targets(checked)
    return tuple(checked)


def _check_targets(members: Sequence[Member]) -> None:
    """Raise DataError unless all members have the same target vocabulary."""
    first = members[0].target.fingerprint
    for number, member in enumerate(members[1:], start=2):
        if member.target.fingerprint != first:
            raise DataError(
                f"Model {number} of {len(members)} has another target vocabulary than model 1, so their probabilities "
                "cannot be averaged: use models that were trained with the same target subwords."
            )
