"""The entries of the catalogue: YAML files that say where a public corpus comes from and what its text must be.

An entry describes one corpus, or one corpus per language pair. Texts may hold placeholders: `{split}`, `{language}`, `{code}`
(the source's own code of the language), `{pair}`, `{first}` and `{second}` (its languages).
"""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from nmt.recipe.section import Section

Group = Literal["small", "talks", "news", "parliament", "collections"]
TextFormat = Literal["text", "talks", "segments"]
"""`text`: lines as they are. `talks`: without the lines of metadata of IWSLT's training text (`<url>...`). `segments`: what
stands between `<seg>` and `</seg>`, in IWSLT's XML and WMT's SGML."""
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else (value,))]


class Source(Section):
    """One place that has the text: addresses of files, a data set of the hub, or a test set of sacreBLEU."""

    url: Texts = ()
    """Addresses of the parts in order. A compressed file is decompressed, of a table the column is read."""
    member: Texts = ()
    """Names of the files in the zip or tar archive, in order."""
    format: TextFormat = "text"
    hub: str = ""
    """`owner/name[/config]:split`."""
    sacrebleu: str = ""
    """`testset/pair`."""
    column: str = ""
    """Name of the column, if it is not the code of the language."""
    languages: Texts = ()
    """The sides that it has; empty if it has all."""

    @property
    def locator(self) -> str:
        """The data set or test set as a locator; empty if it is addresses."""
        return f"hf:{self.hub}" if self.hub else f"sacrebleu:{self.sacrebleu}" if self.sacrebleu else ""

    @property
    def place(self) -> str:
        """Where the text is, in one line."""
        more = " and more" if len(self.member) > 1 else ""
        return self.locator or " ".join(self.url) + (f" ({self.member[0]}{more})" if self.member else "")

    def filled(self, **values: str) -> Self:
        """The source with these placeholders replaced."""
        text = self.model_dump_json()
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return self.model_validate_json(text)


class SplitEntry(Section):
    """One split: its size, checksums and sources."""

    lines: int | dict[str, int] | None = None
    """Number of lines, also per language pair; null if it is not known."""
    languages: Texts = ()
    """The sides of this split, if they are not those of the corpus."""
    sha256: dict[str, str] = Field(default={})
    """SHA-256 of the text of each side. A side without one is not verified."""
    sources: tuple[Source, ...] = ()
    """Tried in order."""


class CatalogueEntry(Section):
    """A public corpus, or one corpus per language pair."""

    name: str
    title: str
    group: Group
    languages: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    """Language pairs; the corpus of each is called NAME-PAIR."""
    codes: dict[str, str] = Field(default={})
    """The source's own codes of languages, for `{code}`."""
    license: str
    home: str
    citation: str
    note: str = ""
    """What a user should know of the text."""
    derivation: str = ""
    """How the text was made, as far as that is known, if it cannot be downloaded."""
    splits: dict[str, SplitEntry]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its corpora: its own, or one for each language pair."""
        return tuple(f"{self.name}-{pair}" for pair in self.pairs) or (self.name,)

    def corpus(self, name: str) -> "NamedCorpus":
        """The corpus of one of its names."""
        if not self.pairs:
            return NamedCorpus(name, self, self.languages, "-".join(self.languages[:2]))
        pair = name.removeprefix(f"{self.name}-")
        return NamedCorpus(name, self, tuple(pair.split("-")), pair)


@dataclass(frozen=True)
class NamedCorpus:
    """A public corpus."""

    name: str
    entry: CatalogueEntry
    languages: tuple[str, ...]
    pair: str

    @property
    def local_only(self) -> bool:
        """Whether some of the text cannot be downloaded."""
        return not all(entry.sources for entry in self.entry.splits.values())

    @property
    def splits(self) -> dict[str, int | None]:
        """Name and number of lines of each split."""
        lines = {split: entry.lines for split, entry in self.entry.splits.items()}
        return {split: count.get(self.pair) if isinstance(count, dict) else count for split, count in lines.items()}

    def sides(self, split: str) -> tuple[str, ...]:
        """The sides of a split; none if there is no such split."""
        entry = self.entry.splits.get(split)
        return (entry.languages or self.languages) if entry else ()

    def digest(self, split: str, language: str) -> str | None:
        """The SHA-256 of the text of one side, if it is known."""
        return self.entry.splits[split].sha256.get(language)

    def sources(self, split: str) -> list[Source]:
        """The sources of a split, with placeholders for its sides alone."""
        first, _, second = self.pair.partition("-")
        values = {"split": split, "pair": self.pair, "first": first, "second": second}
        return [source.filled(**values) for source in self.entry.splits[split].sources]
