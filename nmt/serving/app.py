"""The HTTP application: the page, and the calls of LibreTranslate's API."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Sequence
from typing import Any

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
from nmt.serving import requests
from nmt.serving.drawings import MEDIA_TYPES, draw
from nmt.serving.engine import ServedHypothesis, ServedModel, Setting, Task
from nmt.serving.pages import ASSETS, render_page
from nmt.serving.requests import InputT, read_input
from nmt.serving.worker import Worker
from nmt.text.languages import closest_code, language_name

_LINE_END = re.compile(r"(\r?\n)")
_USUAL_BEAM = 5
"""Widest beam for the longest text, unless the model's recipe has a wider one."""


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
        self._drawing = asyncio.Lock()  # matplotlib is not made for threads
        self.asgi = Starlette(
            routes=[
                Route("/", self.page),
                Route("/", self.form, methods=["POST"]),
                Route("/translate", self.translate, methods=["POST"]),
                Route("/score", self.score, methods=["POST"]),
                Route("/detect", self.detect, methods=["POST"]),
                Route("/languages", self.languages),
                Route("/health", self.health),
                Route("/frontend/settings", self.settings),
                Route("/alignment.{form}", self.picture, methods=["POST"]),
                Route("/static/{name}", self.asset),
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts or ["*"]), www_redirect=False)],
            exception_handlers={HTTPException: _refusal, NmtError: _refusal},
        )

    # --- the API ----------------------------------------------------------------------------------------------------

    async def translate(self, request: Request) -> Response:
        """Translate one text or several."""
        return JSONResponse(await self._answer(request, await self._read(requests.TranslateInput, request)))

    async def _answer(self, request: Request, content: requests.TranslateInput) -> dict[str, Any]:
        """The translation of one text; for several, all values but the model are lists."""
        index, detected = await self._choose(content, "\n".join(content.texts))
        model = self.models[index]
        if content.beam_size is not None and content.hypotheses > content.beam_size:
            raise HTTPException(
                400, f"A beam of {content.beam_size} has fewer than {content.hypotheses} hypotheses: widen beam_size."
            )
        beam = content.beam_size or max(model.beam_size, content.hypotheses)
        self._check_length([*content.texts, content.prefix], beam, usual=model.beam_size)
        texts = [_LINE_END.split(text) for text in content.texts]
        lines = [part for parts in texts for part in parts if part.strip()]
        tasks: list[Task] = [(line, content.prefix) for line in lines] if content.prefix else [*lines]
        if content.prefix and len(tasks) > 1:
            raise HTTPException(400, f"A prefix belongs to one line, but the text has {len(tasks)}.")
        setting = Setting(
            index,
            has_prefix=content.prefix != "",
            n_best=content.hypotheses,
            beam_size=content.beam_size,
            is_aligned=content.alignment,
        )
        results = iter(await self._run(request, setting, tasks))
        answers: list[dict[str, Any]] = []
        for parts in texts:
            translations = [next(results) if part.strip() else None for part in parts]
            answer = _answer_text(content, parts, translations)
            answers.append(answer if detected is None else {**answer, "detectedLanguage": detected})
        if not isinstance(content.q, str):
            names = answers[0] if answers else ["translatedText"]
            answers = [{name: [answer[name] for answer in answers] for name in names}]
        return {**answers[0], "model": model.name}

    async def score(self, request: Request) -> Response:
        """Score and align a known translation."""
        content = await self._read(requests.ScoreInput, request)
        name, hypothesis = await self._scored(request, content, content.model, content.translation)
        return JSONResponse({**hypothesis.as_json(), "model": name})

    async def _scored(
        self, request: Request, content: requests.ScoreInput, model: str | None, translation: str
    ) -> tuple[str, ServedHypothesis]:
        """The name of the model, and the translation as it reads it."""
        index, _ = await self._choose(content.model_copy(update={"model": model}), content.q)
        self._check_length([content.q, translation])
        setting = Setting(index, True, is_aligned=True, posterior=content.weights == "posterior")
        [[hypothesis]] = await self._run(request, setting, [(content.q, translation)])
        return self.models[index].name, hypothesis

    async def picture(self, request: Request) -> Response:
        """Draw the alignment of a translation by one model or two, as a file."""
        form = request.path_params["form"]
        if form not in MEDIA_TYPES:
            raise HTTPException(404)
        content = await self._read(requests.PictureInput, request)
        model = self.models[(await self._choose(content, content.q))[0]]
        wanted = {(content.model, content.translation): None}
        if content.compared is not None:
            second = content.compared_translation
            wanted[content.compared, content.translation if second is None else second] = None
        scored = [await self._scored(request, content, name, translation) for name, translation in wanted]
        languages = model.source, model.target
        async with self._drawing:
            file = await asyncio.to_thread(draw, form, content.q, scored, languages, content.weights)
        disposition = {"content-disposition": f'attachment; filename="alignment.{form}"'}
        return Response(file, media_type=MEDIA_TYPES[form], headers=disposition)

    async def detect(self, request: Request) -> Response:
        """Detect the language of a text."""
        content = await self._read(requests.DetectInput, request)
        self._check_length([content.q])
        detected = await asyncio.to_thread(_identify, content.q)
        if detected is None:
            raise HTTPException(
                501, 'Detecting a language needs `pip install "attentional-nmt[langid]"` on the server.'
            )
        return JSONResponse([detected])

    async def languages(self, _: Request) -> Response:
        """List the languages with their targets; one that is only a target has none."""
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

    async def health(self, _: Request) -> Response:
        """Tell that the server runs."""
        return JSONResponse({"status": "ok"})

    async def settings(self, _: Request) -> Response:
        """Tell what LibreTranslate tells its own page."""
        first = self.models[0]
        return JSONResponse(
            {
                "charLimit": self._max_characters,
                "apiKeys": self._api_key is not None,
                "keyRequired": self._api_key is not None,
                "suggestions": False,
                "filesTranslation": False,
                "language": {
                    "source": {"code": first.source, "name": language_name(first.source)},
                    "target": {"code": first.target, "name": language_name(first.target)},
                },
            }
        )

    # --- the page ---------------------------------------------------------------------------------------------------

    async def page(self, _: Request) -> Response:
        """Show the page."""
        return self._html()

    async def asset(self, request: Request) -> Response:
        """Send a file that the page loads."""
        content, media_type = ASSETS.get(request.path_params["name"], ("", ""))
        if not content:
            raise HTTPException(404)
        return Response(content, media_type=media_type, headers={"cache-control": "no-cache"})

    async def form(self, request: Request) -> Response:
        """Show the page with a translation in it, for browsers without JavaScript."""
        content = None
        try:
            content = await self._read(requests.TranslateInput, request)
            answer = await self._answer(request, content)
        except HTTPException as error:
            text, model = (content.texts[0], content.model) if content else ("", None)
            return self._html(error.status_code, text=text, model=model, problem=error.detail)
        text, translation, unknown = content.texts[0], str(answer["translatedText"]), answer["unknownCharacters"]
        problem = f"Characters that the model does not know: {unknown}" if unknown else ""
        return self._html(text=text, model=content.model, translation=translation, problem=problem)

    def _html(self, status: int = 200, **texts: Any) -> Response:
        page = render_page(self.models, characters=self._max_characters, needs_key=self._api_key is not None, **texts)
        return HTMLResponse(page, status)

    # --- checks -----------------------------------------------------------------------------------------------------

    async def _read(self, kind: type[InputT], request: Request) -> InputT:
        """The checked request. Raises HTTPException."""
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HTTPException(403, "Pages of other sites may not use this server.")
        most_bytes = 12 * self._max_characters + 10_000  # a character may be two \\uXXXX, and there are other fields
        content = await read_input(kind, request, most_bytes)
        key = request.headers.get("x-api-key") or content.api_key or ""
        if self._api_key is not None and not hmac.compare_digest(key.encode(), self._api_key.encode()):
            raise HTTPException(403, "This server needs its API key, as api_key or in the header X-API-Key.")
        return content

    async def _choose(self, content: requests.ModelInput, text: str) -> tuple[int, dict[str, Any] | None]:
        """The index of the model that fits a request, the first of several, and the detected language if that was asked for."""
        fitting = [index for index, model in enumerate(self.models) if content.model in (None, model.name)]
        if not fitting:
            raise HTTPException(
                400, f"There is no model of this name: this server has {listed([model.name for model in self.models])}."
            )
        source, detected = content.source, None
        if source.lower() == requests.AUTO:
            sources = {self.models[index].source for index in fitting}
            detected = await asyncio.to_thread(_identify, text, sources)
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

    async def _run(self, request: Request, setting: Setting, tasks: Sequence[Task]) -> list[list[ServedHypothesis]]:
        """Decode tasks; they are withdrawn if the client leaves meanwhile, as the page does with every key."""
        if not tasks:
            return []
        work = asyncio.wrap_future(self._worker.submit(setting, tasks))
        leaving = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise HTTPException(499, "The client has left.")
            return work.result()
        finally:
            work.cancel()
            leaving.cancel()


def _answer_text(
    content: requests.TranslateInput, parts: Sequence[str], translations: Sequence[list[ServedHypothesis] | None]
) -> dict[str, Any]:
    """The answer for a text of these parts, of which line ends and blank lines have no translations and stay.

    In alternative n, a line has its hypothesis n, or its best one if it has fewer.
    """

    def joined(rank: int) -> str:
        return "".join(
            part if hypotheses is None else hypotheses[rank if rank < len(hypotheses) else 0].text
            for part, hypotheses in zip(parts, translations, strict=True)
        )

    unknown = {character for hypotheses in translations if hypotheses for character in hypotheses[0].unknown}
    answer: dict[str, Any] = {"translatedText": joined(0), "unknownCharacters": "".join(sorted(unknown))}
    if content.alternatives:
        others = dict.fromkeys(map(joined, range(1, content.alternatives + 1)))
        answer["alternatives"] = [text for text in others if text != joined(0)]
    if content.alignment or content.n_best is not None:
        most = content.n_best or 1
        answer["lines"] = [
            {"source": part, "hypotheses": [hypothesis.as_json() for hypothesis in hypotheses[:most]]}
            for part, hypotheses in zip(parts, translations, strict=True)
            if hypotheses is not None
        ]
    return answer


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


async def _refusal(_: Request, error: Exception) -> Response:
    """An error as LibreTranslate sends it."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    text = error.detail if isinstance(error, HTTPException) else str(error)
    return JSONResponse({"error": text}, status, headers)
