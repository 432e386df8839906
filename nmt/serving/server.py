"""How uvicorn serves the application."""

from __future__ import annotations

import logging
import socket

import uvicorn
from starlette.applications import Starlette

from nmt.errors import DataError

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}
"""What every answer says to browsers."""
_MOST_CONNECTIONS = 512
_SECONDS_TO_FINISH = 60


def bind(host: str, port: int) -> socket.socket:
    """A socket with this address, which takes no connections yet; port 0 is any free one. Raises DataError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where the protocol is named, asyncio switches off Nagle's algorithm, which would delay answers by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise DataError(
            f"Cannot listen on {host}, port {port}: {error.strerror}. Choose others with --host and --port."
        ) from None
    return listener


def configure(app: Starlette, *, access_log: bool) -> uvicorn.Config:
    """How uvicorn runs the application. It trusts the headers of proxies that `$FORWARDED_ALLOW_IPS` names."""
    if access_log:
        logging.getLogger("uvicorn.access").setLevel(logging.INFO)
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=access_log,
        server_header=False,
        headers=list(HEADERS.items()),
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
