"""Alignments as files: pictures, a page to explore, and JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from starlette.exceptions import HTTPException

from nmt.alignment.extraction import AlignedPair
from nmt.alignment.weights import AlignmentWeights
from nmt.serving.engine import ServedHypothesis

Form = Literal["png", "svg", "html", "json"]
MEDIA_TYPES: dict[Form, str] = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "html": "text/html",
    "json": "application/json",
}
_MOST_WORDS = 100
"""Most words per side of a picture."""


@dataclass(frozen=True)
class ModelReading:
    """A translation as one model reads it."""

    model: str
    hypothesis: ServedHypothesis

    @property
    def pair(self) -> AlignedPair:
        """The alignment. Raises HTTPException if there is none."""
        if self.hypothesis.pair is None:
            raise HTTPException(400, "There is no alignment: the model has no attention, or the line is too long.")
        return self.hypothesis.pair


def draw(
    form: Form,
    source: str,
    readings: Sequence[ModelReading],
    languages: tuple[str, str],
    weights: AlignmentWeights,
) -> bytes:
    """A file of the alignment of a line by one model or two. Raises HTTPException if it cannot be drawn."""
    readings = [reading for reading in readings if reading.pair.alignment.weights.size]
    if not readings:
        raise HTTPException(400, "There is nothing to draw: the translation is blank.")
    match form:
        case "json":
            models = [{"model": reading.model, **reading.hypothesis.as_json()} for reading in readings]
            content = {"source": source, "weights": weights, "models": models}
            return json.dumps(content, ensure_ascii=False, indent=1).encode()
        case "html":
            return _explorer(readings, languages)
        case _:
            return _picture(form, readings, weights)


def _explorer(readings: Sequence[ModelReading], languages: tuple[str, str]) -> bytes:
    from nmt.plotting.explorer import Explored, Reading, explorer_page

    explored = []
    for reading in readings:
        alignment, hypothesis = reading.pair.alignment, reading.hypothesis
        figures = {"length": len(alignment.source), "score": hypothesis.log_probability / hypothesis.tokens}
        explored.append(Reading(alignment, alignment, reading.pair.links, figures))
    names = [reading.model for reading in readings]
    return explorer_page([Explored(1, tuple(explored))], names, title="Alignment", languages=languages).encode()


def _picture(form: Form, readings: Sequence[ModelReading], weights: AlignmentWeights) -> bytes:
    from nmt.plotting.heatmap import plot_alignment

    alignments = [reading.pair.alignment for reading in readings]
    if max(len(side) for alignment in alignments for side in (alignment.source, alignment.target)) > _MOST_WORDS:
        raise HTTPException(413, f"A picture has at most {_MOST_WORDS} words on each side.")
    titles = [reading.model for reading in readings] if len(readings) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"alignment.{form}"
        plot_alignment(alignments, path, weights=f"{weights} weight", title=titles)
        return path.read_bytes()
