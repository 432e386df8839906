"""`nmt serve`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from nmt.cli.options import Device, Precision, Quiet, argument, machine_option, option, set_up
from nmt.errors import UsageError
from nmt.runtime.wording import counted

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def serve(
    models: Annotated[list[Path], argument("Models, to choose from and compare.", "MODEL")],
    host: Annotated[str, option("Address to listen on.", "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, option("Port; 0 is any free one.", "N", min=0, max=65535)] = 5000,
    max_characters: Annotated[int, option("Characters per request.", "N", min=1, max=1000000)] = 5000,
    max_queue: Annotated[int, option("Requests that wait.", "N", min=1, max=100000)] = 100,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Annotated[int, machine_option("CPU threads.", "N", min=1)] = 1,
    quiet: Quiet = False,
) -> None:
    """Serve models: a page that translates as you type, and an HTTP API.

    Examples:
      nmt serve runs/bahdanau
      NMT_API_KEY=secret nmt serve runs/bahdanau runs/luong --port 8000

    Details:

    Needs `pip install "attentional-nmt[serve]"`. The page shows alternatives and alignments, and compares two models; each pair
    of languages of a model counts as one. The API is that of LibreTranslate for plain text: POST /translate, also with n_best,
    beam_size and alignment, POST /detect (extra `langid`), GET /languages, GET /health.

    If $NMT_API_KEY is set, requests must name it as their API key.

    Requests are decoded in batches, one batch at a time, so their length is limited; with a beam above 5, or above the recipe's, they
    must be as much shorter. Requests beyond --max-queue get status 503. Ctrl-C or SIGTERM finishes what was accepted.

    On a loopback address the server answers to this machine alone. There is no encryption: beyond this machine, use a proxy such
    as nginx, which may show the page below any path. It limits clients, adds headers and writes logs too.
    """
    try:
        import uvicorn

        from nmt.serving.server import bind, configure
    except ModuleNotFoundError as error:
        raise UsageError(f'`nmt serve` needs the package {error.name}: pip install "attentional-nmt[serve]".') from None
    from nmt.serving.app import App
    from nmt.serving.engine import Engine, Setting
    from nmt.serving.worker import Worker

    set_up(quiet=quiet, threads=threads)
    with bind(host, port) as listener:
        engine = Engine(models, device=device, precision=precision)
        with Worker(engine.run, max_queue=max_queue) as worker:
            for model in range(len(engine.models)):
                worker.submit(Setting(model), ["a"]).result()  # the first line compiles kernels and fills caches
            hosts = (*_LOOPBACK, "[::1]") if host in _LOOPBACK else None
            app = App(
                engine.models,
                worker,
                max_characters=max_characters,
                api_key=os.environ.get("NMT_API_KEY") or None,
                hosts=hosts,
            )
            listener.listen()
            address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
            print(
                f"nmt: serving {counted(len(models), 'model')} on {address} (Ctrl-C stops)", file=sys.stderr, flush=True
            )
            uvicorn.Server(configure(app.asgi, access_log=not quiet)).run(sockets=[listener])
