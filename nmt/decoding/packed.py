"""Models that are checked and packed once, for all translators that share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from nmt.decoding.ensemble import Ensemble
from nmt.decoding.members import Member, checked_members, is_tagged, language_tag, tags_among_targets
from nmt.decoding.options import DecodingOptions
from nmt.decoding.shortlist import Shortlist
from nmt.errors import UsageError
from nmt.model.interface import device_of
from nmt.runtime.arguments import as_path, check_choice
from nmt.runtime.device import DTYPES, DecodingPrecision, check_precision, choose_precision, torch_defaults
from nmt.text.normalization import Normalizer


@dataclass(frozen=True)
class PackedModels:
    """The models of a translator and how they decode."""

    members: tuple[Member, ...]
    normalizers: tuple[Normalizer, ...]
    """What brings text into the form that each member was trained on."""
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
        members: Member | Sequence[Member],
        *,
        shortlist: Shortlist | str | Path | None = None,
        precision: DecodingPrecision | Literal["auto"] = "fp32",
        chooses_attention: bool = False,
    ) -> PackedModels:
        """Check the members and pack copies of their models, on the device where they are; the settings are the first one's.

        Raises UsageError and DataError as `Translator` does.
        """
        check_choice("precision", precision, ("auto", *DTYPES))
        checked = checked_members(members)
        first, device = checked[0], device_of(checked[0].model)
        decoding_precision = choose_precision(precision, device)
        for member in checked:
            check_precision(decoding_precision, member.model, device)
        if shortlist is not None and not isinstance(shortlist, Shortlist):
            shortlist = Shortlist.load(as_path(shortlist, "shortlist"), first.source, first.target)
        ensemble = Ensemble(
            [member.model for member in checked],
            same_source=len({(member.source.fingerprint, is_tagged(member)) for member in checked}) == 1,
            precision=decoding_precision,
            shortlist=shortlist,
        )
        recipes = [member.recipe for member in checked]
        normalizers = tuple(Normalizer("none" if recipe is None else recipe.data.normalization) for recipe in recipes)
        settings = DecodingOptions() if recipes[0] is None else DecodingOptions(**dict(recipes[0].decoding))
        unwritten = tags_among_targets(first)
        return cls(checked, normalizers, ensemble, settings, chooses_attention, unwritten=unwritten)

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
