"""Alignments as files: pictures, a page to explore, and JSON."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nmt.alignment.extraction import AlignedPair
from nmt.serving.schemas import Picture, PictureInput, hypothesis_output
from nmt.serving.service import RefusedError, Service
from nmt.serving.work import ScoredLine

MEDIA_TYPES: dict[Picture, str] = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
}
_MOST_WAITING = 8
"""Most drawings that wait; each takes a second."""
_MOST_WORDS = 100
"""Most words per side of a picture."""


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
            lines = await self._lines(request)
            readings = [(name, line, line.pair) for name, line in lines if line.pair is not None]
            if len(readings) < len(lines):
                raise RefusedError(400, "There is no alignment: the model has no attention, or the line is too long.")
            most = max(len(side) for _, _, pair in readings for side in (pair.alignment.source, pair.alignment.target))
            if form in ("png", "svg") and most > _MOST_WORDS:
                raise RefusedError(413, f"A picture has at most {_MOST_WORDS} words on each side.")
            pairs = [(name, line, pair) for name, line, pair in readings if pair.alignment.weights.size]
            if not pairs:
                raise RefusedError(400, "There is nothing to draw: the translation is blank.")
            loop = asyncio.get_running_loop()
            content = await loop.run_in_executor(self._thread, _file, form, request.q, pairs, self._languages(request))
            return content, MEDIA_TYPES[form]
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """End the thread, after the drawing that it is at."""
        self._thread.shutdown(cancel_futures=True)

    async def _lines(self, request: PictureInput) -> list[tuple[str, ScoredLine]]:
        """The translation by each model, aligned, with the names of the models."""
        translations = {request.model: request.translation}
        if request.compared is not None:
            translation = request.compared_translation
            translations[request.compared] = request.translation if translation is None else translation
        lines = []
        for identifier, translation in translations.items():
            index = self._service.choose(request.source, request.target, identifier)
            line = await self._service.score_line(index, request.q, translation)
            lines.append((self._service.models[index].name, line))
        return lines

    def _languages(self, request: PictureInput) -> tuple[str, str]:
        model = self._service.models[self._service.choose(request.source, request.target, request.model)]
        return model.source, model.target


def _file(
    form: Picture,
    source: str,
    readings: Sequence[tuple[str, ScoredLine, AlignedPair]],
    languages: tuple[str, str],
) -> bytes:
    match form:
        case "json":
            models = [{"model": name, **hypothesis_output(line).model_dump()} for name, line, _ in readings]
            text = json.dumps({"source": source, "models": models}, ensure_ascii=False, indent=1)
            return text.encode("utf-8", "replace")
        case "html":
            return _page(readings, languages)
        case _:
            return _picture(form, readings)


def _page(readings: Sequence[tuple[str, ScoredLine, AlignedPair]], languages: tuple[str, str]) -> bytes:
    from nmt.plotting.explorer import Explored, Reading, explorer_page

    shown = [
        Reading(
            pair.alignment,
            pair.alignment,
            pair.links,
            {"length": len(pair.alignment.source), "score": line.log_probability / line.tokens},
        )
        for _, line, pair in readings
    ]
    names = [name for name, _, _ in readings]
    page = explorer_page([Explored(1, tuple(shown))], names, title="Alignment", languages=languages)
    return page.encode()


def _picture(form: Picture, readings: Sequence[tuple[str, ScoredLine, AlignedPair]]) -> bytes:
    from nmt.plotting.heatmap import plot_alignment

    alignments = [pair.alignment for _, _, pair in readings]
    titles = [name for name, _, _ in readings] if len(readings) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"alignment.{form}"
        plot_alignment(alignments, path, title=titles)
        return path.read_bytes()
