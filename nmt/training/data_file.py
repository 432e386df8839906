"""`data.json` in a model folder: which text the model was trained on, and what the filters removed from it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from nmt import __version__
from nmt.data.corpus import ParallelCorpus
from nmt.data.filters import FilterReport
from nmt.errors import DataError
from nmt.recipe import FiltersConfig
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_content

DATA = "data.json"


class TextDescription(BaseModel):
    """A text, and what was left out of it."""

    model_config = ConfigDict(frozen=True)

    locator: str
    """As in the recipe."""
    lines: int
    """Number of pairs before filtering."""
    fingerprint: str
    """Hash of all text, whatever files it came from: `ParallelCorpus.fingerprint`."""
    kept: int
    """Number of pairs after filtering."""
    removed: dict[str, int]
    """Number of pairs that each rule removed, without rules that removed none."""

    @classmethod
    def of(cls, corpus: ParallelCorpus, removed: dict[str, int]) -> TextDescription:
        """Describe a text, from which the filters removed so many pairs."""
        kept = len(corpus) - sum(removed.values())
        return cls(locator=corpus.name, lines=len(corpus), fingerprint=corpus.fingerprint, kept=kept, removed=removed)

    def report(self, filters: FiltersConfig) -> FilterReport:
        """The report of the filtering."""
        return FilterReport({"kept": self.kept, **self.removed}, filters)


class DataDescription(BaseModel):
    """The content of `data.json`."""

    model_config = ConfigDict(frozen=True)

    nmt: str = __version__
    """Version of the toolkit that trained the model."""
    train: TextDescription
    valid: TextDescription

    def save(self, folder: Path) -> None:
        """Write the file atomically."""
        write_content(folder / DATA, self.model_dump_json(indent=2) + "\n")


def load_data_description(folder: Path) -> DataDescription | None:
    """Read the file; None if there is none, as in folders of early versions. Raises DataError if it is damaged."""
    path = folder / DATA
    if not path.is_file():
        return None
    try:
        return DataDescription.model_validate_json(read_content(path))
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        raise DataError(f"{path} is damaged: {f'{key}: ' if key else ''}{problem['msg']}.") from None
