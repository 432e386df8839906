"""The plan of an epoch follows the settings of batches, and a thread that works ahead changes nothing but the time."""

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nmt.data.encoded import EncodedPairs, encode_corpus
from nmt.training.epoch import DEPTH, ahead, plan_epoch
from nmt.training.preparation import TrainingText
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal


def test_an_epoch_depends_on_its_number_unless_the_corpus_is_shuffled_once(tmp_path: Path) -> None:
    write_reversal(tmp_path, pairs=100)
    recipe = toy_recipe(tmp_path)
    text = TrainingText.load(recipe)
    subwords = text.subwords(recipe)
    corpus = encode_corpus(text.train, *subwords, None)

    def plan(number: int, *, joined: float = 0.5, **settings: Any) -> tuple[list[list[int]], EncodedPairs]:
        """The rows of each batch of an epoch, and its pairs."""
        sections = {"data": {"concatenation": joined}, "training": settings}
        changed = {name: getattr(recipe, name).model_copy(update=update) for name, update in sections.items()}
        epoch = plan_epoch(recipe.model_copy(update=changed), corpus, *subwords, number)
        return [rows.tolist() for group in epoch.groups() for rows in group], epoch.corpus

    (rows, pairs), (same_rows, same_pairs), (other_rows, other_pairs) = map(plan, (0, 0, 1))
    assert sorted(row for batch in rows for row in batch) == list(range(150))
    joined = range(100, 150)
    assert (rows, pairs[joined]) == (same_rows, same_pairs[joined])
    assert rows != other_rows
    assert pairs[joined] != other_pairs[joined]
    once = [plan(number, joined=0.0, shuffle="once")[0] for number in (0, 1)]
    assert once[0] == once[1]


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
