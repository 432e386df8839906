"""The catalogue of public corpora, and where their files are on this machine.

The toolkit contains no corpus text: the YAML files beside this module say where it comes from. A corpus is looked up under
`$NMT_CORPORA` and the folders in it (as `NAME/SPLIT.LANGUAGE`, also compressed), then in the cache; otherwise it is downloaded, and
checked against its SHA-256 where that is known.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nmt.data.lines import any_compression, blocks
from nmt.errors import DataError
from nmt.runtime.cache import cache_folder, expand_home
from nmt.runtime.wording import did_you_mean

if TYPE_CHECKING:
    from nmt.data.catalogue.schema import CatalogueEntry, NamedCorpus

FOLDER = Path(__file__).parent
"""Where the entries are."""


State = Literal["good", "missing", "different", "unverified"]
"""Without a checksum to compare with, a file is `unverified`."""


@dataclass(frozen=True)
class Checked:
    """The result of checking one file of a corpus."""

    split: str
    language: str
    path: Path | None
    state: State


# --- names ------------------------------------------------------------------------------------------------------


@cache
def _entry(path: Path) -> CatalogueEntry:
    from nmt.data.catalogue.schema import CatalogueEntry  # not needed for names that are not of the catalogue
    from nmt.recipe.strict_yaml import parse_yaml

    return CatalogueEntry.model_validate_json(json.dumps(parse_yaml(path.read_text(encoding="utf-8"), str(path))))


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
    if ":" in name:
        raise DataError(
            f"{name} is no corpus of the catalogue: it is fetched when it is read, as by `nmt corpora export`."
        )
    family = next((entry for entry in entries() if entry.pairs and entry.name == name), None)
    if family:
        pairs = ", ".join(family.pairs)
        raise DataError(f"{name} has one corpus per language pair: name one, as {name}-{family.pairs[0]} ({pairs}).")
    nearest_name = did_you_mean(_turned(name, names()), names(), "; `nmt corpora list` shows what it has.")
    raise DataError(f"There is no corpus '{name}' in the catalogue{nearest_name}")


def names() -> list[str]:
    """The names of all corpora, one for each language pair."""
    return [name for entry in entries() for name in entry.names]


def split_name(locator: str) -> tuple[str, str] | None:
    """Split a locator such as `multi30k/train` into name and split; None if neither catalogue nor disk has the name."""
    name, _, split = locator.partition("/")
    if not split or name in ("", ".", ".."):
        return None
    is_known = lookup(name) is not None or any((root / name).is_dir() for root in roots())
    return (name, split) if is_known else None


def nearest(locator: str) -> str:
    """The end of an error message about an unknown locator: a suggestion."""
    known = [f"{name}/{split}" for entry in entries() for name in entry.names for split in entry.splits]
    samples = ("sample:train", "sample:valid", "sample:test")
    return did_you_mean(_turned(locator, known), [*known, *samples], "; `nmt corpora` lists what it has.", cutoff=0.75)


def _turned(name: str, known: Iterable[str]) -> str:
    """The known name that has the same words in another order, as wmt14-de-en for wmt14-en-de, else the name itself."""
    words = sorted(re.split("[-/]", name))
    return next((turned for turned in known if sorted(re.split("[-/]", turned)) == words), name)


# --- files ------------------------------------------------------------------------------------------------------


def check(name: str) -> list[Checked]:
    """Check that each file of a corpus exists and has the right text. Downloads nothing. Raises DataError for a wrong name."""
    corpus = named(name)
    files = [(split, language) for split in corpus.splits for language in corpus.sides(split)]
    return [
        Checked(split, language, path, _state(path, corpus.digest(split, language)))
        for split, language in files
        for path in [local_file(name, split, language)]
    ]


def _state(path: Path | None, expected: str | None) -> State:
    """How a file compares with the SHA-256 that its text must have."""
    if path is None:
        return "missing"
    digest = hashlib.sha256()
    try:
        for block in blocks(path):
            digest.update(block)
    except DataError:  # unreadable or damaged
        return "different"
    if expected is None:
        return "unverified"
    return "good" if digest.hexdigest() == expected else "different"


def roots() -> list[Path]:
    """The folders in which corpora are looked for: `$NMT_CORPORA`, if it is set, and the cache."""
    folder = os.environ.get("NMT_CORPORA")
    return [*([expand_home(folder)] if folder else []), cache_folder() / "corpora"]


def local_file(name: str, split: str, language: str) -> Path | None:
    """The file of one side of one split, if it is on this machine."""
    paths = (any_compression(folder / f"{split}.{language}") for folder in _folders(name))
    return next((path for path in paths if path), None)


def _folders(name: str) -> Iterator[Path]:
    """The folders that may hold a corpus, in the order in which they count. Others are looked through only if need be."""
    for root in roots():
        yield root / name
        yield from sorted(root.glob(f"*/{name}"))
