"""Warn if held-out text is also in the training text, so that scores on it are too high."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nmt.corpora.locators import load_normalized
from nmt.data.corpus import ParallelCorpus
from nmt.errors import DataError
from nmt.recipe import DataConfig
from nmt.runtime.wording import counted, excerpt
from nmt.training.text import TrainingText

_WIDTH = 60
"""Most characters of the example."""
NOTABLE = 0.01
"""The share of common source sides from which on a held-out text is worth a warning."""


@dataclass(frozen=True)
class Overlap:
    """How much of a held-out text is also in the training text.

    Attributes:
        lines: number of pairs of the held-out text.
        pairs: how many of them are in the training text.
        sources: how many have a source side that is there, with any translation.
        example: the line number and source side of one of them, of a pair if there is one.
    """

    lines: int
    pairs: int
    sources: int
    example: tuple[int, str] | None

    @classmethod
    def of(cls, held_out: ParallelCorpus, train: ParallelCorpus) -> Overlap:
        """Compare two texts. It takes the memory of the held-out text, however large the training text is."""
        train = train.untagged
        rows = train.source.rows_among(set(held_out.source))
        pairs = {(train.source[row], train.target[row]) for row in rows}
        sources = {source for source, _ in pairs}
        common_pairs = [row for row, pair in enumerate(held_out.pairs()) if pair in pairs]
        common_sources = [row for row, source in enumerate(held_out.source) if source in sources]
        example = next(((row + 1, held_out.source[row]) for row in [*common_pairs, *common_sources]), None)
        return cls(len(held_out), len(common_pairs), len(common_sources), example)


def overlap_warning(data: DataConfig, text: TrainingText) -> str | None:
    """One sentence on the lines of `data.valid` and `data.test` that are also in `data.train`; None if these are few."""
    overlaps = {name: Overlap.of(held_out, text.train) for name, held_out in _held_out(data, text)}
    findings = [
        f"{counted(overlap.pairs, 'pair')} and {counted(overlap.sources, 'source')} of the {overlap.lines:,} of {name} "
        f"(such as line {overlap.example[0]:,}: {excerpt(overlap.example[1], _WIDTH)})"
        for name, overlap in overlaps.items()
        if overlap.example is not None and overlap.sources >= NOTABLE * overlap.lines
    ]
    if not findings:
        return None
    return f"Warning: data.train also has {' and '.join(findings)}. Scores on text that was trained on are too high."


def _held_out(data: DataConfig, text: TrainingText) -> Iterator[tuple[str, ParallelCorpus]]:
    """The held-out texts by setting. `data.test` is left out if it cannot be read or might have to be fetched."""
    yield "data.valid", text.valid
    if data.test is not None:
        try:
            yield "data.test", load_normalized(data, data.test, fetch=False)
        except DataError:
            return
