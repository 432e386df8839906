"""The pool gives the results of one process in order, reports killed processes, and leaves none behind."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import deque
from operator import length_hint
from pathlib import Path

import pytest
import torch

from nmt.errors import DataError
from nmt.runtime.pool import Pool
from tests.commands import python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are no forks")


def slowly(number: int) -> tuple[int, int]:
    time.sleep(0.02 * (number % 3))
    return number, os.getpid()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_results_come_in_order_from_several_processes_that_then_end() -> None:
    tasks, results = iter(range(20)), []
    with Pool(slowly, 3) as pool:
        for result in pool.map(tasks):
            results.append(result)
            assert length_hint(tasks) >= 20 - len(results) - 12, "few are read ahead"
        first, none, second = pool.submit(range(7)), pool.submit([]), pool.submit(range(2))
        groups = [[number for number, _ in pool.collect(numbers)] for numbers in (first, none, second)]
    assert [number for number, _ in results] == list(range(20))
    assert groups == [list(range(7)), [], [0, 1]]
    processes = {process for _, process in results}
    assert len(processes) == 3
    assert os.getpid() not in processes
    assert not any(map(is_alive, processes))


def run_here(processes: int, tasks: int) -> bool:
    with Pool(slowly, processes) as pool:
        return {process for _, process in pool.collect(pool.submit(range(tasks)))} == {os.getpid()}


def test_little_work_and_what_cannot_be_forked_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_here(3, 1)
    assert run_here(1, 6)
    assert not run_here(2, 4)
    in_thread: list[bool] = []
    thread = threading.Thread(target=lambda: in_thread.append(run_here(2, 4)))
    thread.start()
    thread.join()
    assert in_thread == [True]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert run_here(2, 4)


def failing(number: int) -> int:
    if number == 5:
        raise DataError("Five is not possible.")
    return number


def test_what_a_process_raises_is_raised_here() -> None:
    with pytest.raises(DataError, match="Five is not possible"), Pool(failing, 3) as pool:
        list(pool.map(range(8)))


def large(number: int) -> bytes:
    time.sleep(0.001)
    return bytes(2**23)


@pytest.mark.parametrize("seed", range(3))
def test_a_process_that_is_killed_at_any_moment_is_one_error(seed: int) -> None:
    """Also in the middle of a result, where a pool with one pipe for all results would hang."""
    moment = random.Random(seed)

    def kill(process: int) -> None:
        time.sleep(moment.random() / 20)
        os.kill(process, signal.SIGKILL)

    with Pool(large, 2) as pool:
        pool.submit([0] * 4)
        [process, _] = pool._processes.values()
        assert process.pid is not None
        threading.Thread(target=kill, args=[process.pid]).start()
        with pytest.raises(DataError, match="A process was killed"):
            deque(pool.map(iter(int, 1)), maxlen=0)


ORPHANS = """
import os, signal
from nmt.runtime.pool import Pool
with Pool(lambda _: os.getpid(), 2) as first, Pool(lambda _: os.getpid(), 2) as second:
    print(*set(first.map(range(8))), *set(second.map(range(8))), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_with_the_one_that_started_them() -> None:
    ended = python(ORPHANS)
    assert ended.returncode == -signal.SIGKILL
    processes = list(map(int, ended.stdout.split()))
    assert processes
    until = time.monotonic() + 10
    while any(map(is_alive, processes)):
        assert time.monotonic() < until
        time.sleep(0.05)
