"""What is shared of a model: the files that translating needs, what says how good it is, and a card. No other file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.bundle.folder import Bundle
from nmt.bundle.places import CARD, OPTIONAL, REQUIRED, find_model
from nmt.errors import UsageError
from nmt.sharing.card import describe_corpus, model_card


@dataclass(frozen=True)
class SharedModel:
    """A model that was loaded and checked, and what others get of it."""

    folder: Path
    bundle: Bundle
    license: str | None
    """Identifier of the model's license."""
    own_card: str | None
    """The README.md in its folder; used as it is."""

    @classmethod
    def load(cls, model: Path, license: str | None = None) -> SharedModel:
        """Load a model; the license is that of a README.md in its folder if none is given.

        Raises:
            DataError: the model cannot be loaded.
            UsageError: the license is no identifier, or another than that of the user's own card.
        """
        if license is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", license):
            raise UsageError(
                f"'{license}' is no identifier of a license: write it as the hub does, such as mit, cc-by-4.0 or other."
            )
        folder = find_model(model)
        bundle, card = Bundle.load(folder), folder / CARD
        if not card.is_file():
            return cls(folder, bundle, license, None)
        own_card = card.read_text(encoding="utf-8")
        if license not in (None, own_license := license_in(own_card)):
            raise UsageError(
                f"{card} is your own card, which is used as it is: write `license: {license}` between its lines "
                "`---`, and leave out --license."
            )
        return cls(folder, bundle, own_license, own_card)

    def card(self, address: str) -> str:
        """The card; `address` is what users of the model write for MODEL. Raises DataError if a recorded file is damaged."""
        return self.own_card or model_card(self.bundle, self.folder, self.license, address)

    def files(self) -> dict[str, Path]:
        """All shared files but the card."""
        return {name: self.folder / name for name in (*REQUIRED, *OPTIONAL) if (self.folder / name).is_file()}

    def warnings(self) -> Iterator[str]:
        """What the owner should know before others read it."""
        recipe = self.bundle.recipe
        if self.license is None:
            licenses = {text.corpus: describe_corpus(text.corpus)[1] for text in recipe.data.corpora}
            texts = "; ".join(f"{corpus}: {license or 'license not known'}" for corpus, license in licenses.items())
            yield (
                "The card names no license, so nobody knows whether they may use the model: give --license ID, "
                f"such as mit or cc-by-4.0 (training text: {texts})."
            )
        paths = re.findall(r'"((?:[/~]|[A-Za-z]:[\\/])[^"]*)"', recipe.model_dump_json())
        if paths:
            names = ", ".join(dict.fromkeys(paths))
            yield f"The recipe names files of this machine, and everybody will read that: {names}."


def license_in(card: str) -> str | None:
    """The license that a card names; None if it names none."""
    from huggingface_hub import ModelCard

    license = ModelCard(card, ignore_metadata_errors=True).data.get("license")
    return license if isinstance(license, str) else None
