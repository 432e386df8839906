"""Put the parts of the server together, and run it until a signal ends it."""

from __future__ import annotations

import socket
from collections.abc import Callable

from nmt.serving.app import App
from nmt.serving.batch_queue import Batcher
from nmt.serving.decoder_process import ProcessOptions, start_decoders
from nmt.serving.listening import HttpServer
from nmt.serving.metrics import ServiceMetrics
from nmt.serving.middleware import Access
from nmt.serving.service import Limits, Service
from nmt.serving.work import LineTask, Setting


def run_server(
    listener: socket.socket,
    decoding: ProcessOptions,
    *,
    processes: int,
    limits: Limits,
    access: Access,
    root_path: str,
    on_start: Callable[[], None],
) -> bool:
    """Load the models, then answer requests at a bound socket until a signal, and finish what was accepted.

    Returns:
        Whether Ctrl-C ended it.

    Raises:
        DataError: a model cannot be loaded.
        UsageError: the device or precision cannot be used.
    """
    decoders, description = start_decoders(decoding, processes)
    try:
        models, metrics = description.models, ServiceMetrics()

        def size(setting: Setting, task: LineTask) -> int:
            return task.size * (setting.beam_size or max(models[setting.model].beam_size, setting.n_best))

        def count(setting: Setting, lines: int, seconds: float) -> None:
            metrics.lines.labels(models[setting.model].id).inc(lines)
            metrics.batches.observe(lines)
            metrics.decoding.observe(seconds)

        batcher = Batcher([each.run for each in decoders], max_queue=limits.queue, size=size, on_batch=count)
        app = App(Service(models, batcher, limits, metrics), access, root_path=root_path)
        server = HttpServer(app.asgi(), timeout=limits.timeout, on_start=on_start, on_stop=app.stop)
        server.run(sockets=[listener])
        batcher.close(timeout=0 if server.force_exit else limits.timeout)
    finally:
        for decoder in decoders:
            decoder.close()
    return server.was_interrupted
