"""The HTTP application: the page, and the calls of LibreTranslate's API."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from nmt.data.rules import identifier
from nmt.errors import NmtError, UsageError
from nmt.runtime.wording import listed
from nmt.serving.drawings import MEDIA_TYPES, Form, ModelReading, draw
from nmt.serving.engine import ServedHypothesis, ServedModel, Setting, Task
from nmt.serving.pages import ASSETS, render_page
from nmt.serving.requests import AUTO, DetectInput, InputT, PictureInput, ScoreInput, TranslateInput, read_input
from nmt.serving.worker import Worker
from nmt.text.languages import closest_code, language_name

Endpoint = Callable[[Request], Awaitable[Response]]
ResultT = TypeVar("ResultT")

_LINE_END = re.compile(r"(\r?\n)")
_USUAL_BEAM = 5
"""Widest beam for the longest text, unless the model's recipe has a wider one."""
_BYTES_PER_CHARACTER = 12
"""A character takes at most 4 bytes of UTF-8, 12 as two `\\uXXXX` or percent-encoded."""
_BODY_OVERHEAD = 10_000


class App:
    """The endpoints, for models that a worker runs."""

    def __init__(
        self,
        models: Sequence[ServedModel],
        worker: Worker,
        *,
        max_characters: int = 5000,
        api_key: str | None = None,
        hosts: Sequence[str] | None = None,
    ) -> None:
        """Prepare it.

        Args:
            models: the models of the worker's engine.
            worker: what decodes.
            max_characters: most characters of a request. While it is decoded, all others wait.
            api_key: what requests must name; None for nothing.
            hosts: host names to answer to, None for all. Without this check a page of another site could have its own name point
                here, and read answers (DNS rebinding).
        """
        self.models, self._worker, self._api_key = tuple(models), worker, api_key
        self._max_characters = max_characters
        self._drawing = anyio.CapacityLimiter(1)  # matplotlib is not made for threads
        assets = [Route(f"/static/{name}", _asset(name)) for name in ASSETS]
        pictures = [Route(f"/alignment.{form}", self._picture(form), methods=["POST"]) for form in MEDIA_TYPES]
        self.asgi = Starlette(
            routes=[
                Route("/", self._page),
                Route("/", self._form, methods=["POST"]),
                Route("/translate", self._translate, methods=["POST"]),
                Route("/score", self._score, methods=["POST"]),
                Route("/detect", self._detect, methods=["POST"]),
                Route("/languages", self._languages),
                Route("/health", self._health),
                Route("/frontend/settings", self._settings),
                *pictures,
                *assets,
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts or ["*"]), www_redirect=False)],
            exception_handlers={HTTPException: _refusal, NmtError: _refusal},
        )

    # --- the API ----------------------------------------------------------------------------------------------------

    async def _translate(self, request: Request) -> Response:
        return JSONResponse(await self._answer(request, await self._read(TranslateInput, request)))

    async def _answer(self, request: Request, content: TranslateInput) -> dict[str, Any]:
        """The translation of one text or several; for several, all values but the model are lists."""
        index, detected = await self._choose(content, "\n".join(content.texts))
        if content.beam_size is not None and content.hypotheses > content.beam_size:
            raise HTTPException(
                400, f"A beam of {content.beam_size} has fewer than {content.hypotheses} hypotheses: widen beam_size."
            )
        beam = content.beam_size or max(self.models[index].beam_size, content.hypotheses)
        self._check_length(content.texts, beam, usual=self.models[index].beam_size)
        texts = [_LINE_END.split(text) for text in content.texts]
        lines = [part for parts in texts for part in parts if part.strip()]
        setting = Setting(index, False, content.hypotheses, content.beam_size, content.alignment)
        results = iter(await _unless_gone(request, self._run(setting, lines)))
        answers: list[dict[str, Any]] = []
        for parts in texts:
            hypotheses = [next(results) if part.strip() else None for part in parts]
            ranked = [_joined(parts, hypotheses, rank) for rank in range(content.alternatives + 1)]
            answer: dict[str, Any] = {"translatedText": ranked[0]}
            if content.alternatives:
                answer["alternatives"] = [text for text in dict.fromkeys(ranked) if text != ranked[0]]
            if detected is not None:
                answer["detectedLanguage"] = detected
            if content.alignment or content.n_best is not None:
                answer["lines"] = [
                    {"source": part, "hypotheses": [each.as_json() for each in best[: content.n_best or 1]]}
                    for part, best in zip(parts, hypotheses, strict=True)
                    if best is not None
                ]
            answers.append(answer)
        if not isinstance(content.q, str):
            names = answers[0] if answers else ["translatedText"]
            answers = [{name: [answer[name] for answer in answers] for name in names}]
        return {**answers[0], "model": self.models[index].name}

    async def _score(self, request: Request) -> Response:
        content = await self._read(ScoreInput, request)
        reading = await _unless_gone(request, self._reading(content, content.model, content.translation))
        return JSONResponse({**reading.hypothesis.as_json(), "model": reading.model})

    async def _reading(self, content: ScoreInput, model: str | None, translation: str) -> ModelReading:
        index, _ = await self._choose(content.model_copy(update={"model": model}), content.q)
        self._check_length([content.q, translation])
        setting = Setting(index, True, is_aligned=True, posterior=content.weights == "posterior")
        [[hypothesis]] = await self._run(setting, [(content.q, translation)])
        return ModelReading(self.models[index].name, hypothesis)

    def _picture(self, form: Form) -> Endpoint:
        """The endpoint that draws the alignment of a translation by one model or two, as a file."""

        async def endpoint(request: Request) -> Response:
            content = await self._read(PictureInput, request)
            model = self.models[(await self._choose(content, content.q))[0]]
            wanted = {(content.model, content.translation): None}
            if content.compared is not None:
                second = content.compared_translation
                wanted[content.compared, content.translation if second is None else second] = None
            readings = [await self._reading(content, name, translation) for name, translation in wanted]
            file = await anyio.to_thread.run_sync(
                draw, form, content.q, readings, (model.source, model.target), content.weights, limiter=self._drawing
            )
            disposition = {"content-disposition": f'attachment; filename="alignment.{form}"'}
            return Response(file, media_type=MEDIA_TYPES[form], headers=disposition)

        return endpoint

    async def _detect(self, request: Request) -> Response:
        content = await self._read(DetectInput, request)
        self._check_length([content.q])
        detected = await anyio.to_thread.run_sync(_identify, content.q)
        if detected is None:
            raise HTTPException(
                501, 'Detecting a language needs `pip install "attentional-nmt[langid]"` on the server.'
            )
        return JSONResponse([detected])

    async def _languages(self, _: Request) -> Response:
        codes = dict.fromkeys([*(model.source for model in self.models), *(model.target for model in self.models)])
        return JSONResponse(
            [
                {
                    "code": code,
                    "name": language_name(code),
                    "targets": list(dict.fromkeys(model.target for model in self.models if model.source == code)),
                }
                for code in codes
            ]
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _settings(self, _: Request) -> Response:
        """What LibreTranslate tells its own page."""
        first = self.models[0]
        return JSONResponse(
            {
                "charLimit": self._max_characters,
                "frontendTimeout": 500,
                "apiKeys": self._api_key is not None,
                "keyRequired": self._api_key is not None,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {
                    "source": {"code": first.source, "name": language_name(first.source)},
                    "target": {"code": first.target, "name": language_name(first.target)},
                },
            }
        )

    # --- the page ---------------------------------------------------------------------------------------------------

    async def _page(self, _: Request) -> Response:
        return self._html()

    async def _form(self, request: Request) -> Response:
        """The page with a translation in it, for browsers without JavaScript."""
        content = None
        try:
            content = await self._read(TranslateInput, request)
            answer = await self._answer(request, content)
        except HTTPException as error:
            text, model = (content.texts[0], content.model) if content else ("", None)
            return self._html(error.status_code, text=text, model=model, problem=error.detail)
        return self._html(text=content.texts[0], model=content.model, translation=str(answer["translatedText"]))

    def _html(self, status: int = 200, **texts: Any) -> Response:
        page = render_page(self.models, characters=self._max_characters, needs_key=self._api_key is not None, **texts)
        return HTMLResponse(page, status)

    # --- checks -----------------------------------------------------------------------------------------------------

    async def _read(self, kind: type[InputT], request: Request) -> InputT:
        """The checked request. Raises HTTPException."""
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HTTPException(403, "Pages of other sites may not use this server.")
        content = await read_input(kind, request, _BYTES_PER_CHARACTER * self._max_characters + _BODY_OVERHEAD)
        key = request.headers.get("x-api-key") or content.api_key or ""
        if self._api_key is not None and not hmac.compare_digest(key.encode(), self._api_key.encode()):
            raise HTTPException(403, "This server needs its API key, as api_key or in the header X-API-Key.")
        return content

    async def _choose(self, content: Any, text: str) -> tuple[int, dict[str, Any] | None]:
        """The index of the model that fits a request, the first of several, and the detected language if that was asked for."""
        fitting = [index for index, model in enumerate(self.models) if content.model in (None, model.name)]
        if not fitting:
            raise HTTPException(
                400, f"There is no model of this name: this server has {listed([model.name for model in self.models])}."
            )
        source, detected = content.source, None
        if source.lower() == AUTO:
            sources = {self.models[index].source for index in fitting}
            detected = await anyio.to_thread.run_sync(_identify, text, sources)
            source = "" if detected is None else detected["language"]
        for side, code in (("source", source), ("target", content.target)):
            if code:
                closest = closest_code(code, [getattr(self.models[index], side) for index in fitting])
                fitting = [index for index in fitting if getattr(self.models[index], side) == closest]
        if len({(self.models[index].source, self.models[index].target) for index in fitting}) != 1:
            known = dict.fromkeys(f"{model.source} to {model.target}" for model in self.models)
            raise HTTPException(
                400, f"This server translates {listed(list(known))}: name the source and target of one."
            )
        return fitting[0], detected

    def _check_length(self, texts: Sequence[str], beam: int = 1, *, usual: int = 1) -> None:
        """Refuse a request that would hold all others up: its characters times its beam are what decoding takes."""
        most = self._max_characters * max(usual, _USUAL_BEAM) // max(beam, usual, _USUAL_BEAM)
        characters = sum(map(len, texts))
        if characters > most:
            with_beam = "" if most == self._max_characters else f" with a beam of {beam}"
            raise HTTPException(
                413, f"The text has {characters:,} characters, but at most {most:,} are allowed{with_beam}."
            )

    async def _run(self, setting: Setting, tasks: Sequence[Task]) -> list[list[ServedHypothesis]]:
        return await asyncio.wrap_future(self._worker.submit(setting, tasks)) if tasks else []


def _joined(parts: Sequence[str], hypotheses: Sequence[list[ServedHypothesis] | None], rank: int) -> str:
    """A text from one hypothesis of each of its lines, the best one of a line that has fewer; the rest of it stays."""
    return "".join(
        part if best is None else best[rank if rank < len(best) else 0].text
        for part, best in zip(parts, hypotheses, strict=True)
    )


def _identify(text: str, languages: set[str] | None = None) -> dict[str, Any] | None:
    """The most probable language of a text, perhaps of some only, with its probability in %; None without py3langid."""
    try:
        ranked = identifier().rank(text)
    except UsageError:
        return None
    for code, probability in ranked:
        language = code if languages is None else closest_code(code, languages)
        if language is not None:
            return {"language": language, "confidence": round(100 * float(probability), 1)}
    return None


async def _unless_gone(request: Request, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """The result of a coroutine, which is cancelled if the client leaves meanwhile, as the page does with every key."""
    work = asyncio.ensure_future(coroutine)
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise HTTPException(499, "The client has left.")
        return work.result()
    finally:
        work.cancel()
        leaving.cancel()


def _asset(name: str) -> Endpoint:
    content, media_type = ASSETS[name]

    async def endpoint(_: Request) -> Response:
        return Response(content, media_type=media_type, headers={"cache-control": "no-cache"})

    return endpoint


async def _refusal(_: Request, error: Exception) -> Response:
    """An error as LibreTranslate sends it."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    text = error.detail if isinstance(error, HTTPException) else str(error)
    return JSONResponse({"error": text}, status, headers)
