"""A training text of whole paragraphs is noticed, and one of sentences is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.training import advice
from nmt.training.advice import several_sentences_warning
from nmt.training.trainer import train
from tests.training.toy import recipe, write_reversal


def corpus(lines: list[str]) -> ParallelCorpus:
    source, target = collect([[lines, lines]], 2)
    return ParallelCorpus(source, target, "text", ("en", "de"))


def test_many_lines_of_several_sentences_are_worth_a_warning() -> None:
    lines = ["A dog runs.", "A cat sleeps. It dreams.", "Dr. Lee sees it at 3.30 p.m. in Rome.", ""] * 100
    assert several_sentences_warning(corpus(lines)) == (
        "Warning: 25% of the lines of data.train hold several sentences (such as line 2: A cat sleeps. It dreams.). "
        "nmt serve and --split-sentences translate one at a time: cut the training text into single sentences too."
    )


@pytest.mark.parametrize("lines", [["A dog runs.", "A cat sleeps."] * 5 + ["One. Two."], [""]])
def test_few_such_lines_are_no_matter(lines: list[str]) -> None:
    assert several_sentences_warning(corpus(lines)) is None


def test_a_training_warns_at_its_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5, longest=30)
    monkeypatch.setattr(advice, "several_sentences_warning", lambda text: f"crowded {text.name}")
    toy = recipe(tmp_path, training={"epochs": 1})
    train(toy, tmp_path / "run", device="cpu")
    assert capsys.readouterr().err.count("crowded") == 1
    train(toy, tmp_path / "run", device="cpu", resume=True)
    assert "crowded" not in capsys.readouterr().err
