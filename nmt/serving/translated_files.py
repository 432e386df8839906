"""Files: translated, and kept for a while to be fetched."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

from nmt.errors import DataError
from nmt.serving.documents.document import InlineDocument
from nmt.serving.documents.formats import FORMATS
from nmt.serving.refusals import RefusedError
from nmt.serving.schemas import FileInput, TranslateInput
from nmt.serving.service import Service
from nmt.text.inline import InlineText

MOST_BYTES = 2_000_000
"""Most bytes of a file, beyond those of its text: markup, pictures, and what is translated already."""
_MOST_AT_ONCE = 16
"""Most files that are read and translated at a time; each takes memory."""
_MOST_KEPT = 100
_MOST_BYTES_KEPT = 64_000_000
_SECONDS_KEPT = 1800.0


@dataclass(frozen=True)
class TranslatedFile:
    """A file to fetch: its content, and what it is."""

    content: bytes
    suffix: str

    @property
    def media_type(self) -> str:
        """The media type of its format."""
        return FORMATS[self.suffix].media_type


class KeptFiles:
    """Files in memory, by names that nobody guesses; the oldest go when they are too many, too large or too old."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._files: OrderedDict[str, tuple[float, TranslatedFile]] = OrderedDict()

    def keep(self, file: TranslatedFile) -> str:
        """The name by which to fetch a file."""
        name = secrets.token_urlsafe(24) + file.suffix
        self._files[name] = self._clock(), file
        self._forget()
        return name

    def fetch(self, name: str) -> TranslatedFile | None:
        """The file of this name, None if there is none."""
        self._forget()
        return self._files[name][1] if name in self._files else None

    def _forget(self) -> None:
        size = sum(len(file.content) for _, file in self._files.values())
        for name, (kept_at, file) in list(self._files.items()):
            is_old = self._clock() - kept_at > _SECONDS_KEPT
            if not is_old and size <= _MOST_BYTES_KEPT and len(self._files) <= _MOST_KEPT:
                return
            del self._files[name]
            size -= len(file.content)


class FileTranslator:
    """Translates files of many clients at once."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._kept = KeptFiles()
        self._at_work = 0

    @contextmanager
    def room(self) -> Iterator[None]:
        """Room for one more file, from its arrival to its translation. Raises RefusedError if there is none."""
        if self._at_work >= _MOST_AT_ONCE:
            raise RefusedError(503, "The server is busy with other files.", retry_after=5)
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1

    async def translate(self, request: FileInput) -> str:
        """The name by which to fetch the translation of a file. Raises RefusedError."""
        suffix = PurePath(request.file.name).suffix.lower()
        if suffix not in FORMATS:
            raise RefusedError(400, f"Invalid request: file format not supported; these are: {' '.join(FORMATS)}.")
        index = self._service.choose(request.source, request.target, request.model)
        model = self._service.models[index]
        languages = model.source, model.target
        try:
            document = await asyncio.to_thread(FORMATS[suffix].read, request.file.content, languages)
            if isinstance(document, InlineDocument):
                texts = await asyncio.to_thread(_bounded, document.texts, self._service.limits.characters)
        except DataError as error:
            raise RefusedError(400, f"Invalid request: file: {error}") from None
        if isinstance(document, InlineDocument):
            pieces = await self._service.translate_inline(index, texts)
            written = await asyncio.to_thread(document.write, pieces)
        else:
            item = TranslateInput(q=document.texts, format=document.markup, model=model.id)
            translations = (await self._service.translate(item)).translatedText
            assert isinstance(translations, list)
            written = await asyncio.to_thread(document.write, translations)
        return self._kept.keep(TranslatedFile(written, suffix))

    def fetch(self, name: str) -> TranslatedFile:
        """A translated file. Raises RefusedError if there is none of this name, or no more."""
        file = self._kept.fetch(name)
        if file is None:
            raise RefusedError(404, "There is no such file: translated files are kept for half an hour at most.")
        return file


def _bounded(texts: Iterable[InlineText], most: int) -> list[InlineText]:
    """The texts. Raises RefusedError as soon as they have too many characters; each takes time."""
    bounded, characters = [], 0
    for text in texts:
        bounded.append(text)
        characters += len(text.plain)
        if characters > most:
            raise RefusedError(413, f"The texts of the file have more than {most:,} characters.")
    return bounded
