"""What is shared of a model: the files that translating needs, what says how good it is, and a card. No other file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath

from nmt.bundle.folder import Bundle
from nmt.bundle.places import CARD, OPTIONAL, REQUIRED, find_model
from nmt.errors import DataError, UsageError
from nmt.recipe import Recipe
from nmt.runtime.arguments import as_path
from nmt.sharing.card import ModelCard, check_license, is_unedited, license_in


@dataclass(frozen=True)
class SharedModel:
    """A model that was loaded and checked, and what others get of it."""

    folder: Path
    card: ModelCard
    own_card: str | None
    """The README.md in its folder, if the user wrote or edited it; used as it is."""

    @classmethod
    def load(cls, model: str | Path, license: str | None = None) -> SharedModel:
        """Load a model and all that is recorded of it.

        Raises:
            DataError: the model cannot be loaded, or a file in its folder is damaged.
            UsageError: the license is no identifier, or another than that of the user's own card.
        """
        check_license(license)
        folder = find_model(as_path(model, "The model"))
        bundle = Bundle.load(folder)
        there = _read_card(folder / CARD)
        own_card = None if there is None or is_unedited(there) else there
        there_license = None if there is None else license_in(there)
        if own_card is not None and license not in (None, there_license):
            raise UsageError(
                f"{folder / CARD} is your own card, which is used as it is: write `license: {license}` between its lines "
                "`---`, and leave out --license."
            )
        return cls(folder, ModelCard.of(bundle, folder, license or there_license), own_card)

    def licensed(self, license: str | None) -> SharedModel:
        """The same with a license."""
        return replace(self, card=replace(self.card, license=license))

    def card_text(self, address: str) -> str:
        """The card; `address` is what users of the model write for MODEL."""
        return self.card.text(address) if self.own_card is None else self.own_card

    def files(self) -> dict[str, Path]:
        """All shared files but the card."""
        return {name: self.folder / name for name in (*REQUIRED, *OPTIONAL) if (self.folder / name).is_file()}

    def warnings(self) -> Iterator[str]:
        """What the owner should know before others read it."""
        if self.card.license is None:
            text = "; ".join(f"{note.locator}: {note.license or 'license not known'}" for note in self.card.corpora)
            yield (
                "The card names no license, so nobody knows whether they may use the model: give --license ID, "
                f"such as mit or cc-by-4.0 (training text: {text})."
            )
        if paths := list(dict.fromkeys(_local_paths(self.card.bundle.recipe))):
            yield f"The recipe names files of this machine, and everybody will read that: {', '.join(paths)}."


def _read_card(path: Path) -> str | None:
    """The text of a card; None if there is none. Raises DataError."""
    if not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None


def _local_paths(recipe: Recipe) -> Iterator[str]:
    """The values of a recipe that are complete paths, or begin in a home folder."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from texts(item)

    for text in texts(recipe.model_dump(mode="json")):
        if text.startswith(("/", "~")) or PureWindowsPath(text).drive.endswith(":"):
            yield text
