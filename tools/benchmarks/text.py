"""The text that every system reads: Multi30k if available, else the embedded sample, with one joint SentencePiece model."""

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
        folder: folder of the files.
        corpus: name of the corpus.
        key: identifies text and vocabulary in file names.
        special_tokens: PAD, UNK, BOS and EOS, with ids 0 to 3.
        tokens: all other tokens.
        source_per_target: source tokens per target token of the training text, EOS included.
        source_tokens, target_tokens: mean tokens per line of `test`, EOS included.
    """

    folder: Path
    corpus: str
    key: str
    special_tokens: list[str]
    tokens: list[str]
    source_per_target: float
    source_tokens: float
    target_tokens: float
    source: str = "en"
    target: str = "de"

    @property
    def subwords(self) -> Path:
        return self.folder / "joint.model"

    @property
    def vocabulary(self) -> int:
        return len(self.special_tokens) + len(self.tokens)

    def file(self, split: str, side: Side) -> Path:
        return self.folder / f"{split}.{self.source if side == 'source' else self.target}"


def prepare(folder: Path) -> Text:
    """Write the text into a folder. Raises MeasurementError."""
    answer, _ = work("prepare", threads=1, what="Preparing the text", folder=str(folder))
    return Text(**{**answer, "folder": Path(answer["folder"])})
