"""The thread that batches requests, around a function."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from nmt.serving.engine import ServedHypothesis, Setting, Task
from nmt.serving.worker import Worker
from tests.serving.fakes import Held, decode, wait_until

ONE, TWO = Setting(0), Setting(1)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.open.set()


def busy(worker: Worker, held: Held) -> None:
    """Occupy a worker with a task of its own."""
    worker.submit(ONE, ["x"])
    assert held.entered.wait(10)


def texts(future: "Future[list[list[ServedHypothesis]]]") -> list[str]:
    return [best.text for best, *_ in future.result(10)]


@pytest.mark.parametrize(
    ("requests", "batches"),
    [
        ([(ONE, ["a"]), (TWO, ["b"]), (ONE, ["c", "d"]), (TWO, ["e"])], [(ONE, ["a", "c", "d"]), (TWO, ["b", "e"])]),
        ([(ONE, ["a" * 5000]), (ONE, ["b" * 5000]), (ONE, ["c"])], [(ONE, ["a" * 5000]), (ONE, ["b" * 5000, "c"])]),
        ([(ONE, ["a" * 9000]), (ONE, ["b"])], [(ONE, ["a" * 9000]), (ONE, ["b"])]),
    ],
    ids=["one setting", "a bounded size", "a large request alone"],
)
def test_what_accumulates_is_decoded_in_batches(held: Held, requests: Any, batches: Any) -> None:
    with Worker(held) as worker:
        busy(worker, held)
        futures = [worker.submit(setting, tasks) for setting, tasks in requests]
        held.open.set()
        results = [texts(future) for future in futures]
    for (setting, tasks), result in zip(requests, results, strict=True):
        assert result == [best.text for best, *_ in decode(setting, tasks)]
    assert held.batches[1:] == batches


def test_a_request_that_fails_does_not_fail_others() -> None:
    held = Held()

    def fail(setting: Setting, tasks: Sequence[Task]) -> list[list[ServedHypothesis]]:
        results = held(setting, tasks)
        if "bad" in tasks:
            raise ValueError("bad task")
        return results

    with Worker(fail) as worker:
        busy(worker, held)
        good, bad, fine = (worker.submit(ONE, [text]) for text in ("a b", "bad", "c"))
        held.open.set()
        assert texts(good) + texts(fine) == ["b a", "c"]
        with pytest.raises(ValueError, match="bad task"):
            bad.result(10)


def test_closing_finishes_what_was_accepted(held: Held) -> None:
    worker = Worker(held)
    busy(worker, held)
    future = worker.submit(TWO, ["a b"])
    closing = threading.Thread(target=worker.__exit__)
    closing.start()
    wait_until(lambda: worker._is_closed)
    assert closing.is_alive()
    held.open.set()
    closing.join(10)
    assert texts(future) == ["B A"]
