"""Alignments as files: pictures, a page to explore, and JSON."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import to_json

from nmt.alignment.extraction import AlignedPair
from nmt.alignment.weights import AlignmentWeights
from nmt.serving.refusals import RefusedError
from nmt.serving.schemas import PICTURES, Picture, PictureInput, hypothesis_output
from nmt.serving.service import Service
from nmt.serving.work import ScoredLine

_MOST_WAITING = 8
"""Most drawings that wait; each takes a second."""
_MOST_WORDS = 100
"""Most words per side of a picture."""


@dataclass(frozen=True)
class _ModelReading:
    """A translation by one model, with what its alignment holds."""

    name: str
    line: ScoredLine
    weights: AlignmentWeights

    @property
    def pair(self) -> AlignedPair:
        """The alignment. Raises RefusedError if there is none."""
        if self.line.pair is None:
            raise RefusedError(400, "There is no alignment: the model has no attention, or the line is too long.")
        return self.line.pair


class Drawer:
    """Draws in a thread of its own, one alignment at a time: matplotlib is not made for threads."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thread = ThreadPoolExecutor(1, "drawing")
        self._waiting = 0

    async def draw(self, request: PictureInput, form: Picture) -> tuple[bytes, str]:
        """The alignment of a translation by one model or two, as a file, and its media type. Raises RefusedError."""
        if self._waiting >= _MOST_WAITING:
            raise RefusedError(503, "The server is busy drawing.", retry_after=_MOST_WAITING)
        self._waiting += 1
        try:
            drawings = await self._drawings(request)
            alignments = [drawing.pair.alignment for drawing in drawings]
            most = max(len(side) for alignment in alignments for side in (alignment.source, alignment.target))
            if form in ("png", "svg") and most > _MOST_WORDS:
                raise RefusedError(413, f"A picture has at most {_MOST_WORDS} words on each side.")
            drawings = [drawing for drawing in drawings if drawing.pair.alignment.weights.size]
            if not drawings:
                raise RefusedError(400, "There is nothing to draw: the translation is blank.")
            model = self._service.models[self._service.choose(request.source, request.target, request.model)]
            languages = model.source, model.target
            loop = asyncio.get_running_loop()
            content = await loop.run_in_executor(self._thread, _file, form, request.q, drawings, languages)
            return content, PICTURES[form]
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """End the thread, after the drawing that it is at."""
        self._thread.shutdown(cancel_futures=True)

    async def _drawings(self, request: PictureInput) -> list[_ModelReading]:
        """The translation by each model, aligned."""
        wanted = [(request.model, request.translation, request.weights)]
        if request.compared is not None:
            translation = request.translation if request.compared_translation is None else request.compared_translation
            wanted.append((request.compared, translation, request.compared_weights or request.weights))
        drawings = []
        for identifier, translation, weights in dict.fromkeys(wanted):
            index = self._service.choose(request.source, request.target, identifier)
            line = await self._service.score_line(index, request.q, translation, weights)
            drawings.append(_ModelReading(self._service.models[index].name, line, weights))
        return drawings


def _file(form: Picture, source: str, drawings: Sequence[_ModelReading], languages: tuple[str, str]) -> bytes:
    match form:
        case "json":
            models = [
                {"model": drawing.name, "weights": drawing.weights, **dict(hypothesis_output(drawing.line))}
                for drawing in drawings
            ]
            return to_json({"source": source, "models": models}, indent=1)
        case "html":
            return _page(drawings, languages)
        case _:
            return _picture(form, drawings)


def _page(drawings: Sequence[_ModelReading], languages: tuple[str, str]) -> bytes:
    from nmt.plotting.explorer import Explored, Reading, explorer_page

    readings = [
        Reading(
            drawing.pair.alignment,
            drawing.pair.alignment,
            drawing.pair.links,
            {"length": len(drawing.pair.alignment.source), "score": drawing.line.log_probability / drawing.line.tokens},
        )
        for drawing in drawings
    ]
    names = [drawing.name for drawing in drawings]
    page = explorer_page([Explored(1, tuple(readings))], names, title="Alignment", languages=languages)
    return page.encode()


def _picture(form: Picture, drawings: Sequence[_ModelReading]) -> bytes:
    from nmt.plotting.heatmap import plot_alignment

    alignments = [drawing.pair.alignment for drawing in drawings]
    titles = [drawing.name for drawing in drawings] if len(drawings) > 1 else None
    weights = " or ".join(dict.fromkeys(f"{drawing.weights} weight" for drawing in drawings))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"alignment.{form}"
        plot_alignment(alignments, path, weights=weights, title=titles)
        return path.read_bytes()
