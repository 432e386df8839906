"""Validation: its metrics and their order, the signatures in the record, and its time however long a line is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.bundle.folder import Bundle
from nmt.errors import DataError
from nmt.recipe import Recipe
from nmt.training import validation
from nmt.training.folder import load_state
from nmt.training.log import read_validations
from nmt.training.preparation import TrainingText
from nmt.training.trainer import train
from nmt.training.validation import Validator
from tests.training import toy
from tests.training.toy import CPU
from tests.training.toy import recipe as toy_recipe

KANA = "あいうえおかき"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Letters, and the kana that they stand for, written without spaces."""
    folder, draw = tmp_path_factory.mktemp("kana"), random.Random(3)
    for name, pairs in (("train", 250), ("valid", 20)):
        lines = [[draw.randrange(len(KANA)) for _ in range(draw.randint(4, 7))] for _ in range(pairs)]
        (folder / f"{name}.en").write_text("".join(" ".join("abcdefg"[i] for i in line) + "\n" for line in lines))
        kana = "".join("".join(KANA[i] for i in line) + "\n" for line in lines)
        (folder / f"{name}.ja").write_text(kana, encoding="utf-8")
    return folder


def kana_recipe(corpus: Path, *, target: str = "ja", tokenize: str | None = "char", **training: Any) -> Recipe:
    data = {
        "source": "en",
        "target": target,
        "train": f"{corpus}/train.{{en,ja}}",
        "valid": f"{corpus}/valid.{{en,ja}}",
    }
    subwords = {"kind": "char", "size": 20, "byte_fallback": False}
    return toy_recipe(corpus, data=data, subwords=subwords, training=training, evaluation={"tokenize": tokenize})


def test_a_target_without_spaces_is_validated_with_characters(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = {"epochs": 2, "validation": {"metrics": ["bleu", "chrf"]}}
    result = train(kana_recipe(corpus, **settings), tmp_path / "run", device=CPU)
    records = read_validations(tmp_path / "run")
    assert max(record["bleu"] for record in records) > 1, "as single words no line is right, and no line in part"
    assert "tok:char" in records[-1]["signatures"]["bleu"]
    assert "nc:6" in records[-1]["signatures"]["chrf"]
    best = max(records, key=lambda record: record["bleu"])
    assert (result.metric, result.best) == ("bleu", round(best["bleu"], 2))
    assert load_state(tmp_path / "run").progress["best"] == [
        round(best["bleu"], 2),
        round(best["chrf"], 2),
        -best["perplexity"],
    ]
    log = capfd.readouterr().err
    assert "Validation compares BLEU (tokenizer char; below 1 as 0), then chrF, then perplexity." in log
    assert "Warning" not in log
    assert f"BLEU {best['bleu']:.2f}  chrF {best['chrf']:.2f}  (best)" in log


@pytest.mark.parametrize(
    ("names", "worse", "better"),
    [
        (["bleu", "chrf"], {"bleu": 20.004, "chrf": 4, "perplexity": 2}, {"bleu": 20.001, "chrf": 5, "perplexity": 9}),
        (["bleu"], {"bleu": 9.004, "chrf": 30, "perplexity": 9}, {"bleu": 9.001, "chrf": 30, "perplexity": 7}),
        (["bleu"], {"bleu": 9.0, "chrf": 30, "perplexity": 7}, {"bleu": 9.01, "chrf": 29, "perplexity": 9}),
        (["chrf"], {"chrf": 9, "perplexity": 8}, {"chrf": 9, "perplexity": 7}),
        (["perplexity", "bleu"], {"bleu": 2, "chrf": 9, "perplexity": 7.1}, {"bleu": 1, "chrf": 9, "perplexity": 7}),
        (["bleu"], {"bleu": 0.9, "chrf": 9.1, "perplexity": 31}, {"bleu": 0.4, "chrf": 11.4, "perplexity": 54}),
        (["bleu"], {"bleu": 0.4, "chrf": 11.4, "perplexity": 54}, {"bleu": 1.0, "chrf": 10, "perplexity": 60}),
    ],
)
def test_ties_are_broken_by_the_next_metric_and_bleu_below_1_does_not_rank(
    names: list[str], worse: dict[str, float], better: dict[str, float]
) -> None:
    validator = Validator.__new__(Validator)
    validator.settings = kana_recipe(Path("kana"), validation={"metrics": names}).training
    assert validator.rank(worse) < validator.rank(better)


# --- long texts ---------------------------------------------------------------------------------------------------


def validator(folder: Path, *, long_lines: int, short_lines: int = 5) -> Validator:
    """A validator of short lines and of some with 4,000 letters."""
    toy.write_reversal(folder, pairs=60, held_out=short_lines)
    for side in ("src", "tgt"):
        with (folder / f"valid.{side}").open("a") as file:
            file.write(("a b " * 2000 + "\n") * long_lines)
    recipe = toy.recipe(folder)
    text = TrainingText.load(recipe)
    bundle = Bundle.fresh(recipe, *text.subwords(recipe))
    return Validator(bundle, text.valid, precision="fp32", device=torch.device("cpu"))


def test_long_lines_take_no_quadratic_time_and_the_log_says_so(tmp_path: Path) -> None:
    short, long = (validator(tmp_path, long_lines=count) for count in (0, 2))
    assert len(long.texts[0].rows) == len(short.texts[0].rows) == 5
    assert long._loss(long.texts[0]) == pytest.approx(short._loss(short.texts[0]))
    warning = "Warning: the perplexity leaves out 2 validation pairs of more than 500 tokens on a side."
    assert warning in list(long.introduction())
    assert not any("perplexity leaves" in line for line in short.introduction())
    with pytest.raises(DataError, match=r"No pair of .* has at most 500 tokens per side"):
        validator(tmp_path, long_lines=2, short_lines=0)


def test_the_search_is_chosen_on_every_nth_line_of_a_long_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = validator(tmp_path, long_lines=0, short_lines=11)
    monkeypatch.setattr(validation, "MAX_SEARCH_LINES", 4)
    part = whole.search_outcome({"beam_size": 2})  # lines 1, 4, 7 and 10
    for side in ("src", "tgt"):
        lines = (tmp_path / f"valid.{side}").read_text().splitlines(keepends=True)
        (tmp_path / f"valid.{side}").write_text("".join(lines[::3]))
    text = TrainingText.load(whole.bundle.recipe).valid
    alone = Validator(whole.bundle, text, precision="fp32", device=torch.device("cpu"))
    assert len(text) == 4
    assert alone.search_outcome({"beam_size": 2}) == part
