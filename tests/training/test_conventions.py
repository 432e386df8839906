"""Training and validation text that are written differently are noticed, per side, and texts that are alike are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.recipe import parse_recipe
from nmt.training import advice
from nmt.training.advice import convention_warnings, duplicates_warning
from nmt.training.text import TrainingText
from nmt.training.trainer import train
from tests.training.toy import recipe, write_reversal

PLAIN = ["A dog runs, and barks.", "It sleeps.", "No!"] * 20
TOKENIZED = ["A dog runs , and barks .", "It sleeps .", "No !"] * 20


def corpus(source: list[str], target: list[str]) -> ParallelCorpus:
    columns = collect([[source, target]], 2)
    return ParallelCorpus(columns[0], columns[1], "text", ("en", "de"))


def warnings(train: list[str], valid: list[str]) -> list[str]:
    """Of texts that differ on their target side alone."""
    return list(convention_warnings(TrainingText(corpus(PLAIN, train), corpus(PLAIN, valid))))


def test_text_that_is_tokenized_on_one_side_of_the_split_is_said_with_examples() -> None:
    [warning] = warnings(TOKENIZED, PLAIN)
    assert warning == (
        "Warning: 100% of the lines in de have spaces before full stops and commas in data.train (such as line 1: A dog runs , and "
        "barks .), 0% in data.valid (unlike line 1: A dog runs, and barks.). Detokenize it, since nmt learns tokens from plain text."
    )
    assert "0% of the lines in de have spaces" in warnings(PLAIN, TOKENIZED)[0]


def test_lowercased_text_and_lower_case_at_the_beginning_are_told_apart() -> None:
    [lowercased] = warnings([line.lower() for line in PLAIN], PLAIN)
    assert "100% of the lines in de have no upper-case letter in data.train (such as line 1: a dog" in lowercased
    [inside] = warnings(PLAIN, [f"a {line}" for line in PLAIN])
    assert "100% of the lines in de begin with an upper-case letter" in inside


@pytest.mark.parametrize(
    ("train", "valid"),
    [
        pytest.param(PLAIN, PLAIN, id="alike"),
        pytest.param(TOKENIZED, TOKENIZED, id="both tokenized"),
        pytest.param(["犬が走る。", "寝る。"] * 30, PLAIN, id="without case, commas and spaces"),
        pytest.param(TOKENIZED[:9], [line.lower() for line in PLAIN[:9]], id="too few lines to tell"),
        pytest.param(
            PLAIN, ["Un chien , qui court.", "Il dort.", "Il boit.", "Il mange."] * 20, id="a quarter of the lines"
        ),
    ],
)
def test_texts_without_a_clear_difference_are_no_matter(train: list[str], valid: list[str]) -> None:
    assert warnings(train, valid) == []


PAIRS = {
    "multi30k": ("en-de", "val", ()),
    "tatoeba-en-de": ("en-de", "dev", ()),
    "hansards-en-fr": ("en-fr", "dev", ()),
    "low/es-gn": ("es-gn", "dev", ("11,537 (44%) of the 26,032 pairs of data.train repeat another",)),
    "low/es-nah": (
        "es-nah",
        "dev",
        ("615 (4%) of", "100% of the lines in es have", "100% of the lines in nah have", "17%"),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_public_texts_have_the_differences_that_a_reader_sees(name: str, request: pytest.FixtureRequest) -> None:
    folder, (languages, valid, expected) = request.getfixturevalue("corpora") / name, PAIRS[name]
    if not folder.is_dir():
        pytest.skip(f"needs {name}")
    source, target = languages.split("-")
    texts = (f"{folder}/{split}.{{{source},{target}}}.gz" for split in ("train", valid))
    data = {"source": source, "target": target, **dict(zip(("train", "valid"), texts, strict=True))}
    text = TrainingText.load(config := parse_recipe({"name": "x", "data": data}, "x"))
    said = [line for line in (duplicates_warning(config.data, text.train), *convention_warnings(text)) if line]
    assert len(said) == len(expected)
    for line, part in zip(said, expected, strict=True):
        assert part in line


def test_a_training_warns_at_its_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5, longest=30)
    monkeypatch.setattr(advice, "convention_warnings", lambda text: [f"otherwise {text.valid.name}"])
    monkeypatch.setattr(advice, "duplicates_warning", lambda _, text: f"twice {text.name}")
    toy = recipe(tmp_path, training={"epochs": 1})
    train(toy, tmp_path / "run", device="cpu")
    shown = capsys.readouterr().err
    assert (shown.count("otherwise"), shown.count("twice")) == (1, 1)
    train(toy, tmp_path / "run", device="cpu", resume=True)
    shown = capsys.readouterr().err
    assert "otherwise" not in shown
    assert "twice" not in shown
