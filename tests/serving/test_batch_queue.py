"""The queue alone, with decoders that are functions."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest

from nmt.serving.batch_queue import Batcher
from nmt.serving.refusals import RefusedError
from tests.serving.fakes import wait_until

Make = Callable[..., Any]
Batch = tuple[str, list[int]]


class Gate:
    """A decoder that doubles numbers once it may, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.entered, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, setting: str, tasks: Sequence[int]) -> list[int]:
        self.batches.append((setting, list(tasks)))
        self.entered.release()
        assert self.open.acquire(timeout=10)
        return double(setting, tasks)

    def await_entry(self) -> None:
        assert self.entered.acquire(timeout=10)


def double(_: str, tasks: Sequence[int]) -> list[int]:
    if -1 in tasks:
        raise ValueError("bad task")
    return [2 * task for task in tasks]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def batcher(gate: Gate) -> Iterator[Make]:
    """Makes batchers whose settings are strings and whose tasks are numbers of a size as large; at the end they close."""
    made: list[Any] = []

    def make(*decoders: object, **options: object) -> Any:
        options = {"size": lambda _, task: max(task, 1), "on_batch": lambda *_: None, **options}
        made.append(Batcher(decoders, **options))  # type: ignore[arg-type] # it does not look into settings and tasks
        return made[-1]

    yield make
    gate.open.release(100)
    for batcher in made:
        assert batcher.close(10)
        assert batcher.waiting == 0


@pytest.fixture
def busy(batcher: Make, gate: Gate) -> Make:
    """Makes batchers whose quick decoder is occupied with a task of its own."""

    def make(**options: object) -> Any:
        queue = batcher(gate, **options)
        queue.submit("s", [0])
        gate.await_entry()
        return queue

    return make


def test_a_lone_task_is_decoded_at_once(batcher: Make) -> None:
    queue = batcher(double)
    assert queue.submit("s", [3, 4]).result(10) == [6, 8]
    assert queue.submit("s", []).result(0) == []


@pytest.mark.parametrize(
    ("options", "requests", "batches"),
    [
        ({"max_batch": 5}, [("s", [1, 2, 3, 4]), ("s", [10, 20]), ("s", [100])], [("s", [1, 10, 100, 2, 20]), ("s", [3, 4])]),
        ({}, [("a", [1]), ("b", [2]), ("a", [3]), ("b", [4])], [("a", [1, 3]), ("b", [2, 4])]),
        ({"max_batch": 2}, [("a", [1, 2, 3, 4]), ("b", [9])], [("a", [1, 2]), ("b", [9]), ("a", [3, 4])]),
        ({"max_size": 10}, [("s", [5, 4, 1, 5, 3, 3])], [("s", [5, 4, 1]), ("s", [5, 3]), ("s", [3])]),
    ],
    ids=["one task of each request in turn", "one setting", "those that had a turn go behind", "a bounded size"],
)  # fmt: skip
def test_what_accumulates_is_decoded_in_batches(
    busy: Make, gate: Gate, options: dict[str, int], requests: list[Batch], batches: list[Batch]
) -> None:
    queue = busy(**options)
    futures = [queue.submit(setting, tasks) for setting, tasks in requests]
    gate.open.release(10)
    assert [future.result(10) for future in futures] == [double(*request) for request in requests]
    assert gate.batches[1:] == batches


def test_decoders_share_what_waits(batcher: Make) -> None:
    gates = Gate(), Gate()
    queue = batcher(*gates)
    for _ in gates:
        queue.submit("s", [0])
    for gate in gates:
        gate.await_entry()
    future = queue.submit("s", list(range(1, 41)))
    for gate in gates:
        gate.open.release(10)
    assert len(future.result(10)) == 40
    sizes = [len(tasks) for gate in gates for _, tasks in gate.batches]
    assert sum(sizes) == 42
    assert max(sizes) <= 21


def test_a_full_queue_refuses_and_says_when_to_come_back(busy: Make) -> None:
    queue = busy(max_queue=3)
    queue.submit("s", [1, 2])
    with pytest.raises(RefusedError, match="busy") as refusal:
        queue.submit("s", [3, 4])
    assert refusal.value.retry_after is not None
    assert 1 <= refusal.value.retry_after <= 60
    assert queue.submit("s", [3])
    assert queue.waiting == 3


def test_a_withdrawn_request_leaves_the_queue(busy: Make, gate: Gate) -> None:
    queue = busy(max_queue=3)
    leaving, staying = queue.submit("s", [1, 2]), queue.submit("s", [3])
    assert leaving.cancel()
    assert queue.waiting == 1
    assert queue.submit("s", [4, 5])
    gate.open.release(5)
    assert staying.result(10) == [6]
    with pytest.raises(CancelledError):
        leaving.result(0)
    assert gate.batches[1:] == [("s", [3, 4, 5])]


def test_a_request_withdrawn_while_it_is_decoded_harms_nobody(batcher: Make, gate: Gate) -> None:
    queue = batcher(gate)
    future = queue.submit("s", [0])
    gate.await_entry()
    assert future.cancel()
    gate.open.release(2)
    assert queue.submit("s", [1]).result(10) == [2]


def test_a_request_that_fails_does_not_fail_others(busy: Make, gate: Gate) -> None:
    queue = busy()
    good, bad, fine = (queue.submit("s", [number]) for number in (1, -1, 3))
    gate.open.release(5)
    assert good.result(10) == [2]
    assert fine.result(10) == [6]
    with pytest.raises(ValueError, match="bad task"):
        bad.result(10)


def test_closing_finishes_what_was_accepted(batcher: Make, gate: Gate) -> None:
    queue = batcher(gate, gate, max_size=100)
    futures = [queue.submit("s", [number]) for number in (1, 60, 70, 80)]
    gate.await_entry()
    closing = threading.Thread(target=queue.close, args=(10,))
    closing.start()
    wait_until(lambda: queue._closed)
    with pytest.raises(RefusedError, match="stopping"):
        queue.submit("s", [2])
    gate.open.release(4)
    closing.join(10)
    assert [future.result(0) for future in futures] == [[2], [120], [140], [160]]


def test_closing_does_not_wait_for_ever(busy: Make) -> None:
    queue = busy()
    waiting = queue.submit("s", [1])
    assert not queue.close(0.05)
    assert waiting.cancelled()


def test_each_batch_is_reported(batcher: Make) -> None:
    reports: list[tuple[str, int]] = []
    queue = batcher(double, on_batch=lambda setting, tasks, _: reports.append((setting, tasks)))
    queue.submit("s", [1, 2, 3]).result(10)
    assert queue.close(10)
    assert reports == [("s", 3)]


def test_a_decoder_waits_a_moment_for_clients_that_come_back(batcher: Make) -> None:
    sizes: list[int] = []

    def decode(_: str, tasks: Sequence[int]) -> list[int]:
        sizes.append(len(tasks))
        threading.Event().wait(0.1)
        return list(tasks)

    queue = batcher(decode)

    def ask() -> None:
        for _ in range(5):
            queue.submit("s", [1]).result(10)

    clients = [threading.Thread(target=ask) for _ in range(6)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(20)
    assert sum(sizes) == 30
    assert len(sizes) <= 9  # 5 batches of 6, if no client is late; 10 of 3 without waiting


def test_a_slow_task_is_decoded_alone_and_beside_quick_ones(batcher: Make, gate: Gate) -> None:
    queue = batcher(gate, max_size=100)
    long = [queue.submit("s", [1, 60, 70, 2]), queue.submit("s", [80])]
    for _ in range(2):
        gate.await_entry()
    assert sorted(gate.batches) == [("s", [1, 2]), ("s", [60])]
    gate.open.release(5)
    assert [future.result(10) for future in long] == [[2, 120, 140, 4], [160]]
    assert [tasks for _, tasks in gate.batches if max(tasks) > 50] == [[60], [80], [70]]


def test_slow_tasks_do_not_hold_up_quick_ones_even_of_one_decoder(batcher: Make) -> None:
    slow, quick = threading.Event(), threading.Event()

    def decode(setting: str, tasks: Sequence[int]) -> list[int]:
        if tasks[0] > 50:
            slow.set()
            assert quick.wait(10)
        return double(setting, tasks)

    queue = batcher(decode, max_size=100)
    long = [queue.submit("s", [60, 70]), queue.submit("t", [80])]
    assert slow.wait(10)
    assert [queue.submit("s", [number]).result(10) for number in range(5)] == [[0], [2], [4], [6], [8]]
    quick.set()
    assert [future.result(10) for future in long] == [[120, 140], [160]]


def test_slow_tasks_leave_the_queue_with_the_quick_ones_of_their_request(busy: Make, gate: Gate) -> None:
    queue = busy(max_size=100)
    queue.submit("s", [60])
    gate.await_entry()
    leaving = queue.submit("s", [1, 70, 2, 80])
    assert queue.waiting == 4
    assert leaving.cancel()
    assert queue.waiting == 0


def test_a_request_of_which_a_slow_task_fails_fails(batcher: Make) -> None:
    def decode(_: str, tasks: Sequence[int]) -> list[int]:
        if tasks[0] == 60:
            raise ValueError("bad task")
        return list(tasks)

    queue = batcher(decode, max_size=100)
    bad, good = queue.submit("s", [60, 1, 70]), queue.submit("s", [2, 80])
    with pytest.raises(ValueError, match="bad task"):
        bad.result(10)
    assert good.result(10) == [2, 80]
