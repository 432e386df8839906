"""The text that every system reads: Multi30k if it is at hand, else the embedded sample, cut into pieces by one model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .measuring import work

Side = Literal["source", "target"]


@dataclass(frozen=True)
class Text:
    """Files `train`, `test` (1,000 lines) and `few` (8 lines) of both languages, and the joint SentencePiece model.

    Attributes:
        folder: where the files are.
        corpus: what text it is, for people.
        key: names the text and its pieces in a file name.
        marks: padding, unknown, begin and end mark: the pieces 0 to 3.
        pieces: all others.
        source_per_target: source pieces of the training text for each target piece, end marks included.
        source_pieces, target_pieces: mean length of a line of `test`, end mark included.
    """

    folder: Path
    corpus: str
    key: str
    marks: list[str]
    pieces: list[str]
    source_per_target: float
    source_pieces: float
    target_pieces: float
    source: str = "en"
    target: str = "de"

    @property
    def subwords(self) -> Path:
        return self.folder / "joint.model"

    @property
    def vocabulary(self) -> int:
        return len(self.marks) + len(self.pieces)

    def file(self, split: str, side: Side) -> Path:
        return self.folder / f"{split}.{self.source if side == 'source' else self.target}"


def prepare(folder: Path) -> Text:
    """Write the text into a folder. Raises Failed."""
    found, _ = work("prepare", threads=1, what="Preparing the text", folder=str(folder))
    return Text(**{**found, "folder": Path(found["folder"])})
