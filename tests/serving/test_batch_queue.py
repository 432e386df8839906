"""The queue alone, with decoders that are functions."""

import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest

from nmt.serving.batch_queue import Batcher
from nmt.serving.refusals import RefusedError
from tests.serving.fakes import wait_until


class Gate:
    """A decoder that doubles numbers once it may, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.entered = threading.Semaphore(0)
        self.open = threading.Semaphore(0)

    def __call__(self, setting: str, tasks: Sequence[int]) -> list[int]:
        self.batches.append((setting, list(tasks)))
        self.entered.release()
        assert self.open.acquire(timeout=10)
        if -1 in tasks:
            raise ValueError("bad task")
        return [2 * task for task in tasks]

    def release(self, count: int = 1) -> None:
        self.open.release(count)


def batcher(*decoders: Any, **options: Any) -> Any:
    """A batcher whose settings are strings and whose tasks are numbers, of a size as large: it does not look into them."""
    return Batcher(decoders, **{"size": lambda _, task: max(task, 1), "on_batch": lambda *_: None, **options})


def busy(gate: Gate, queue: Any) -> Any:
    """Occupy the decoder; returns the future of what it decodes."""
    future = queue.submit("s", [0])
    assert gate.entered.acquire(timeout=10)
    return future


def test_a_lone_task_is_decoded_at_once() -> None:
    queue = batcher(lambda _, tasks: [2 * task for task in tasks])
    assert queue.submit("s", [3, 4]).result(10) == [6, 8]
    assert queue.submit("s", []).result(0) == []
    assert queue.close(10)


def test_what_accumulates_is_one_batch_with_a_task_of_each_request_in_turn() -> None:
    gate = Gate()
    queue = batcher(gate, max_batch=5)
    first = busy(gate, queue)
    futures = [queue.submit("s", tasks) for tasks in ([1, 2, 3, 4], [10, 20], [100])]
    gate.release(3)
    assert [future.result(10) for future in (first, *futures)] == [[0], [2, 4, 6, 8], [20, 40], [200]]
    assert gate.batches == [("s", [0]), ("s", [1, 10, 100, 2, 20]), ("s", [3, 4])]
    assert queue.close(10)


def test_settings_are_not_mixed_and_the_oldest_request_goes_first() -> None:
    gate = Gate()
    queue = batcher(gate)
    busy(gate, queue)
    futures = [queue.submit(setting, [number]) for number, setting in enumerate("abab", start=1)]
    gate.release(3)
    assert [future.result(10) for future in futures] == [[2], [4], [6], [8]]
    assert gate.batches[1:] == [("a", [1, 3]), ("b", [2, 4])]
    assert queue.close(10)


def test_a_request_that_had_a_turn_goes_behind_those_that_had_none() -> None:
    gate = Gate()
    queue = batcher(gate, max_batch=2)
    busy(gate, queue)
    queue.submit("a", [1, 2, 3, 4])
    queue.submit("b", [9])
    gate.release(4)
    assert queue.close(10)
    assert gate.batches[1:] == [("a", [1, 2]), ("b", [9]), ("a", [3, 4])]


def test_a_batch_has_a_bounded_size_but_at_least_one_task() -> None:
    gate = Gate()
    queue = batcher(gate, max_size=10)
    busy(gate, queue)
    queue.submit("s", [5, 4, 1, 50, 5, 3, 3])
    gate.release(10)
    assert queue.close(10)
    assert sorted(tasks for _, tasks in gate.batches[1:]) == [[3], [5, 3], [5, 4, 1], [50]]


def test_decoders_share_what_waits() -> None:
    gates = Gate(), Gate()
    queue = batcher(*gates)
    for _ in gates:
        queue.submit("s", [0])
    for gate in gates:
        assert gate.entered.acquire(timeout=10)
    queue.submit("s", list(range(1, 41)))
    for gate in gates:
        gate.release(10)
    assert queue.close(10)
    sizes = sorted(sum(len(tasks) for _, tasks in gate.batches) for gate in gates)
    assert sum(sizes) == 42
    assert all(len(tasks) <= 21 for gate in gates for _, tasks in gate.batches)


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    gate = Gate()
    queue = batcher(gate, max_queue=3)
    busy(gate, queue)
    queue.submit("s", [1, 2])
    with pytest.raises(RefusedError, match="busy") as refusal:
        queue.submit("s", [3, 4])
    assert refusal.value.retry_after is not None
    assert 1 <= refusal.value.retry_after <= 60
    assert queue.submit("s", [3])
    assert queue.waiting == 3
    gate.release(5)
    assert queue.close(10)
    assert queue.waiting == 0


def test_a_withdrawn_request_leaves_the_queue() -> None:
    gate = Gate()
    queue = batcher(gate, max_queue=3)
    busy(gate, queue)
    leaving, staying = queue.submit("s", [1, 2]), queue.submit("s", [3])
    assert leaving.cancel()
    assert queue.waiting == 1
    assert queue.submit("s", [4, 5])
    gate.release(5)
    assert staying.result(10) == [6]
    with pytest.raises(CancelledError):
        leaving.result(0)
    assert queue.close(10)
    assert gate.batches[1:] == [("s", [3, 4, 5])]


def test_a_request_withdrawn_while_it_is_decoded_harms_nobody() -> None:
    gate = Gate()
    queue = batcher(gate)
    future = busy(gate, queue)
    assert future.cancel()
    gate.release(5)
    assert queue.submit("s", [1]).result(10) == [2]
    assert queue.close(10)


def test_a_request_that_fails_does_not_fail_others() -> None:
    gate = Gate()
    queue = batcher(gate)
    busy(gate, queue)
    good, bad, fine = (queue.submit("s", [number]) for number in (1, -1, 3))
    gate.release(5)
    assert good.result(10) == [2]
    assert fine.result(10) == [6]
    with pytest.raises(ValueError, match="bad task"):
        bad.result(10)
    assert queue.submit("s", [5])
    gate.release(5)
    assert queue.close(10)


def test_closing_finishes_what_was_accepted() -> None:
    gate = Gate()
    queue = batcher(gate)
    futures = [busy(gate, queue), queue.submit("s", [1])]
    closing = threading.Thread(target=queue.close, args=(10,))
    closing.start()
    wait_until(lambda: queue._closed)
    with pytest.raises(RefusedError, match="stopping"):
        queue.submit("s", [2])
    gate.release(2)
    closing.join(10)
    assert [future.result(0) for future in futures] == [[0], [2]]


def test_closing_does_not_wait_for_ever() -> None:
    gate = Gate()
    queue = batcher(gate)
    busy(gate, queue)
    waiting = queue.submit("s", [1])
    assert not queue.close(0.05)
    assert waiting.cancelled()
    gate.release(2)


def test_each_batch_is_reported() -> None:
    reports: list[tuple[str, int]] = []
    queue = batcher(lambda _, tasks: tasks, on_batch=lambda setting, tasks, _: reports.append((setting, tasks)))
    queue.submit("s", [1, 2, 3]).result(10)
    assert queue.close(10)
    assert reports == [("s", 3)]


def test_a_decoder_waits_a_moment_for_clients_that_come_back() -> None:
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
    assert queue.close(10)
    assert sum(sizes) == 30
    assert len(sizes) <= 9  # 5 batches of 6, if no client is late; 10 of 3 without waiting


def test_a_slow_task_is_decoded_alone_and_beside_quick_ones() -> None:
    gate = Gate()
    queue = batcher(gate, max_size=100)
    long = [queue.submit("s", [1, 60, 70, 2]), queue.submit("s", [80])]
    for _ in range(2):
        assert gate.entered.acquire(timeout=10)
    assert sorted(gate.batches) == [("s", [1, 2]), ("s", [60])]
    gate.release(5)
    assert [future.result(10) for future in long] == [[2, 120, 140, 4], [160]]
    assert [tasks for _, tasks in gate.batches if max(tasks) > 50] == [[60], [80], [70]]
    assert queue.close(10)


def test_slow_tasks_do_not_hold_up_quick_ones_even_of_one_decoder() -> None:
    slow, quick = threading.Event(), threading.Event()

    def decode(_: str, tasks: Sequence[int]) -> list[int]:
        if tasks[0] > 50:
            slow.set()
            assert quick.wait(10)
        return [2 * task for task in tasks]

    queue = batcher(decode, max_size=100)
    long = [queue.submit("s", [60, 70]), queue.submit("t", [80])]
    assert slow.wait(10)
    assert [queue.submit("s", [number]).result(10) for number in range(5)] == [[0], [2], [4], [6], [8]]
    quick.set()
    assert [future.result(10) for future in long] == [[120, 140], [160]]
    assert queue.close(10)


def test_slow_tasks_leave_the_queue_with_the_quick_ones_of_their_request() -> None:
    gate = Gate()
    queue = batcher(gate, max_size=100)
    held = [busy(gate, queue), queue.submit("s", [60])]
    assert gate.entered.acquire(timeout=10)
    leaving = queue.submit("s", [1, 70, 2, 80])
    assert queue.waiting == 4
    assert leaving.cancel()
    assert queue.waiting == 0
    gate.release(2)
    assert [future.result(10) for future in held] == [[0], [120]]
    assert queue.close(10)


def test_a_request_of_which_a_slow_task_fails_fails() -> None:
    def decode(_: str, tasks: Sequence[int]) -> list[int]:
        if tasks[0] == 60:
            raise ValueError("bad task")
        return list(tasks)

    queue = batcher(decode, max_size=100)
    bad, good = queue.submit("s", [60, 1, 70]), queue.submit("s", [2, 80])
    with pytest.raises(ValueError, match="bad task"):
        bad.result(10)
    assert good.result(10) == [2, 80]
    assert queue.close(10)
    assert queue.waiting == 0


def test_slow_tasks_that_wait_are_done_before_it_closes() -> None:
    gate = Gate()
    queue = batcher(gate, gate, max_size=100)
    futures = [queue.submit("s", [number]) for number in (60, 70, 80)]
    assert gate.entered.acquire(timeout=10)
    closing = threading.Thread(target=queue.close, args=(10,))
    closing.start()
    gate.release(3)
    closing.join(10)
    assert [future.result(0) for future in futures] == [[120], [140], [160]]
