"""`nmt serve`."""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.allocation import keep_freed_memory, keep_kernels
from nmt.cli.options import Device, Precision, Quiet, argument, log_to_stderr, machine_option, option
from nmt.cli.streams import open_input, text_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.wording import counted

_limit_option = partial(option, panel="Limits")
_KEY = "NMT_API_KEY"
_MOST_PROCESSES = 4
"""Processes by default, if there are more cores: each has a copy of the models."""
_LONGEST_BATCH = 60.0
"""Least seconds after which a batch is given up."""
_INTERRUPTED = 130


def serve(
    models: Annotated[list[Path], argument("Models, to choose from and compare.", "MODEL", default=False)],
    host: Annotated[str, option("Address to listen on.", "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, option("Port; 0 is any free one.", "N", min=0, max=65535)] = 5000,
    allow_host: Annotated[
        list[str] | None,
        option("Also answer to this host name; may be repeated.", "NAME", default="all but on a loopback address"),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, option("Also answer to pages of this site; * is any; may be repeated.", "URL", default="none")
    ] = None,
    root_path: Annotated[str, option("Path where a proxy shows the server.", "PATH", default="none")] = "",
    api_key_file: Annotated[
        Path | None, option(f"API key that requests must name; or ${_KEY}.", "FILE", default="none")
    ] = None,
    max_characters: Annotated[int, _limit_option("Characters per request.", "N", min=1, max=1000000)] = 5000,
    max_queue: Annotated[int, _limit_option("Lines that wait.", "N", min=1, max=1000000)] = 1000,
    max_requests: Annotated[
        int | None, _limit_option("Requests per minute and client.", "N", default="no limit", min=1)
    ] = None,
    timeout: Annotated[float, _limit_option("Time per request.", "SECONDS", min=0.1, max=3600)] = 30.0,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Annotated[
        int | None,
        machine_option(
            "Processes that decode, with one thread and a copy of the models each.",
            "N",
            default=f"one per core, at most {_MOST_PROCESSES}",
            min=1,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Serve models: a page that translates as you type, and an HTTP API.

    Examples:
      nmt serve runs/bahdanau
      nmt serve runs/bahdanau runs/luong --port 8000 --api-key-file key.txt

    Details:

    Needs `pip install "attentional-nmt[serve]"`. The page shows alternatives and alignments, and compares two models; each pair
    of languages of a model counts as one. The API is that of LibreTranslate (POST /translate, GET /languages) with n_best,
    beam_size and alignment. GET /openapi.json describes it, GET /metrics is for Prometheus, GET /health for a load balancer.

    A beam above 5, or above the recipe's, is for texts that are as much shorter than --max-characters. Requests beyond
    --max-queue get status 503 with Retry-After. Ctrl-C or SIGTERM finishes what was accepted, and tells clients to close their
    connections. The log on stderr has one JSON object per request, without texts; it leaves lines out while nobody reads it,
    and counts them.

    Programs and the page itself need no option; pages of other sites need --allow-origin, and those opened from files need it
    as *. There is no encryption: beyond this machine, use a proxy, which may cut --root-path off or leave it. A proxy on this
    machine names its clients by X-Forwarded-For.
    """
    log_to_stderr(quiet=quiet)
    try:
        from nmt.serving.listening import bind
    except ModuleNotFoundError as error:
        raise UsageError(f'`nmt serve` needs the package {error.name}: pip install "attentional-nmt[serve]".') from None
    from nmt.runtime.cores import at_most_cores, usable_cores
    from nmt.serving.decoder_process import ProcessOptions
    from nmt.serving.middleware import LOOPBACK, Access
    from nmt.serving.request_log import write_log
    from nmt.serving.running import run_server
    from nmt.serving.service import Limits
    from nmt.serving.work import EngineOptions

    path, origins = _root_path(root_path), tuple(map(_origin, allow_origin or []))
    access = Access(_hosts(host, allow_host or [], LOOPBACK), _api_key(api_key_file), origins, max_requests)
    engine = EngineOptions.of(models, device, precision)
    keep_kernels()
    with bind(host, port) as listener:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"

        def announce() -> None:
            write_log(logging.ERROR if quiet else logging.INFO)
            message = f"nmt: serving {counted(len(models), 'model')} on {address} (Ctrl-C stops)"
            with suppress(OSError):  # a full disk does not end the server
                print(message, file=sys.stderr, flush=True)

        was_interrupted = run_server(
            listener,
            ProcessOptions(engine, timeout=max(4 * timeout, _LONGEST_BATCH), prepare=keep_freed_memory),
            processes=min(usable_cores(), _MOST_PROCESSES) if threads is None else at_most_cores(threads),
            limits=Limits(max_characters, max_queue, timeout),
            access=access,
            root_path=path,
            on_start=announce,
        )
        if was_interrupted:
            raise typer.Exit(_INTERRUPTED)


def _hosts(host: str, extra: list[str], loopback: tuple[str, ...]) -> tuple[str, ...] | None:
    """The host names to answer to; None for all, which is for addresses that other machines reach."""
    if host not in loopback:
        return (host, *loopback, *extra) if extra else None
    return (*loopback, *(name.lower() for name in extra))


def _origin(url: str) -> str:
    """A site as browsers name it. Raises UsageError."""
    origin = url.lower().removesuffix("/")
    if url != "*" and not re.fullmatch(r"https?://[^/?#@\s]+", origin):
        raise UsageError(f"--allow-origin {url} is no site: name one as https://example.org, or * for any.")
    return origin


def _root_path(path: str) -> str:
    """The path without a slash at its end. Raises UsageError."""
    if path and not re.fullmatch(r"/([^/?#\s][^?#\s]*)?", path):
        raise UsageError(f"--root-path {path} is no path: name one as /mt.")
    return path.rstrip("/")


def _api_key(path: Path | None) -> str | None:
    """The key: the first line of the file, else the environment's. Raises DataError."""
    if path is None:
        return os.environ.get(_KEY) or None
    with open_input(path) as stream:
        key = next(iter(text_lines(stream, path)), "").strip()
    if not key:
        raise DataError(f"{path} has no key: its first line must be the API key.")
    return key
