"""Idle threads sleep while other processes compete for the cores, and only then."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import torch

from nmt.training.yielding import IdleTeam, Yielding, delays_of_threads

pytestmark = pytest.mark.skipif(not IdleTeam.is_possible(), reason="needs GNU OpenMP on Linux")


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def threads_at_rest() -> int:
    """The number of threads after those of earlier teams have ended, which is when it is constant for 0.2 s."""
    seen = [threads()]
    deadline = time.monotonic() + 10
    while (len(seen) < 20 or len(set(seen[-20:])) > 1) and time.monotonic() < deadline:
        time.sleep(0.01)
        seen.append(threads())
    return seen[-1]


def growing(seconds: Callable[[], float]) -> Callable[[], dict[str, float]]:
    """Measurements of one thread that waits `seconds()` between each two of them."""
    total = 0.0

    def measure() -> dict[str, float]:
        nonlocal total
        total += seconds()
        return {"1": total}

    return measure


def test_a_team_is_open_while_threads_wait_for_cores(two_threads: None) -> None:
    waits = [1.0]
    with Yielding(growing(lambda: waits[0]), interval=0.01) as yielding:
        assert eventually(lambda: yielding.team is not None)
        waits[0] = 0.0
        assert eventually(lambda: yielding.team is None)


def test_no_team_is_opened_on_an_idle_machine(two_threads: None) -> None:
    measurements = count()
    with Yielding(growing(lambda: 0.0 * next(measurements)), interval=0.001) as yielding:
        assert eventually(lambda: next(measurements) > 5)
        assert yielding.team is None


def test_a_thread_that_ends_or_begins_does_not_count_as_waiting(two_threads: None) -> None:
    measurements = count()
    delays = ({"1": 0.0, "2": 50.0}, {"1": 0.0}, {"1": 0.0, "3": 70.0})
    with Yielding(lambda: delays[next(measurements) % 3], interval=0.001) as yielding:
        assert eventually(lambda: next(measurements) > 20)
        assert yielding.team is None


def test_no_team_is_opened_for_a_single_thread() -> None:
    with Yielding(growing(lambda: 1.0), interval=0.001) as yielding:
        time.sleep(0.05)
        assert yielding.team is None


def test_the_team_ends_with_the_context(two_threads: None) -> None:
    with Yielding(growing(lambda: 1.0), interval=0.001) as yielding:
        assert eventually(lambda: yielding.team is not None)
    assert yielding.team is None


def test_an_idle_team_makes_libgomp_manage_more_threads_than_there_are_cores() -> None:
    torch.set_num_threads(1)
    before, cores = threads_at_rest(), len(os.sched_getaffinity(0))
    team = IdleTeam(beside=1)
    assert threads() - before == cores + 1  # the thread that opened it and its helpers
    team.close()
    assert eventually(lambda: threads() == before)


def test_delays_are_those_of_the_threads_of_this_process() -> None:
    delays = delays_of_threads()
    assert str(os.getpid()) in delays
    assert all(delay >= 0 for delay in delays.values())


def test_a_team_does_not_change_results(two_threads: None) -> None:
    torch.manual_seed(1)
    left, right = torch.randn(300, 400), torch.randn(400, 500)
    expected = left @ right
    team = IdleTeam(beside=2)
    result = left @ right
    team.close()
    assert torch.equal(result, expected)


def test_it_does_nothing_off_linux(monkeypatch: pytest.MonkeyPatch, two_threads: None) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with Yielding(growing(lambda: 1.0), interval=0.001) as yielding:
        time.sleep(0.02)
        assert yielding.team is None
