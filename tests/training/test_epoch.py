"""The plan of an epoch follows the settings of batches, and a thread that works ahead changes nothing but the time."""

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nmt.data.encoded import encode_corpus
from nmt.training.epoch import DEPTH, ahead, plan_epoch
from nmt.training.text import TrainingText
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal


def plans(folder: Path, **training: Any) -> list[list[list[list[int]]]]:
    """The groups of the first two epochs."""
    recipe = toy_recipe(folder, training=training)
    text = TrainingText.load(recipe)
    source, target = text.subwords(recipe)
    corpus = encode_corpus(text.train, source, target, None)
    epochs = [plan_epoch(recipe, corpus, source, target, number) for number in (0, 1)]
    return [[[rows.tolist() for rows in group] for group in epoch.groups()] for epoch in epochs]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_reversal(tmp_path, pairs=100)
    return tmp_path


def test_every_epoch_has_its_own_order_unless_the_corpus_is_shuffled_once(folder: Path) -> None:
    first, second = plans(folder)
    assert first != second
    first, second = plans(folder, shuffle="once")
    assert first == second


def test_an_epoch_shows_joined_pairs_too_and_training_resumes_with_the_same(folder: Path) -> None:
    recipe = toy_recipe(folder)
    data = recipe.data.model_copy(update={"concatenation": 0.5})
    recipe = recipe.model_copy(update={"data": data})
    text = TrainingText.load(recipe)
    source, target = text.subwords(recipe)
    corpus = encode_corpus(text.train, source, target, None)
    first, again, second = (plan_epoch(recipe, corpus, source, target, number) for number in (0, 0, 1))
    shown = [
        sorted(row for group in epoch.groups() for rows in group for row in rows) for epoch in (first, again, second)
    ]
    assert shown[0] == shown[1] == list(range(150))
    joined = range(100, 150)
    assert first.corpus[joined] == again.corpus[joined] != second.corpus[joined]


# --- ahead -------------------------------------------------------------------------------------------------------


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
