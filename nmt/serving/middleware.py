"""What every request passes: checks of its origin, security headers, a log line without texts, metrics, and errors as JSON."""

from __future__ import annotations

import hmac
import json
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response

from nmt.serving.metrics import ServiceMetrics
from nmt.serving.rates import RequestRates
from nmt.serving.refusals import RefusedError
from nmt.serving.request_log import logger

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without any, a form of the page itself would have the origin `null`
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Access:
    """Who may use the server.

    Attributes:
        hosts: host names it answers to, None for all. Without the check a page of another site could have its own name
            point here, and read answers (DNS rebinding).
        api_key: what requests must name; None for nothing.
        origins: sites whose pages may use the server, as `https://example.org`, or `*`.
        requests: most requests per minute and client; None for no limit.
    """

    hosts: tuple[str, ...] | None = LOOPBACK
    api_key: str | None = None
    origins: tuple[str, ...] = ()
    requests: int | None = None

    def check_key(self, key: str | None) -> None:
        """Raise RefusedError unless the key is right. The comparison takes the same time wherever they differ."""
        if self.api_key is None:
            return
        if key is None:
            raise RefusedError(403, "This server needs an API key: send it as api_key, or as header X-API-Key.")
        if not hmac.compare_digest(key.encode("utf-8", "replace"), self.api_key.encode()):
            raise RefusedError(403, "Invalid API key.")

    def check_host(self, host: str | None) -> None:
        """Raise RefusedError for another host name."""
        name = _host_name(f"//{host}") if host else None
        if self.hosts is not None and name not in self.hosts:
            raise RefusedError(421, f"This server answers to {self.hosts[0]} only: --allow-host adds a name.")

    def check_origin(self, headers: Headers) -> None:
        """Raise RefusedError for what a page of another site sends, unless it may."""
        origin = headers.get("origin", "")
        if not _is_page(origin) or origin in self.origins or "*" in self.origins:
            return
        # As only browsers can say, also where a proxy changes the host:
        if headers.get("sec-fetch-site") == "same-origin":
            return
        if origin.partition("://")[2] != headers.get("host"):
            raise RefusedError(403, "Pages of other sites may not use this server: --allow-origin adds a site.")


def _is_page(origin: str) -> bool:
    """Whether the origin is that of a page; a browser's extension has another scheme."""
    return origin.partition("://")[0].lower() in ("http", "https", "null")


def _host_name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self, app: ASGIApp, access: Access, metrics: ServiceMetrics, paths: Sequence[str], *, root_path: str = ""
    ) -> None:
        self._app, self._access, self._metrics, self._paths = app, access, metrics, frozenset(paths)
        self._root_path = root_path
        self._rates = RequestRates(access.requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        path = scope["path"]
        scope = {**scope, "path": self._route(path)}
        facts: dict[str, Any] = {}
        scope["nmt"] = facts
        try:
            self._check(scope)
            if self._root_path and path == self._root_path:  # the page's links are relative
                await RedirectResponse(f"{path}/", 308)(scope, receive, send_guarded)
                return
            await self._app(scope, receive, send_guarded)
        except RefusedError as error:
            await error_response(error)(scope, receive, send_guarded)
        except Exception as error:  # noqa: BLE001 -- answered by the application; one request must not end the server
            logger.error("failed", extra={"facts": _place(error)})
        finally:
            self._record(scope, status, time.monotonic() - started, facts)

    def _route(self, path: str) -> str:
        """The path as the server knows it, whether or not the proxy has cut the root path off."""
        if path == self._root_path or path.startswith(f"{self._root_path}/"):
            path = path.removeprefix(self._root_path)
        return path.rstrip("/") or "/"

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        self._access.check_host(headers.get("host"))
        if scope["method"] == "POST":
            self._access.check_origin(headers)
            self._rates.count(scope["client"][0] if scope.get("client") else "")

    def _record(self, scope: Scope, status: int, seconds: float, facts: dict[str, Any]) -> None:
        path = facts.pop("path", scope["path"] if scope["path"] in self._paths else "other")
        self._metrics.requests.labels(path, status or "gone").inc()
        self._metrics.seconds.labels(path).observe(seconds)
        client = scope["client"][0] if scope.get("client") else None
        known = {"client": client, "method": scope["method"][:10], "path": path, "status": status or None}
        logger.info("request", extra={"facts": {**known, "ms": round(1000 * seconds, 1), **facts}})


def error_response(error: RefusedError) -> Response:
    """An error as LibreTranslate sends it. The connection is closed where the request may not have been read to its end."""
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    if error.status in (408, 413, 421, 429):
        headers["connection"] = "close"
    body = json.dumps({"error": str(error)}, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, error.status, headers, "application/json")


def _place(error: Exception) -> dict[str, Any]:
    """Kind and place of an error; its message might quote a text."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return {"error": type(error).__name__, "at": [f"{frame.name}:{frame.lineno}" for frame in frames]}
