"""The HTTP server: uvicorn with bounds on connections and on slow clients, and a stop that finishes what it accepted."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.errors import DataError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MOST_CONNECTIONS = 512
_SECONDS_FOR_HEADERS = 10.0
_SECONDS_TO_READ = 30.0
"""How long a client may leave an answer unread."""
_KEEP_ALIVE = 30
_SECONDS_FOR_LAST_REQUEST = 1.0
"""How long a connection without a request stays open once the server stops: one may be on its way."""
_LAST_ANSWER = (b"connection", b"close")
_BACKLOG = 128
_TOO_MANY = b'{"error": "The server has too many connections."}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_TOO_MANY), _TOO_MANY)
)


class BoundedProtocol(H11Protocol):
    """An HTTP/1.1 connection that is closed if its client is slow to send headers or to read answers."""

    _headers_due: asyncio.TimerHandle | None = None
    _reading_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(_BUSY)
            transport.close()
        else:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._end_timers(headers=True, reading=True)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read data; once a request has begun, its headers must arrive in time."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect_headers()
        else:
            self._end_timers(headers=True)

    def shutdown(self) -> None:
        """Say in the answer that it is the last one; without a request, wait a moment for one that may be on its way."""
        if self._is_unused:
            self.loop.call_later(_SECONDS_FOR_LAST_REQUEST, self._close_if_unused)
        else:
            self.cycle.default_headers = self.server_state.default_headers
            super().shutdown()

    @property
    def _is_unused(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_if_unused(self) -> None:
        if self._is_unused and not self.transport.is_closing():
            super().shutdown()

    def pause_writing(self) -> None:
        """The client does not read: end the connection unless it does soon."""
        super().pause_writing()
        if self._reading_due is None:
            self._reading_due = self.loop.call_later(_SECONDS_TO_READ, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        self._end_timers(reading=True)
        super().resume_writing()

    def _expect_headers(self) -> None:
        if self._headers_due is None and not self.transport.is_closing():
            self._headers_due = self.loop.call_later(_SECONDS_FOR_HEADERS, self.transport.abort)

    def _end_timers(self, *, headers: bool = False, reading: bool = False) -> None:
        if headers and self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None
        if reading and self._reading_due is not None:
            self._reading_due.cancel()
            self._reading_due = None


def bind(host: str, port: int) -> socket.socket:
    """A socket with this address, which takes no connections yet; port 0 is any free one. Raises DataError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        # Only where the protocol is named, asyncio switches off Nagle's algorithm, which would delay answers by 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
        except BaseException:
            listener.close()
            raise
        return listener
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"Cannot listen on {host}, port {port}: {reason}. Choose others with --host and --port."
        ) from None


class HttpServer(uvicorn.Server):
    """Serves until a signal: the first one finishes what was accepted, a second one ends at once."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        timeout: float,
        on_start: Callable[[], None] = lambda: None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Configure it. `timeout` is in seconds, and for what was accepted before the signal."""
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=True,  # a proxy on this machine says who the client is
            forwarded_allow_ips=["127.0.0.1", "::1"],
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=max(int(timeout), 1),
        )
        super().__init__(config)
        self.was_interrupted = False
        """Whether it was Ctrl-C that ended it."""
        self._on_start, self._on_stop = on_start, on_stop

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM, and restore their handlers afterwards."""
        try:
            previous = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread, which alone gets signals
            yield
            return
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; at a second signal without waiting."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.was_interrupted |= sig == signal.SIGINT

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections."""
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections and finish the open ones."""
        self._on_stop()
        self.server_state.default_headers = [*self.server_state.default_headers, _LAST_ANSWER]
        await super().shutdown(sockets)
