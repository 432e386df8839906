"""A server whose models are a function: words in reverse, so that tests know every answer and need no torch."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np

from nmt.alignment.extraction import AlignedPair
from nmt.alignment.links import argmax_links
from nmt.alignment.weights import Alignment
from nmt.serving.app import App
from nmt.serving.batch_queue import Batcher
from nmt.serving.listening import HttpServer, bind
from nmt.serving.metrics import ServiceMetrics
from nmt.serving.middleware import Access
from nmt.serving.service import Limits, Service
from nmt.serving.work import LineResult, LineTask, ModelDescription, ScoredLine, Setting

MODELS = (
    ModelDescription("one", "one", "en", "de", alignment=True, beam_size=1, parameters=10),
    ModelDescription("two", "two", "en", "de", alignment=True, beam_size=1, parameters=20),
    ModelDescription("plain", "plain", "en", "fr", alignment=False, beam_size=1, parameters=30),
)
TOO_LONG = "too-long"
Decode = Callable[[Setting, Sequence[LineTask]], Sequence[LineResult]]


def decode(setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
    """The words in reverse; alternative n has the suffix `-n`. The second model shouts. A posterior has no doubts."""
    return [_answer(setting, task) for task in tasks]


def _answer(setting: Setting, task: LineTask) -> LineResult:
    if setting.kind == "score":
        return () if TOO_LONG in task.source else (_line(task, task.target, -5.0, setting),)
    words = " ".join(reversed(task.source.split()))
    text = words.upper() if setting.model == 1 else words
    texts = [text, *(f"{text}-{rank}" for rank in range(1, setting.n_best))]
    return tuple(_line(task, each, -0.25 - rank, setting) for rank, each in enumerate(texts))


def _line(task: LineTask, text: str, score: float, setting: Setting) -> ScoredLine:
    peak = 1.0 if (setting.kind, setting.weights) == ("score", "posterior") else 0.8
    pair = _pair(task.source, text, peak) if task.aligned and MODELS[setting.model].alignment else None
    return ScoredLine(text, score, 2 * score, len(text.split()) + 1, pair)


def _pair(source: str, target: str, peak: float) -> AlignedPair:
    sides = tuple(source.split()), tuple(target.split())
    weights = np.full((len(sides[1]), len(sides[0])), (1 - peak) / max(len(sides[0]) - 1, 1))
    for row in range(min(weights.shape)):
        weights[row, weights.shape[1] - 1 - row] = peak
    return AlignedPair(Alignment(weights, *sides), argmax_links(weights), weights)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    port: int
    server: HttpServer
    batcher: Batcher

    def ask(
        self, path: str, content: object = None, *, body: bytes | None = None, method: str | None = None, **headers: str
    ) -> Answer:
        """A request: JSON, a form (for a list of pairs), bytes, or none."""
        kind = {}
        if isinstance(content, list):
            body, kind = urlencode(content).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
        elif content is not None:
            body, kind = json.dumps(content).encode(), {"Content-Type": "application/json"}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, {**kind, **names})
            response = connection.getresponse()
            read = response.read()
            return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, read)
        finally:
            connection.close()

    def translate(self, q: object, **fields: object) -> Any:
        """The answer to a translation that must succeed."""
        answer = self.ask("/translate", {"q": q, "source": "en", "target": "de", **fields})
        assert answer.status == 200, answer.body
        return answer.json


@contextmanager
def serving(
    decoders: Sequence[Decode] = (decode,),
    *,
    models: Sequence[ModelDescription] = MODELS,
    limits: Limits | None = None,
    access: Access | None = None,
    root_path: str = "",
) -> Iterator[Running]:
    """A server in a thread; at the end it must stop."""
    limits = limits or Limits()
    batcher = Batcher(decoders, size=lambda _, task: task.size, on_batch=lambda *_: None, max_queue=limits.queue)
    app = App(Service(models, batcher, limits, ServiceMetrics()), access or Access(), root_path=root_path)
    server = HttpServer(app.asgi(), timeout=5, on_stop=app.stop)
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield Running(port, server, batcher)
        finally:
            server.should_exit = True
            thread.join(20)
            batcher.close(5)
    assert not thread.is_alive()


def wait_until(holds: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)
