"""What the server asks of the processes that decode, and what they answer. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nmt.alignment.extraction import AlignedPair
from nmt.alignment.weights import AlignmentWeights
from nmt.bundle.places import find_model, model_name
from nmt.runtime.arguments import PrecisionName


@dataclass(frozen=True)
class ModelDescription:
    """A model of this server."""

    id: str
    """Its name in requests; the server forms it from the folder's name."""
    name: str
    """Its name for people."""
    source: str
    target: str
    alignment: bool
    """Whether it has attention."""
    beam_size: int
    """Hypotheses of a search by its recipe: the beam size, or the number of samples."""
    parameters: int


@dataclass(frozen=True)
class EngineOptions:
    """Which models a process loads, what they are called, and how it computes."""

    folders: tuple[Path, ...]
    names: tuple[str, ...]
    device: str = "auto"
    precision: PrecisionName = "fp32"

    @classmethod
    def of(cls, models: Sequence[Path], device: str = "auto", precision: PrecisionName = "fp32") -> EngineOptions:
        """For models wherever they are; what is on the hub is downloaded here, once. Raises DataError or UsageError."""
        return cls(tuple(map(find_model, models)), tuple(map(model_name, models)), device, precision)


@dataclass(frozen=True)
class EngineDescription:
    """The models of a process, and the type of its device (`cpu`, `cuda`, `mps`)."""

    models: tuple[ModelDescription, ...]
    device: str


@dataclass(frozen=True)
class Setting:
    """What lines must have in common to be decoded in one batch.

    Attributes:
        model: index of the model.
        kind: whether lines are translated, or known translations scored.
        n_best: hypotheses per line.
        beam_size: None for the recipe's, increased to `n_best` if necessary.
        weights: what alignments and links hold.
    """

    model: int
    kind: Literal["translate", "score"] = "translate"
    n_best: int = 1
    beam_size: int | None = None
    weights: AlignmentWeights = "attention"


@dataclass(frozen=True)
class LineTask:
    """A line to translate, or to score with its translation.

    Attributes:
        source: the line.
        target: its translation; empty unless it is to be scored.
        aligned: whether the alignment is wanted.
    """

    source: str
    target: str = ""
    aligned: bool = False

    @property
    def size(self) -> int:
        """Bytes of text, which bound the number of tokens."""
        return len(self.source.encode("utf-8", "replace")) + len(self.target.encode("utf-8", "replace"))


@dataclass(frozen=True)
class ScoredLine:
    """One hypothesis of a line.

    Attributes:
        text: the translation.
        score: what hypotheses are ranked by.
        log_probability: log P(y | x).
        tokens: number of its tokens, end mark included.
        pair: alignment and links between words; None if it was not asked for, or is too large.
    """

    text: str
    score: float
    log_probability: float
    tokens: int
    pair: AlignedPair | None = None


LineResult = tuple[ScoredLine, ...]
"""The hypotheses of a line, best first; none if a known translation is too long to be scored."""
