"""The ASGI application: routes of the API and of the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from nmt.runtime.wording import counted
from nmt.serving.bodies import read_input
from nmt.serving.drawings import Drawer
from nmt.serving.middleware import Access, Guard, error_response
from nmt.serving.openapi import openapi
from nmt.serving.pages import ASSETS, render_page
from nmt.serving.refusals import RefusedError
from nmt.serving.schemas import (
    PICTURES,
    DetectInput,
    HealthOutput,
    Picture,
    PictureInput,
    ScoreInput,
    TranslateInput,
)
from nmt.serving.service import Service
from nmt.text.languages import language_name

InputT = TypeVar("InputT", bound=BaseModel)
ResultT = TypeVar("ResultT")
Endpoint = Callable[[Request], Awaitable[Response]]

_BYTES_PER_CHARACTER = 12
"""A character takes at most 4 bytes of UTF-8, 12 as two `\\uXXXX` or percent-encoded."""
_BODY_OVERHEAD = 10_000
_BODY_SECONDS = 10.0


class App:
    """The endpoints, around one service."""

    def __init__(self, service: Service, access: Access, *, root_path: str = "") -> None:
        """Prepare it, for a proxy that shows the server at the root path, such as `/mt`, if there is one."""
        self._service, self._access, self._root_path = service, access, root_path
        self._drawer = Drawer(service)
        self._most_bytes = _BYTES_PER_CHARACTER * service.limits.characters + _BODY_OVERHEAD
        self._is_stopping = False

    def asgi(self) -> Guard:
        """The application for a server such as uvicorn."""
        routes = self._routes()
        app = Starlette(
            routes=[Route(path, endpoint, methods=methods) for path, methods, endpoint in routes],
            exception_handlers={RefusedError: _refused, HTTPException: _not_here, Exception: _failed},
            lifespan=self._lifespan,
        )
        app.router.redirect_slashes = False
        shared = CORSMiddleware(
            app,
            allow_origins=self._access.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
            expose_headers=["Retry-After"],
        )
        return Guard(
            shared if self._access.origins else app,
            self._access,
            self._service.metrics,
            [path for path, _, _ in routes],
            root_path=self._root_path,
        )

    def stop(self) -> None:
        """Say in `/health` that no more connections are taken."""
        self._is_stopping = True

    def _routes(self) -> list[tuple[str, list[str], Endpoint]]:
        pictures = [(f"/alignment.{form}", ["POST"], self._picture(form)) for form in PICTURES]
        assets = [(f"/static/{name}", ["GET"], _asset(name)) for name in ASSETS]
        return [
            ("/", ["GET", "POST"], self._page),
            ("/translate", ["POST"], self._translate),
            ("/score", ["POST"], self._score),
            ("/detect", ["POST"], self._detect),
            ("/languages", ["GET"], self._languages),
            ("/models", ["GET"], self._models),
            ("/health", ["GET"], self._health),
            ("/frontend/settings", ["GET"], self._settings),
            ("/metrics", ["GET"], self._metrics),
            ("/openapi.json", ["GET"], self._openapi),
            ("/spec", ["GET"], self._openapi),
            ("/suggest", ["POST"], _no_suggestions),
            *pictures,
            *assets,
        ]

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self._drawer.close()

    # --- the API ----------------------------------------------------------------------------------------------------

    async def _translate(self, request: Request) -> Response:
        item = await self._read(request, TranslateInput)
        request.scope["nmt"].update(characters=sum(map(len, item.texts)), texts=len(item.texts))
        answer = await _unless_gone(request, self._service.translate(item))
        request.scope["nmt"]["model"] = answer.model
        # Figures and alignments may be null, but parts that were not asked for are left out.
        return _json({name: value for name, value in answer if value is not None})

    async def _score(self, request: Request) -> Response:
        item = await self._read(request, ScoreInput)
        request.scope["nmt"].update(characters=len(item.q) + len(item.translation))
        return _json(await _unless_gone(request, self._service.score(item)))

    async def _detect(self, request: Request) -> Response:
        item = await self._read(request, DetectInput)
        return _json(self._service.detect(item))

    async def _languages(self, _: Request) -> Response:
        return _json(self._service.languages())

    async def _models(self, _: Request) -> Response:
        return _json(self._service.models)

    async def _health(self, _: Request) -> Response:
        return _json(HealthOutput(status="stopping" if self._is_stopping else "ok"))

    async def _settings(self, _: Request) -> Response:
        first = self._service.languages()[0]
        target = first.targets[0]
        return _json(
            {
                "charLimit": self._service.limits.characters,
                "frontendTimeout": 500,
                "apiKeys": self._access.api_key is not None,
                "keyRequired": self._access.api_key is not None,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {
                    "source": {"code": first.code, "name": first.name},
                    "target": {"code": target, "name": language_name(target)},
                },
            }
        )

    async def _metrics(self, request: Request) -> Response:
        self._access.check_key(_header_key(request))
        text, media_type = self._service.metrics.exposition(request.headers.get("accept", ""))
        return Response(text, media_type=media_type)

    async def _openapi(self, _: Request) -> Response:
        return _json(openapi(self._service.models, self._root_path))

    def _picture(self, form: Picture) -> Endpoint:
        async def draw(request: Request) -> Response:
            item = await self._read(request, PictureInput)
            content, media_type = await _unless_gone(request, self._drawer.draw(item, form))
            disposition = {"content-disposition": f'attachment; filename="alignment.{form}"'}
            return Response(content, media_type=media_type, headers=disposition)

        return draw

    # --- the page ---------------------------------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        return await self._form(request) if request.method == "POST" else self._html()

    async def _form(self, request: Request) -> Response:
        """The page with a translation in it, for browsers without JavaScript."""
        text, model = "", None
        try:
            item = await self._read(request, TranslateInput)
            text, model = item.texts[0], item.model
            answer = await _unless_gone(request, self._service.translate(item))
        except RefusedError as error:
            return self._html(text=text, model=model, problem=error)
        return self._html(text=text, model=model, translation=str(answer.translatedText))

    def _html(
        self, *, text: str = "", model: str | None = None, translation: str = "", problem: RefusedError | None = None
    ) -> Response:
        page = render_page(
            self._service.models,
            characters=self._service.limits.characters,
            needs_key=self._access.api_key is not None,
            text=text,
            model=model,
            translation=translation,
            problem=str(problem or ""),
        )
        headers = {"retry-after": str(problem.retry_after)} if problem and problem.retry_after else {}
        status = 200 if problem is None else problem.status
        return Response(page.encode("utf-8", "replace"), status, headers, "text/html; charset=utf-8")

    # --- reading a request ------------------------------------------------------------------------------------------

    async def _read(self, request: Request, kind: type[InputT]) -> InputT:
        """The checked body. Raises RefusedError, also for a wrong key."""
        body = await self._body(request, self._most_bytes)
        item = read_input(kind, request.scope["query_string"], request.headers.get("content-type", ""), body)
        self._access.check_key(_header_key(request) or getattr(item, "api_key", None))
        return item

    async def _body(self, request: Request, most_bytes: int) -> bytes:
        """The body, within its limits of size and time."""
        too_long = RefusedError(413, f"The request is longer than {counted(most_bytes, 'byte')}.")
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most_bytes:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most_bytes:
                        raise too_long
        except TimeoutError:
            raise RefusedError(408, f"The request took longer than {_BODY_SECONDS:g} s to arrive.") from None
        except ClientDisconnect:
            raise RefusedError(400, "The request is incomplete.") from None
        return bytes(body)


async def _unless_gone(request: Request, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """The result of a coroutine, which is cancelled if the client leaves meanwhile."""
    work = asyncio.ensure_future(coroutine)
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise RefusedError(499, "The client has left.")
        return work.result()
    finally:
        for task in (work, leaving):
            task.cancel()


def _header_key(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    key = request.headers.get("x-api-key") or (token.strip() if scheme.lower() == "bearer" else None)
    return None if key is None else key.encode("latin-1").decode("utf-8", "replace")  # as Starlette decodes headers


def _json(content: object) -> Response:
    return Response(to_json(content), media_type="application/json")


def _asset(name: str) -> Endpoint:
    content, media_type = ASSETS[name]

    async def answer(_: Request) -> Response:
        return Response(content, media_type=media_type, headers={"cache-control": "no-cache"})

    return answer


async def _no_suggestions(_: Request) -> Response:
    raise RefusedError(403, "Suggestions are disabled on this server.")


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error_response(error)


async def _not_here(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    texts = {404: "There is nothing here.", 405: "This address takes another method."}
    response = error_response(RefusedError(error.status_code, texts.get(error.status_code, "The request failed.")))
    response.headers.update(error.headers or {})  # `Allow`
    return response


async def _failed(_: Request, __: Exception) -> Response:
    """The answer to a request that failed; the guard logs the error."""
    return error_response(RefusedError(500, "The server failed: its log says where."))
