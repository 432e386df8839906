"""Alignments as files: pictures, a page to explore, and JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from starlette.exceptions import HTTPException

from nmt.alignment.weights import AlignmentWeights
from nmt.plotting.explorer import Explored, Reading, explorer_page
from nmt.serving.engine import ServedHypothesis

MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml", "html": "text/html", "json": "application/json"}
"""The forms of files."""
_MOST_WORDS = 100
"""Most words per side of a picture."""


def draw(
    form: str,
    source: str,
    translations: Sequence[tuple[str, ServedHypothesis]],
    languages: tuple[str, str],
    weights: AlignmentWeights,
) -> bytes:
    """A file of a line with its translations by one model or two, each with the model's name. Raises HTTPException."""
    if any(hypothesis.pair is None for _, hypothesis in translations):
        raise HTTPException(400, "There is no alignment: the model has no attention, or the line is too long.")
    names = [name for name, _ in translations]
    hypotheses = [hypothesis for _, hypothesis in translations]
    pairs = [hypothesis.pair for hypothesis in hypotheses if hypothesis.pair is not None]
    if not all(pair.alignment.weights.size for pair in pairs):
        raise HTTPException(400, "There is nothing to draw: a translation is blank.")
    match form:
        case "json":
            models = [{"model": name, **hypothesis.as_json()} for name, hypothesis in translations]
            content = {"source": source, "weights": weights, "models": models}
            return json.dumps(content, ensure_ascii=False, indent=1).encode()
        case "html":
            readings = tuple(
                Reading(
                    pair.alignment,
                    pair.alignment,
                    pair.links,
                    {"score": hypothesis.log_probability / hypothesis.tokens},
                )
                for pair, hypothesis in zip(pairs, hypotheses, strict=True)
            )
            return explorer_page([Explored(1, readings)], names, title="Alignment", languages=languages).encode()
        case _:
            from nmt.plotting.heatmap import plot_alignment

            alignments = [pair.alignment for pair in pairs]
            if max(max(alignment.weights.shape) for alignment in alignments) > _MOST_WORDS:
                raise HTTPException(413, f"A picture has at most {_MOST_WORDS} words on each side.")
            with tempfile.TemporaryDirectory() as folder:
                path, titles = Path(folder) / f"alignment.{form}", names if len(names) > 1 else None
                plot_alignment(alignments, path, weights=f"{weights} weight", title=titles)
                return path.read_bytes()
