"""Processes that decode side by side give what one gives, and never outlive what they work for."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt import recipe
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.runtime.workers import Workers
from tests.commands import python
from tests.decoding.test_translator import LINES, bundle, check_same

LOST = "A process that counts was killed."


def number_here(task: int) -> int:
    return os.getpid() + task


def test_nothing_is_forked_once_cuda_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with Workers(number_here, 2, lost=LOST) as workers:
        assert list(workers.map([[0] * 8])) == [[os.getpid()] * 8]


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are no forks")


def slowly(number: int) -> tuple[int, int]:
    time.sleep(0.05 * (number % 3))
    return number, os.getpid()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_answers_come_in_order_from_several_processes() -> None:
    with Workers(slowly, 3, lost=LOST) as workers:
        groups = [range(10), range(3), [], [], [], range(7), []]
        results = list(workers.map(groups))
        assert [[number for number, _ in answers] for answers in results] == list(map(list, groups))
        processes = {process for answers in results for _, process in answers}
        assert len(processes) == 3
        assert os.getpid() not in processes
        [again] = workers.map([range(3)])
        assert {process for _, process in again} <= processes
    assert not any(map(is_alive, processes))


def test_the_next_group_is_begun_while_the_last_of_one_is_done_and_no_further_one() -> None:
    requests: list[int] = []

    def groups() -> Iterator[list[int]]:
        for number in range(4):
            requests.append(number)
            yield [1, 0, 0, 0]

    def ended(number: int) -> float:
        time.sleep(0.3 * number)
        return time.monotonic()

    with Workers(ended, 2, lost=LOST) as workers:
        answers = workers.map(groups())
        first = next(answers)
        assert requests == [0, 1]
        second = next(answers)
        assert second[0] - 0.3 < first[0], "the second group was not begun before the first was done"
        assert requests == [0, 1, 2]
        assert len(list(answers)) == 2


def test_groups_before_an_empty_one_are_completed_before_the_next_is_read() -> None:
    answers: list[list[int]] = []

    def same(number: int) -> int:
        return number

    def groups() -> Iterator[list[int]]:
        for number in range(4):
            yield list(range(1 if number else 5))
            yield []
            assert len([answer for answer in answers if answer]) == number + 1

    with Workers(same, 2, lost=LOST) as workers:
        for answer in workers.map(groups()):
            answers.append(answer)  # noqa: PERF402 -- `groups` looks at it meanwhile
    assert [answer for answer in answers if answer] == [list(range(5)), [0], [0], [0]]


@pytest.mark.parametrize(("most", "tasks"), [(3, 3), (1, 6)])
def test_little_work_is_done_here(most: int, tasks: int) -> None:
    with Workers(slowly, most, lost=LOST) as workers:
        [answers] = workers.map([range(tasks)])
        assert {process for _, process in answers} == {os.getpid()}


def failing(number: int) -> int:
    if number == 5:
        raise DataError("Five is not possible.")
    return number


def test_what_a_process_raises_is_raised_here() -> None:
    with pytest.raises(DataError, match="Five is not possible"), Workers(failing, 3, lost=LOST) as workers:
        list(workers.map([range(8)]))


def dying(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_process_is_one_sentence() -> None:
    with pytest.raises(DataError, match=LOST), Workers(dying, 3, lost=LOST) as workers:
        list(workers.map([range(8)]))


def test_who_stops_asking_waits_for_nothing() -> None:
    def stuck(number: int) -> int:
        time.sleep(60 * (number > 0))
        return os.getpid()

    with Workers(stuck, 3, lost=LOST) as workers:
        start = time.monotonic()
        [process, *_] = next(workers.map([[0] * 6, [1] * 6]))
        with pytest.raises(KeyboardInterrupt), workers:
            raise KeyboardInterrupt
    assert time.monotonic() - start < 30
    assert not is_alive(process)


def test_who_stops_asking_while_large_results_are_sent_waits_for_nothing() -> None:
    """A pool with one pipe for all results hangs here: a process dies in the middle of a result."""

    def large(number: int) -> bytes:
        return bytes(2**22)

    for _ in range(3):
        workers = Workers(large, 2, lost=LOST)
        next(workers.map([[0] * 4, [1] * 4]))
        with pytest.raises(KeyboardInterrupt), workers:
            raise KeyboardInterrupt


ORPHANS = """
import os, signal
from nmt.runtime.workers import Workers
with Workers(lambda _: os.getpid(), 2, lost='') as workers:
    print(*set(*workers.map([range(8)])), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_with_the_one_that_started_them() -> None:
    ended = python(ORPHANS)
    assert ended.returncode == -signal.SIGKILL
    processes = list(map(int, ended.stdout.split()))
    assert processes
    for _ in range(100):
        if not any(map(is_alive, processes)):
            break
        time.sleep(0.1)
    assert not any(map(is_alive, processes))


@pytest.mark.parametrize("posterior", [False, True])
def test_translations_and_scores_are_those_of_one_process(posterior: bool) -> None:
    settings: dict[str, Any] = {
        "decoding": recipe.DecodingConfig(beam_size=2, max_ratio=0.2),
        "n_best": 2,
        "batch_tokens": 24,
        "posterior": posterior,
    }
    lines = [*LINES[:4], "", "the dog sleeps", "a cat"]
    alone, together = (Translator([bundle()], processes=count, **settings) for count in (1, 3))
    for one, other in zip(alone.translate(lines), together.translate(lines), strict=True):
        check_same(one, other)
    pairs = [(line, "das ist gut") for line in lines]
    for one, other in zip(alone.score(pairs), together.score(pairs), strict=True):
        check_same(one, other)
