"""Where a model is: in a folder, in a zip that `nmt export` wrote, or on the Hugging Face hub.

Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from nmt.bundle.hub import PREFIX, HubName, download_model
from nmt.errors import DataError
from nmt.runtime.arguments import refuse_address
from nmt.runtime.cache import cache_folder
from nmt.runtime.wording import reason

REQUIRED = ("recipe.yaml", "source.model", "target.model", "weights.safetensors")
"""The files that a model needs to translate."""
OPTIONAL = ("data.json", "metrics.jsonl", "scores.json")
"""Files that say what it was trained on and how good it is."""
CARD = "README.md"
SUFFIX = ".zip"
_MOST_RATIO = 20
"""How much larger than an archive its files may be: weights can hardly be compressed."""
_SLACK = 2**20
"""So many bytes they may always be, since a tokenizer of a tiny model compresses well."""


def find_model(model: Path) -> Path:
    """The folder of a model, whether its name is that of a folder, a zip or a model on the hub (`hf:owner/name[@revision]`).

    A zip is unpacked into the cache folder, once per content. A folder need not exist.

    Raises:
        DataError: the zip is damaged or no model, or the model cannot be downloaded.
        UsageError: the name begins with `hf:` but names no model.
    """
    refuse_address(model.as_posix(), "")
    if is_on_hub(model):
        name = HubName.parse(model.as_posix())
        folder = download_model(name, [*REQUIRED, *OPTIONAL])  # no other file
        if missing := [file for file in REQUIRED if not (folder / file).is_file()]:
            lacking = f"or only part of it was downloaded: it lacks {', '.join(missing)}"
            raise DataError(f"{name} is no model of nmt, {lacking}.")
        return folder
    return _unpacked(model) if model.suffix.lower() == SUFFIX and model.is_file() else model


def is_on_hub(model: Path) -> bool:
    """Whether a name is that of a model on the hub."""
    return model.as_posix().startswith(PREFIX)


def is_folder(model: Path) -> bool:
    """Whether a name is that of a folder, to which files can be added."""
    return not is_on_hub(model) and not (model.suffix.lower() == SUFFIX and model.is_file())


def model_name(model: Path) -> str:
    """What people call a model: the last part of its name, without revision and `.zip`."""
    if is_on_hub(model):
        return HubName.parse(model.as_posix()).repository.partition("/")[2]
    name = model.resolve().name
    return name if is_folder(model) else name[: -len(SUFFIX)]


def _unpacked(archive: Path) -> Path:
    """The folder in the cache that has the files of an archive; it appears complete."""
    try:
        with archive.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        folder = cache_folder() / "models" / digest
        if folder.is_dir():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (
            TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as unfinished,
            zipfile.ZipFile(archive) as bundle,
        ):
            for name, member in _members(bundle, archive).items():
                with bundle.open(member) as stream, Path(unfinished, name).open("wb") as file:
                    shutil.copyfileobj(stream, file)
            if not folder.is_dir():  # another process may have been faster
                Path(unfinished).rename(folder)
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise DataError(
            f"Cannot unpack {archive}: {reason(error)}. If it is damaged, make it anew by `nmt export`."
        ) from None
    return folder


def _members(bundle: zipfile.ZipFile, archive: Path) -> Mapping[str, zipfile.ZipInfo]:
    """The members with the files of a model, by file name. All others are ignored, so no member chooses where it is written.

    Raises DataError if some are missing, or if together they are much larger than the archive.
    """
    members = {member.filename: member for member in bundle.infolist()}
    recipes = [name for name in members if PurePosixPath(name).name == REQUIRED[0]]
    if len(recipes) != 1:
        raise DataError(f"{archive} is no model: it must hold one {REQUIRED[0]}, but has {len(recipes)}.")
    inside = recipes[0].removesuffix(REQUIRED[0])
    files = {name: members[inside + name] for name in (*REQUIRED, *OPTIONAL, CARD) if inside + name in members}
    if missing := [name for name in REQUIRED if name not in files]:
        raise DataError(f"{archive} is no model: it lacks {', '.join(missing)}.")
    if sum(member.file_size for member in files.values()) > _MOST_RATIO * archive.stat().st_size + _SLACK:
        raise DataError(f"{archive} is refused: unpacked it would be over {_MOST_RATIO} times as large.")
    return files
