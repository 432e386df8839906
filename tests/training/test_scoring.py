"""Validation: its metrics, their order, and the signatures in the record."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.recipe import Recipe
from nmt.training.checkpoint import load_state
from nmt.training.trainer import train
from nmt.training.validation import Validator
from tests.training.toy import recipe as toy_recipe

CPU = torch.device("cpu")
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


def validations(run: Path) -> list[dict[str, Any]]:
    records = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [record for record in records if record["kind"] == "valid"]


def test_a_target_without_spaces_is_validated_with_characters(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = {"epochs": 2, "validation": {"metrics": ["bleu", "chrf"]}}
    result = train(kana_recipe(corpus, **settings), tmp_path / "run", device=CPU)
    records = validations(tmp_path / "run")
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


def test_an_unsuitable_tokenizer_gives_a_warning_and_chrf_decides(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train(kana_recipe(corpus, tokenize="13a", epochs=3, batch_tokens=1024), tmp_path / "run", device=CPU)
    assert capfd.readouterr().err.count("Warning: The text is written without spaces, but the tokenizer 13a") == 1
    records = validations(tmp_path / "run")
    assert [record["bleu"] for record in records] == [0, 0, 0]
    best = -1.0
    for record in records:
        assert record["best"] == (round(record["chrf"], 2) > best)
        best = max(best, round(record["chrf"], 2))


def rank(names: list[str], **record: float) -> tuple[float, ...]:
    recipe = kana_recipe(Path("kana"), validation={"metrics": names})
    validator = Validator.__new__(Validator)
    validator.settings = recipe.training
    return validator.rank(record)


def test_ties_are_broken_by_the_next_metric_and_then_by_perplexity() -> None:
    assert rank(["bleu", "chrf"], bleu=20.001, chrf=5, perplexity=9) > rank(
        ["bleu", "chrf"], bleu=20.004, chrf=4, perplexity=2
    )
    assert rank(["bleu"], bleu=9.001, chrf=30, perplexity=7) > rank(["bleu"], bleu=9.004, chrf=30, perplexity=9)
    assert rank(["bleu"], bleu=9.01, chrf=29, perplexity=9) > rank(["bleu"], bleu=9.0, chrf=30, perplexity=7)
    assert rank(["chrf", "perplexity"], chrf=9, perplexity=7) > rank(["chrf", "perplexity"], chrf=9, perplexity=8)
    assert rank(["perplexity", "bleu"], bleu=1, chrf=9, perplexity=7) > rank(
        ["perplexity", "bleu"], bleu=2, chrf=9, perplexity=7.001
    )


def test_bleu_below_1_does_not_rank() -> None:
    noise = rank(["bleu"], bleu=0.9, chrf=9.1, perplexity=31)
    better = rank(["bleu"], bleu=0.4, chrf=11.4, perplexity=54)
    good = rank(["bleu"], bleu=1.0, chrf=10, perplexity=60)
    assert noise < better < good
