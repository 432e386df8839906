"""A server whose models are a function: words in reverse, so that tests know every answer and need no trained model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from nmt.alignment.extraction import AlignedPair
from nmt.alignment.links import argmax_links
from nmt.alignment.weights import Alignment
from nmt.serving.app import App
from nmt.serving.engine import NextWord, ServedHypothesis, ServedModel, Setting, Task
from nmt.serving.worker import Run, Worker

MODELS = (
    ServedModel("one", "en", "de", has_attention=True, beam_size=1),
    ServedModel("two", "en", "de", has_attention=True, beam_size=1),
    ServedModel("plain", "en", "fr", has_attention=False, beam_size=1),
)


def decode(setting: Setting, tasks: Sequence[Task]) -> list[list[ServedHypothesis]]:
    """The words in reverse, after a prefix; alternative n has the suffix `-n`. The second model shouts. A posterior has no doubts.

    None knows an umbrella.
    """
    return [_hypotheses(setting, task) for task in tasks]


def _hypotheses(setting: Setting, task: Task) -> list[ServedHypothesis]:
    line, given = (task, "") if isinstance(task, str) else task
    if setting.is_scored:
        return [_hypothesis(setting, line, given, -5.0)]
    words = given + " ".join(reversed(line.split()))
    text = words.upper() if setting.model == 1 else words
    texts = [text, *(f"{text}-{rank}" for rank in range(1, setting.n_best))]
    return [_hypothesis(setting, line, text, -0.25 - rank, is_continued=bool(given)) for rank, text in enumerate(texts)]


def _hypothesis(
    setting: Setting, source: str, target: str, score: float, *, is_continued: bool = False
) -> ServedHypothesis:
    is_aligned = setting.is_aligned and MODELS[setting.model].has_attention
    pair = _pair(source, target, 1.0 if setting.posterior else 0.8) if is_aligned else None
    unknown = "☂" if "☂" in source else ""
    next_word = NextWord(target.split()[1], 0.5) if is_continued else None
    return ServedHypothesis(target, score, 2 * score, len(target.split()) + 1, pair, unknown, next_word)


def _pair(source: str, target: str, peak: float) -> AlignedPair:
    sides = tuple(source.split()), tuple(target.split())
    weights = np.full((len(sides[1]), len(sides[0])), (1 - peak) / max(len(sides[0]) - 1, 1))
    for row in range(min(weights.shape)):
        weights[row, weights.shape[1] - 1 - row] = peak
    return AlignedPair(Alignment(weights, *sides), argmax_links(weights), weights)


class Held:
    """A function that decodes once it may, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[Setting, list[Task]]] = []
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self, setting: Setting, tasks: Sequence[Task]) -> list[list[ServedHypothesis]]:
        self.batches.append((setting, list(tasks)))
        self.entered.set()
        assert self.open.wait(20)
        return decode(setting, tasks)


@contextmanager
def client_of(
    run: Run = decode, *, models: Sequence[ServedModel] = MODELS, max_queue: int = 100, **options: Any
) -> Iterator[TestClient]:
    """A client of an application around a function."""
    with Worker(run, max_queue=max_queue) as worker:
        yield TestClient(App(models, worker, **options).asgi, base_url="http://localhost:5000")


def wait_until(holds: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)
