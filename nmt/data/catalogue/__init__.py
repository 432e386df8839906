"""The catalogue of public corpora, and where their files are on this machine.

The toolkit contains no corpus text: the YAML files beside this module says where it comes from. A corpus is looked up under
`$NMT_CORPORA` (as `NAME/SPLIT.LANGUAGE`, also compressed), then in the cache; otherwise it is downloaded and checked against
its SHA-256. Where the SHA-256 is not known, that of the first download is recorded beside the file and compared from then on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nmt.data.lines import any_compression, blocks
from nmt.errors import DataError
from nmt.runtime.cache import cache_folder, expand_home
from nmt.runtime.json_files import read_json
from nmt.runtime.wording import did_you_mean

if TYPE_CHECKING:
    from nmt.data.catalogue.schema import CatalogueEntry, NamedCorpus, TextFile

FOLDER = Path(__file__).parent
"""Where the entries are."""


@dataclass(frozen=True)
class Checked:
    """The result of checking one file of a corpus. Without a checksum to compare with, a file is `unverified`."""

    file: TextFile
    path: Path | None
    state: Literal["good", "missing", "different", "unverified"]


@dataclass(frozen=True)
class Fetched:
    """What is recorded of a file whose checksum the catalogue does not know."""

    sha256: str
    lines: int
    source: str


# --- names ------------------------------------------------------------------------------------------------------


@cache
def _entry(path: Path) -> CatalogueEntry:
    from nmt.data.catalogue.schema import read_entry  # not needed for names that are not of the catalogue

    return read_entry(path)


def entries() -> list[CatalogueEntry]:
    """All entries, ordered by name."""
    return [_entry(path) for path in sorted(FOLDER.glob("*.yaml"), key=lambda path: path.stem)]


def lookup(name: str) -> NamedCorpus | None:
    """The corpus of this name; None if there is none. Reads only the entries that the name may be of."""
    for path in FOLDER.glob("*.yaml"):
        if name == path.stem or name.startswith(f"{path.stem}-"):
            entry = _entry(path)
            if name in entry.names:
                return entry.corpus(name)
    return None


def named(name: str) -> NamedCorpus:
    """The corpus of this name. Raises DataError that suggests the nearest name if there is none."""
    if corpus := lookup(name):
        return corpus
    family = next((entry for entry in entries() if entry.pairs and entry.name == name), None)
    if family:
        pairs = ", ".join(family.pairs)
        raise DataError(f"{name} has one corpus per language pair: name one, as {name}-{family.pairs[0]} ({pairs}).")
    nearest_name = did_you_mean(
        _reversed_pair(name, names()) or name, names(), "; `nmt corpora list` shows what it has."
    )
    raise DataError(f"There is no corpus '{name}' in the catalogue{nearest_name}")


def names() -> list[str]:
    """The names of all corpora, one for each language pair."""
    return [name for entry in entries() for name in entry.names]


def split_name(locator: str) -> tuple[str, str] | None:
    """Split a locator such as `multi30k/train` into name and split; None if neither catalogue nor disk has the name."""
    name, slash, split = locator.partition("/")
    if not slash or not split or name in ("", ".", ".."):
        return None
    try:
        is_known = lookup(name) is not None or any((root / name).is_dir() for root in roots())
    except OSError:  # such as a name that is too long
        is_known = False
    return (name, split) if is_known else None


def nearest(locator: str) -> str:
    """The end of an error message about an unknown locator: a suggestion."""
    known = [f"{name}/{split}" for entry in entries() for name in entry.names for split in entry.splits]
    samples = ("sample:train", "sample:valid", "sample:test")
    name = _reversed_pair(locator, known) or locator
    return did_you_mean(name, [*known, *samples], "; `nmt corpora` lists what it has.", cutoff=0.75)


def _reversed_pair(name: str, known: Collection[str]) -> str | None:
    """The known name in which the language pair stands the other way round, as in wmt14-de-en for wmt14-en-de."""
    head, slash, split = name.partition("/")
    parts = head.split("-")
    other = "-".join([*parts[:-2], *reversed(parts[-2:])]) + slash + split
    return other if other in known else None


# --- files ------------------------------------------------------------------------------------------------------


def check(name: str) -> list[Checked]:
    """Check that each file of a corpus exists and has the right text. Downloads nothing."""
    return [_checked(name, file) for file in named(name).files]


def _checked(name: str, file: TextFile) -> Checked:
    path = local_file(name, file.split, file.language)
    if path is None:
        return Checked(file, None, "missing")
    expected = expected_digest(path.parent, file)
    digest = hashlib.sha256()
    try:
        for block in blocks(path):
            digest.update(block)
    except DataError:  # unreadable or damaged
        return Checked(file, path, "different")
    if expected is None:
        return Checked(file, path, "unverified")
    return Checked(file, path, "good" if digest.hexdigest() == expected else "different")


def roots() -> list[Path]:
    """The folders in which corpora are looked for: `$NMT_CORPORA`, if it is set, and the cache."""
    folder = os.environ.get("NMT_CORPORA")
    return [*([expand_home(folder)] if folder else []), cache_folder() / "corpora"]


def local_file(name: str, split: str, language: str) -> Path | None:
    """The file of one side of one split, if it is on this machine."""
    paths = (any_compression(root / name / f"{split}.{language}") for root in roots())
    return next((path for path in paths if path), None)


# --- what is recorded of files without a known checksum ---------------------------------------------------------


def record_path(folder: Path, file: TextFile) -> Path:
    """Where it is recorded what was first fetched for a file in this folder."""
    return folder / f"{file.split}.{file.language}.fetched.json"


def read_record(folder: Path, file: TextFile) -> Fetched | None:
    """What was recorded of a file when it was first fetched to this folder."""
    with suppress(DataError, TypeError):
        values = read_json(record_path(folder, file))
        return Fetched(**values)
    return None


def expected_digest(folder: Path, file: TextFile) -> str | None:
    """The SHA-256 that a file in this folder must have: the catalogue's, else the recorded one."""
    return file.sha256 or (record.sha256 if (record := read_record(folder, file)) else None)
