"""The entries of the catalogue: YAML files that say where a public corpus comes from and what its text must be.

An entry describes one corpus, or one corpus per language pair. Texts may hold placeholders: `{split}`, `{language}`, `{code}`
(the source's own code of the language), `{pair}`, `{first}` and `{second}` (its languages).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from nmt.errors import DataError, NmtError
from nmt.recipe.section import Section
from nmt.recipe.strict_yaml import parse_yaml

Group = Literal["small", "talks", "news", "parliament", "collections"]
TextFormat = Literal["text", "talks", "segments"]
"""`text`: lines as they are. `talks`: without the lines of metadata of IWSLT's training text (`<url>...`). `segments`: what
stands between `<seg>` and `</seg>`, in IWSLT's XML and WMT's SGML."""
_PLACEHOLDERS = frozenset({"split", "language", "code", "pair", "first", "second"})
Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value and tuple(value))
]
Lines = Annotated[int, Field(ge=1)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
Pair = Annotated[str, Field(pattern=r"^[A-Za-z_]+-[A-Za-z_]+$")]
Sentence = Annotated[str, Field(min_length=3)]


class SourceEntry(Section):
    """One place that has the text: addresses of files, a data set of the hub, or a test set of sacreBLEU."""

    url: Texts = ()
    """Addresses of the parts in order. A compressed file is decompressed, of a table the column is read."""
    member: Texts = ()
    """Names of the files in the zip or tar archive, in order."""
    format: TextFormat = "text"
    hub: Annotated[str, Field(pattern=r"^(\S+:\S+)?$")] = ""
    """`owner/name[/config]:split`."""
    sacrebleu: Annotated[str, Field(pattern=r"^(\S+/\S+)?$")] = ""
    """`testset/pair`."""
    column: str = ""
    """Name of the column, if it is not the code of the language."""
    languages: Texts = ()
    """The sides that it has; empty if it has all."""

    @property
    def place(self) -> str:
        """Where the text is, in one line."""
        more = " and more" * (len(self.member) > 1)
        return self.locator or " ".join(self.url) + (f" ({self.member[0]}{more})" if self.member else "")

    @property
    def locator(self) -> str:
        """The data set or test set as a locator; empty if it is addresses."""
        return f"hf:{self.hub}" if self.hub else f"sacrebleu:{self.sacrebleu}" if self.sacrebleu else ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(map(bool, (self.url, self.hub, self.sacrebleu))) != 1:
            raise ValueError("a source is one of url, hub and sacrebleu")
        if not self.url and (self.member or self.format != "text"):
            raise ValueError("member and format belong to a url")
        if not all(re.match("https?://", url) for url in self.url):
            raise ValueError("a url begins with https:// or http://")
        for text in (*self.url, *self.member, self.hub, self.sacrebleu, self.column):
            if unknown := set(re.findall(r"\{(.*?)\}", text)) - _PLACEHOLDERS:
                raise ValueError(f"{text} has the unknown placeholder {{{min(unknown)}}}")
        return self


class SplitEntry(Section):
    """One split: its size, checksums and sources."""

    lines: Lines | dict[Pair, Lines] | None = None
    """Number of lines, also per language pair; null if it is not known."""
    languages: Texts = ()
    """The sides of this split, if they are not those of the corpus."""
    sha256: dict[str, Digest] = Field(default={})
    """SHA-256 of the text of each side. A side without one is not verified: its checksum is recorded at the first fetch."""
    sources: tuple[SourceEntry, ...] = ()
    """Tried in order."""


class CatalogueEntry(Section):
    """A public corpus, or one corpus per language pair."""

    name: Name
    title: Sentence
    group: Group
    languages: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    """Language pairs; the corpus of each is called NAME-PAIR."""
    codes: dict[str, str] = Field(default={})
    """The source's own codes of languages, for `{code}`."""
    license: Sentence
    home: Annotated[str, Field(pattern="^https?://")]
    citation: Sentence
    note: str = ""
    """What a user should know of the text."""
    derivation: str = ""
    """How the text was made, as far as that is known, if it cannot be downloaded."""
    splits: Annotated[dict[Name, SplitEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.languages) == bool(self.pairs):
            raise ValueError("an entry has either languages or pairs")
        for split, entry in self.splits.items():
            if not entry.sources and not self.derivation:
                raise ValueError(f"{split} has no source, and the entry no derivation")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its corpora: its own, or one for each language pair."""
        return tuple(f"{self.name}-{pair}" for pair in self.pairs) or (self.name,)

    def corpus(self, name: str) -> "NamedCorpus":
        """The corpus of one of its names."""
        if not self.pairs:
            return self._corpus(name, self.languages, "-".join(self.languages[:2]))
        pair = name.removeprefix(f"{self.name}-")
        return self._corpus(name, tuple(pair.split("-")), pair)

    def _corpus(self, name: str, languages: tuple[str, ...], pair: str) -> "NamedCorpus":
        files = (
            self._file(split, entry, language, pair)
            for split, entry in self.splits.items()
            for language in entry.languages or languages
        )
        return NamedCorpus(name, self, languages, tuple(files))

    def _file(self, split: str, entry: SplitEntry, language: str, pair: str) -> "TextFile":
        first, _, second = pair.partition("-")
        values = {"split": split, "language": language, "code": self.codes.get(language, language)}
        values |= {"pair": pair, "first": first, "second": second}
        lines = entry.lines.get(pair) if isinstance(entry.lines, dict) else entry.lines
        sources = tuple(
            _resolved(source, values)
            for source in entry.sources
            if not source.languages or language in source.languages
        )
        return TextFile(split, language, lines, entry.sha256.get(language), sources)


@dataclass(frozen=True)
class Source:
    """Where the text of one side of one split comes from: files, or a locator (`hf:...`, `sacrebleu:...`).

    `place` is the address with the placeholders for side and split: the same for all sides of a split.
    """

    place: str
    parts: tuple[tuple[str, str], ...] = ()
    """Address and archive member of each part, in order; the member is empty if the file is no archive."""
    locator: str = ""
    column: str = ""
    format: TextFormat = "text"

    @property
    def origin(self) -> tuple[str, ...]:
        """The addresses to download, or the locator. Files of the same origin are fetched together."""
        return tuple(dict.fromkeys(url for url, _ in self.parts)) or (self.locator,)


@dataclass(frozen=True)
class TextFile:
    """One side of one split. `lines` and `sha256` (of the decompressed text) are None where they are not known."""

    split: str
    language: str
    lines: int | None
    sha256: str | None
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class NamedCorpus:
    """A public corpus."""

    name: str
    entry: CatalogueEntry
    languages: tuple[str, ...]
    files: tuple[TextFile, ...]

    @property
    def local_only(self) -> bool:
        """Whether some of the text cannot be downloaded."""
        return not all(file.sources for file in self.files)

    @property
    def splits(self) -> dict[str, int | None]:
        """Name and number of lines of each split."""
        return {file.split: file.lines for file in self.files}

    def file(self, split: str, language: str) -> TextFile | None:
        """One side of one split."""
        return next((file for file in self.files if (file.split, file.language) == (split, language)), None)


def read_entry(path: Path) -> CatalogueEntry:
    """Read and validate the YAML file of an entry. Raises DataError."""
    try:
        tree: Any = parse_yaml(path.read_text(encoding="utf-8"), str(path))
        return CatalogueEntry.model_validate_json(json.dumps(tree))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{path}: {where or 'the entry'}: {first['msg']}.") from None
    except (OSError, ValueError, NmtError) as error:
        raise DataError(f"Cannot read {path}: {error}") from None


def _resolved(source: SourceEntry, values: Mapping[str, str]) -> Source:
    def fill(text: str) -> str:
        return text.format_map(values)

    of_file = {name: f"{{{name}}}" for name in ("split", "language", "code")}
    return Source(
        place=source.place.format_map({**values, **of_file}),
        parts=tuple((fill(url), fill(member)) for url in source.url for member in source.member or ("",)),
        locator=fill(source.locator),
        column=fill(source.column) or values["language"],
        format=source.format,
    )
