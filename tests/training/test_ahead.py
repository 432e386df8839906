"""What a thread computes ahead arrives in order, its errors where they are due, and it ends with the loop."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from nmt.training.ahead import DEPTH, ahead


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("nmt-ahead")]


def test_results_come_in_order_from_another_thread() -> None:
    def compute(number: int) -> tuple[int, str]:
        time.sleep(0.001 * (number % 3))
        return number, threading.current_thread().name

    results = list(ahead(compute, range(50)))
    assert [number for number, _ in results] == list(range(50))
    assert {name for _, name in results} == {"nmt-ahead_0"}
    assert not threads()


def test_only_a_few_items_are_taken_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    with closing(ahead(str, items())) as results:
        for number, result in enumerate(results):
            assert result == str(number)
            assert len(taken) <= number + 1 + DEPTH


def test_an_error_is_raised_where_its_result_is_due() -> None:
    results = ahead(lambda number: 12 // number, [3, 2, 0, 1])
    assert (next(results), next(results)) == (4, 6)
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert not threads()


def test_the_thread_ends_with_a_loop_that_ends_early() -> None:
    computed: list[int] = []
    with closing(ahead(computed.append, range(1000))) as results:
        next(results)
        assert threads()
    assert not threads()
    assert len(computed) <= 2 + DEPTH


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_until_the_thread_holds_no_lock() -> None:
    events = []

    def compute(number: int) -> None:
        events.append("begin")
        time.sleep(0.2)
        events.append("end")

    with closing(ahead(compute, range(2))) as results:
        starter = threading.Thread(target=lambda: next(results))
        starter.start()
        while "begin" not in events:
            time.sleep(0.001)
        child = os.fork()
        if not child:
            os._exit(events.count("begin") - events.count("end"))
        _, status = os.waitpid(child, 0)
        starter.join()
    assert os.waitstatus_to_exitcode(status) == 0
