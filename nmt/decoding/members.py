"""The models that a translator can be made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from nmt.bundle.languages import choose_direction
from nmt.errors import DataError, UsageError
from nmt.model.interface import TranslationModel
from nmt.recipe import Recipe
from nmt.runtime.arguments import described
from nmt.text.subwords import Subwords


@runtime_checkable
class Member(Protocol):
    """A model with its source and target subwords, and the recipe that it was trained by: a `Bundle`."""

    @property
    def source(self) -> Subwords: ...
    @property
    def target(self) -> Subwords: ...
    @property
    def model(self) -> TranslationModel[Any, Any]: ...
    @property
    def recipe(self) -> Recipe | None: ...


@dataclass(frozen=True)
class PlainMember:
    """A member without a recipe, and so without decoding settings and a normal form of its own."""

    source: Subwords
    target: Subwords
    model: TranslationModel[Any, Any]
    recipe: Recipe | None = None


def is_tagged(member: Member) -> bool:
    """Whether its source lines begin with the tag of the target language."""
    return member.recipe is not None and member.recipe.data.has_language_tags


def language_tag(member: Member, to: str | None) -> list[int]:
    """The tokens that have it translate to a language. Raises UsageError as `choose_direction` does."""
    if member.recipe is None:
        return []
    data = member.recipe.data
    tag = data.language_tag(choose_direction(data, to)[1])
    return [] if tag is None else member.source.encode(tag)


def tags_among_targets(member: Member) -> tuple[int, ...]:
    """The tags that are tokens of its target vocabulary too, as it is joint: a translation has none."""
    data = None if member.recipe is None else member.recipe.data
    tags = () if data is None else dict.fromkeys(tag for corpus in data.corpora for tag in data.tags(corpus))
    ids = map(member.target.encode, tags)
    return tuple(
        tokens[0] for tokens, tag in zip(ids, tags, strict=True) if member.target.tokens(tokens)[0].endswith(tag)
    )


def checked_members(members: object) -> tuple[Member, ...]:
    """Check one member or several, which must have the same target vocabulary. Raises UsageError and DataError."""
    checked: list[Member] = []
    for member in members if isinstance(members, list | tuple) else [members]:
        if not isinstance(member, Member):
            raise UsageError(f"A Translator takes bundles (nmt.load takes folders), but got {described(member)}.")
        checked.append(member)
    if not checked:
        raise UsageError("A translator needs at least one model, but got none.")
    first, *others = checked
    for number, member in enumerate(others, start=2):
        if member.target.fingerprint != first.target.fingerprint:
            raise DataError(
                f"Model {number} of {len(checked)} has another target vocabulary than model 1, so their probabilities "
                "cannot be averaged: use models that were trained with the same target subwords."
            )
    return tuple(checked)
