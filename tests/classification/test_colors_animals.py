"""The experiment with colors and animals: its texts, a short run of it, and all of it in the slow suite."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import colors_animals as experiment
import pytest
from reading import ATTENTIONS

from tests.classification.programs import Inside, cells, is_png
from tests.commands import ROOT


def test_the_texts_are_those_of_the_experiment() -> None:
    texts = experiment.write_texts(1)
    assert texts == experiment.write_texts(1) != experiment.write_texts(2)
    assert (experiment.TRAIN, experiment.VALID, experiment.TEST, len(texts)) == (832, 208, 260, 1300)
    assert {len(text) for text in texts} == set(range(15, 25))
    assert len(experiment.VOCABULARY) == 1000
    assert {len(names) for names in experiment.OBJECTIVES.values()} == {7, 8}
    for names in experiment.OBJECTIVES.values():
        assert {sum(word in names for word in text) for text in texts} == {0, 1, 2, 3, 4}
    assert {word for text in texts for word in text} <= experiment.VOCABULARY.keys()


def test_labels_are_the_words_of_the_objective_or_none() -> None:
    text = ["blue", "babe", "owl", "red"]
    assert experiment.labels_of(text, "colors") == [True, False, False, False, True, False, False, False]
    assert experiment.labels_of(text, "animals") == [False] * 4 + [True] + [False] * 4
    assert experiment.labels_of(["babe"], "animals") == [False] * 8 + [True]


def test_a_short_run_prints_the_table_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within this process, where torch has been imported already; in the slow suite with processes of its own."""
    monkeypatch.setattr(experiment, "ProcessPoolExecutor", lambda jobs, context: ThreadPoolExecutor(jobs))
    monkeypatch.setattr(experiment, "TRAIN", 64)
    monkeypatch.setattr(experiment, "VALID", 16)
    monkeypatch.setattr(experiment, "TEST", 40)
    page, picture = tmp_path / "weights.html", tmp_path / "weights.png"
    options = ["--attention", "additive", "--seeds", 1, "--epochs", 1, "--jobs", 1, "-o", page, "-o", picture]
    output, errors = Inside(experiment.main, capsys, monkeypatch)(*options)
    kinds = [[objective, "additive", padding] for objective in ("colors", "animals") for padding in ("masked", "read")]
    rows = cells(output)
    assert [row[:3] for row in rows] == kinds
    assert all(0 <= int(row[3]) <= 40 and 0 < float(row[4].rstrip("%")) <= 100 for row in rows)
    assert len(errors.splitlines()) == 4
    assert len(re.findall("<article>", page.read_text(encoding="utf-8"))) == 20
    assert is_png(picture)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_attention_gets_all_test_texts_right_under_both_objectives_with_five_seeds() -> None:
    command = [sys.executable, str(ROOT / "recipes/classification/colors_animals.py")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = {tuple(row[:3]): (row[3].split(), row[4]) for row in cells(ended.stdout)}
    assert len(rows) == 2 * len(ATTENTIONS) * 2
    for objective in experiment.OBJECTIVES:
        exact, share = rows[objective, "additive", "masked"]
        assert exact == ["260"] * 5
        assert float(share.rstrip("%")) > 70
        without, chance = rows[objective, "mean", "masked"]
        assert sum(map(int, without)) < 5 * 260
        assert float(chance.rstrip("%")) < 20
