"""Training on mixtures: plans, tags as tokens, links, resuming, and that one corpus is planned as ever."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.alignment.corpus_links import load_links
from nmt.data.encoded import encode_corpus
from nmt.data.locators import load_training_corpus
from nmt.data.mixture import split_tags_warning
from nmt.errors import DataError
from nmt.recipe import Recipe, changed_keys
from nmt.training.epoch import plan_epoch
from nmt.training.preparation import TrainingText
from nmt.training.trainer import train
from tests.training.runs import outcome
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """train.{src,tgt} with 100 pairs, and its first 40 and last 60 as first.{src,tgt} and last.{src,tgt}."""
    write_reversal(tmp_path, pairs=100)
    for code in ("src", "tgt"):
        lines = (tmp_path / f"train.{code}").read_text().splitlines(keepends=True)
        (tmp_path / f"first.{code}").write_text("".join(lines[:40]))
        (tmp_path / f"last.{code}").write_text("".join(lines[40:]))
    return tmp_path


def mixture(folder: Path, *corpora: Any, subwords: dict[str, Any] | None = None, **sections: Any) -> Recipe:
    """The toy recipe for a mixture of first and last, each a name or its settings."""
    settings = [{"corpus": corpus} if isinstance(corpus, str) else corpus for corpus in corpora]
    listed = [{**corpus, "corpus": f"{folder}/{corpus['corpus']}"} for corpus in settings]
    data = {"source": "src", "target": "tgt", "train": listed, "valid": f"{folder}/valid"}
    kind = {"kind": "word", "size": 12, "byte_fallback": False} | (subwords or {})
    return toy_recipe(folder, data=data | sections.pop("data", {}), subwords=kind, **sections)


BACK = {"corpus": "last", "tag": "<BT>", "weight": 0.5}


def test_a_mixture_of_equal_weights_is_planned_as_its_concatenation(folder: Path) -> None:
    plans = []
    for recipe in (mixture(folder, "first", "last"), toy_recipe(folder)):
        text = TrainingText.load(recipe)
        subwords = text.subwords(recipe)
        corpus = encode_corpus(text.train, *subwords, None)
        epochs = [plan_epoch(recipe, corpus, *subwords, number) for number in (0, 1)]
        rows = [[rows.tolist() for group in epoch.groups() for rows in group] for epoch in epochs]
        plans.append((rows, text.fingerprints, subwords[0].serialized))
    assert plans[0] == plans[1]


# --- tags -------------------------------------------------------------------------------------------------------

KINDS: list[dict[str, Any]] = [
    {"kind": "word", "size": 14},
    {"kind": "unigram", "size": 20},
    {"kind": "bpe", "size": 274, "byte_fallback": True, "joint": False},
]


@pytest.mark.parametrize("subwords", KINDS)
def test_a_tag_is_one_token(folder: Path, subwords: dict[str, Any]) -> None:
    recipe = mixture(folder, {"corpus": "first", "tag": "<a,b>"}, BACK, subwords=subwords)
    text = TrainingText.load(recipe)
    source, target = text.subwords(recipe)
    corpus = encode_corpus(text.train, source, target, None)
    tags = {source.tokens(corpus[[row]][0][0][:1])[0] for row in range(40)}
    assert tags == {"▁<a,b>"}
    assert {source.tokens(corpus[[row]][0][0][:1])[0] for row in range(40, 100)} == {"▁<BT>"}
    for row in (0, 99):
        assert source.decode(corpus[[row]][0][0]) == text.train.source[row]
        plain = text.train.untagged.source[row]
        assert source.encode(plain) == corpus[[row]][0][0][1:]
    if source is not target:
        assert not {"▁<a,b>", "▁<BT>"} & {*target.tokens(range(len(target)))}


def test_given_subwords_that_split_a_tag_cause_a_warning(folder: Path) -> None:
    recipe = mixture(folder, {"corpus": "first", "tag": "<a,b>"}, BACK, subwords=KINDS[1])
    source, _ = TrainingText.load(recipe).subwords(recipe)
    assert split_tags_warning(recipe.data, source) is None
    other, _ = TrainingText.load(mixture(folder, "first", BACK, subwords=KINDS[1])).subwords(recipe)
    warning = split_tags_warning(recipe.data, other)
    assert warning is not None
    assert "the subwords split <a,b> (" in warning
    assert "<BT>" not in warning


# --- links ------------------------------------------------------------------------------------------------------


def test_links_of_a_file_count_words_without_the_tag(folder: Path) -> None:
    plain, tagged = mixture(folder, "first", "last"), mixture(folder, "first", BACK)
    before, after = (
        load_links(f"{folder}/train.align", load_training_corpus(recipe.data), source="src").of_rows(range(100))
        for recipe in (plain, tagged)
    )
    for row in range(100):
        assert after[row].tolist() == (before[row] + [[0, 0] if row < 40 else [1, 0]]).tolist()
    (folder / "few.align").write_text("0-0\n")
    with pytest.raises(DataError, match=r"few\.align has 1 line, but .*first \+ .*last has 100 pairs"):
        load_links(f"{folder}/few.align", load_training_corpus(tagged.data), source="src")


# --- runs -------------------------------------------------------------------------------------------------------


def test_a_run_resumes_to_the_same_bytes(folder: Path) -> None:
    guided = {"guided_alignment": {"links": f"{folder}/train.align"}}
    whole = mixture(folder, {"corpus": "first", "weight": 1.5}, BACK, training=guided)
    train(whole, folder / "whole", device="cpu", quiet=True)
    short = mixture(folder, {"corpus": "first", "weight": 1.5}, BACK, training={**guided, "epochs": 1})
    train(short, folder / "parts", device="cpu", quiet=True)
    train(whole, folder / "parts", device="cpu", quiet=True, resume=True, force=True)
    weights = [outcome(folder / run)["weights.safetensors"] for run in ("whole", "parts")]
    assert weights[0] == weights[1]
    described = json.loads((folder / "whole/data.json").read_text())["train"]
    assert (described["lines"], described["locator"]) == (100, f"{folder}/first + {folder}/last")
    assert changed_keys(whole, folder / "whole/recipe.yaml") == []
