"""Write a model as one file, which every command reads: `nmt export`."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from nmt.bundle.places import CARD, SUFFIX
from nmt.errors import UsageError
from nmt.runtime.arguments import as_path
from nmt.runtime.files import write_atomically
from nmt.sharing.shared_files import SharedModel


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
    write_archive(SharedModel.load(as_path(model, "The model"), license), path)
    return path


def check_output(path: Path) -> None:
    """Raise UsageError unless a zip of this name can be written without replacing a file."""
    if path.suffix.lower() != SUFFIX:
        raise UsageError(f"{path} must end with {SUFFIX}, by which commands know that it is one file.")
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} already exists: move it, or choose another name with -o.")


def write_archive(shared: SharedModel, path: Path) -> None:
    """Write the files and the card of a model, atomically. Raises DataError."""
    card = shared.card(path.name)

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_member(CARD), card)
            for name, file in shared.files().items():
                archive.writestr(_member(name), file.read_bytes())

    write_atomically(path, write)


def _member(name: str) -> zipfile.ZipInfo:
    """A member with the earliest time that zip has, so that the same model gives the same bytes."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, 0o644 << 16
    return info
