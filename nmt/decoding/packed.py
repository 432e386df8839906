"""Models that are checked and packed once, for all translators that share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from nmt.bundle.folder import Bundle
from nmt.bundle.languages import choose_direction
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.options import DecodingOptions
from nmt.decoding.shortlist import Shortlist
from nmt.errors import DataError, UsageError
from nmt.model.interface import device_of
from nmt.runtime.arguments import as_path, check_choice
from nmt.runtime.device import DTYPES, DecodingPrecision, check_precision, choose_precision, torch_defaults


@dataclass(frozen=True)
class PackedModels:
    """The models of a translator and how they decode."""

    members: tuple[Bundle, ...]
    ensemble: Ensemble
    settings: DecodingOptions
    chooses_attention: bool = False
    """Whether a layer or head was chosen as the alignment of a Transformer."""
    reload: Callable[[], PackedModels] | None = None
    """Loads the same models in another process; None if they are only in memory."""
    unwritten: tuple[int, ...] = ()
    """Target tokens that no translation has."""
    reported_characters: set[str] = field(default_factory=set)
    """The unseen characters that a warning has named."""

    @classmethod
    @torch_defaults()
    def of(
        cls,
        members: Bundle | Sequence[Bundle],
        *,
        shortlist: Shortlist | str | Path | None = None,
        precision: DecodingPrecision | Literal["auto"] = "fp32",
        chooses_attention: bool = False,
    ) -> PackedModels:
        """Check the members and pack copies of their models, on the device where they are; the settings are the first one's.

        Raises UsageError and DataError as `Translator` does.
        """
        check_choice("precision", precision, ("auto", *DTYPES))
        checked = (members,) if isinstance(members, Bundle) else tuple(members)
        if not checked or not all(isinstance(member, Bundle) for member in checked):
            raise UsageError("A Translator takes at least one bundle; nmt.load takes folders.")
        for number, member in enumerate(checked[1:], start=2):
            if member.target.fingerprint != checked[0].target.fingerprint:
                raise DataError(
                    f"Model {number} of {len(checked)} has another target vocabulary than model 1, so their probabilities "
                    "cannot be averaged: use models that were trained with the same target subwords."
                )
        first, device = checked[0], device_of(checked[0].model)
        decoding_precision = choose_precision(precision, device)
        for member in checked:
            check_precision(decoding_precision, member.model, device)
        if shortlist is not None and not isinstance(shortlist, Shortlist):
            shortlist = Shortlist.load(as_path(shortlist, "shortlist"), first.source, first.target)
        sources = {(member.source.fingerprint, member.recipe.data.has_language_tags) for member in checked}
        ensemble = Ensemble(
            [member.model for member in checked],
            same_source=len(sources) == 1,
            precision=decoding_precision,
            shortlist=shortlist,
        )
        settings = DecodingOptions(**dict(first.recipe.decoding))
        # A joint vocabulary has the tags of languages too, which are written in no translation.
        data, target = first.recipe.data, first.target
        ids = {tag: target.encode(tag)[0] for corpus in data.corpora for tag in data.tags(corpus)}
        unwritten = tuple(index for tag, index in ids.items() if target.tokens([index])[0].endswith(tag))
        return cls(checked, ensemble, settings, chooses_attention, unwritten=unwritten)

    def tags(self, to: str | None) -> list[list[int]]:
        """The tokens before a source line by which each member translates to a language.

        Raises UsageError if a member does not translate to it, or to several languages and none is named.
        """
        return [language_tag(member, to) for member in self.members]

    def changed(self, options: Mapping[str, Any]) -> PackedModels:
        """The same models with some options of `nmt.load` changed. Raises UsageError."""
        settings = self.settings.changed(options)
        if settings.to is not None:
            self.tags(settings.to)
        if settings.posterior and self.chooses_attention:
            raise UsageError("layer and head choose attention weights: leave them out, or posterior=True.")
        return replace(self, settings=settings)


def language_tag(member: Bundle, to: str | None) -> list[int]:
    """The tokens that have a model translate to a language. Raises UsageError as `choose_direction` does."""
    data = member.recipe.data
    tag = data.language_tag(choose_direction(data, to)[1])
    return [] if tag is None else member.source.encode(tag)
