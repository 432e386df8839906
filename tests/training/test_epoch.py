"""The plan of an epoch follows the settings of batches."""

from pathlib import Path
from typing import Any

import pytest

from nmt.data.encoded import encode_corpus
from nmt.training.epoch import plan_epoch
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
    return [[[rows.tolist() for rows in group] for group in epoch.groups] for epoch in epochs]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_reversal(tmp_path, pairs=100)
    return tmp_path


def test_every_epoch_has_its_own_order_unless_the_corpus_is_shuffled_once(folder: Path) -> None:
    first, second = plans(folder)
    assert first != second
    first, second = plans(folder, shuffle="once")
    assert first == second


def test_batches_hold_so_many_sentences(folder: Path) -> None:
    [(first, second), _] = plans(folder, batch_sentences=30, accumulate=2)
    assert sorted(len(rows) for group in (first, second) for rows in group) == [10, 30, 30, 30]
