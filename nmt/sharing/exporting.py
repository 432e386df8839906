"""What is shared of a model: the files that translating needs, what says how good it is, and a card; as one file, `nmt export`."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.bundle.folder import Bundle
from nmt.bundle.places import CARD, OPTIONAL, REQUIRED, SUFFIX, find_model
from nmt.errors import UsageError
from nmt.runtime.arguments import as_path
from nmt.runtime.files import write_atomically
from nmt.sharing.card import describe_corpus, model_card


def export(model: str | os.PathLike[str], output: str | os.PathLike[str], *, license: str | None = None) -> Path:
    """Write a model as one zip, as `nmt export` does: what translating needs, its recorded scores, and a model card.

        nmt.export("runs/mine", "mine.zip")
        nmt.load("mine.zip")

    The same model gives the same bytes. Members are not compressed, as weights hardly can be.

    Args:
        model: a model folder, or what else `nmt.load` takes.
        output: the new file; its name ends with `.zip`.
        license: identifier of the model's license, for the card. Default: that of an earlier card, or none.

    Raises:
        DataError: the model cannot be loaded, or the file cannot be written.
        UsageError: the file exists already, its name has another end, or the license is no identifier.
    """
    path = as_path(output, "The output")
    check_output(path)
    SharedModel.load(as_path(model, "The model"), license).write(path)
    return path


def check_output(path: Path) -> None:
    """Raise UsageError unless a zip of this name can be written without replacing a file."""
    if path.suffix.lower() != SUFFIX:
        raise UsageError(f"{path} must end with {SUFFIX}, by which commands know that it is one file.")
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} already exists: move it, or choose another name with -o.")


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

    def write(self, path: Path) -> None:
        """Write the card and the files as one zip, atomically. Raises DataError."""
        card = self.card(path.name).encode()

        def write(temporary: Path) -> None:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
                for name, file in {CARD: None, **self.files()}.items():
                    member = zipfile.ZipInfo(
                        name, (1980, 1, 1, 0, 0, 0)
                    )  # a fixed time: the same model, the same bytes
                    member.create_system, member.external_attr = 3, 0o644 << 16
                    archive.writestr(member, card if file is None else file.read_bytes())

        write_atomically(path, write)


def license_in(card: str) -> str | None:
    """The license that a card names; None if it names none."""
    from huggingface_hub import ModelCard

    license = ModelCard(card, ignore_metadata_errors=True).data.get("license")
    return license if isinstance(license, str) else None
