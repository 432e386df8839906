"""Advice appears if the vocabulary or the model is too large for the corpus, and only then."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.catalogue import local_file, lookup
from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import encode_corpus
from nmt.data.locators import split_rows
from nmt.model.build import build_model
from nmt.recipe import find_recipe, leaves_data_open, load_recipe, shipped_recipes
from nmt.training import advice as advice_of_texts
from nmt.training.advice import TrainingSize, advise
from nmt.training.text import TrainingText
from nmt.training.trainer import train
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

BPE = {"kind": "bpe", "size": 8000}


def size(pairs: int = 3000, tokens: int = 27_000, vocabulary: int = 8000, parameters: int = 800_000) -> TrainingSize:
    return TrainingSize(pairs, (tokens, tokens), (vocabulary, vocabulary), parameters)


def advice(size: TrainingSize, **subwords: Any) -> str | None:
    return advise(toy_recipe(Path("x"), subwords={**BPE, **subwords}), size)


def test_rare_tokens_give_a_smaller_vocabulary_size() -> None:
    assert advice(size()) == (
        "A vocabulary of 8,000 tokens (6.8 occurrences each) is too much for 3,000 pairs. Try subwords.size=4000."
    )
    assert advice(size(vocabulary=5000)) is None
    assert "A vocabulary of 16,000 tokens (7.5 occurrences each)" in (advice(size(6_000, 60_000, 16_000)) or "")
    assert "Try subwords.size=500." in (advice(size(10, 100, parameters=100)) or "")


def test_with_separate_vocabularies_the_side_with_rarer_tokens_decides() -> None:
    sides = TrainingSize(7_000, (100_000, 60_000), (8000, 8000), 800_000)
    assert advice(sides) is None
    assert advice(sides, joint=False) == (
        "A vocabulary of 8,000 tokens (7.5 occurrences each) is too much for 7,000 pairs. Try subwords.size=4000."
    )


def test_word_and_char_vocabularies_and_existing_models_get_no_advice() -> None:
    for kind in ("word", "char"):
        assert advice(size(), kind=kind) is None
    assert advice(size(), source_model="a.model", target_model="a.model") is None


def test_a_pretrained_model_keeps_its_widths_and_its_subwords() -> None:
    large = size(parameters=9_000_000)
    fine_tuned = toy_recipe(Path("x"), subwords=BPE, training={"pretrained": "parent"})
    assert advise(fine_tuned, large) is None
    transferred = toy_recipe(Path("x"), subwords=BPE, training={"pretrained": {"model": "parent", "subwords": "new"}})
    assert (advise(transferred, large) or "").startswith(
        "A vocabulary of 8,000 tokens (6.8 occurrences each) is too much"
    )


def test_parameters_are_compared_with_target_tokens() -> None:
    assert advice(size(vocabulary=500, parameters=2_700_000)) is None
    assert advice(size(vocabulary=500, parameters=5_400_000)) == (
        "A model of 5.4 M parameters (200 per target token) is too much for 3,000 pairs. Try the widths of the recipe small."
    )
    assert "recipe medium." in (advice(size(100_000, 1_000_000, 8000, 200_000_000)) or "")


def test_two_problems_make_one_sentence() -> None:
    assert advice(size(parameters=9_000_000)) == (
        "A vocabulary of 8,000 tokens (6.8 occurrences each) and a model of 9.0 M parameters (333 per target token) "
        "are too much for 3,000 pairs. Try subwords.size=4000 and the widths of the recipe small."
    )


def test_advice_is_shown_once_at_the_start_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_reversal(tmp_path, pairs=100, held_out=5)
    cpu = torch.device("cpu")
    few = {"batch_tokens": 1024, "validation": {"metrics": "perplexity"}}
    train(toy_recipe(tmp_path, training={"epochs": 1, **few}), tmp_path / "run", device=cpu)
    assert capsys.readouterr().err.count("too much for 100 pairs. Try the widths of the recipe small.") == 1
    longer = toy_recipe(tmp_path, training={"epochs": 2, **few})
    train(longer, tmp_path / "run", device=cpu, resume=True, force=True)
    assert "too much for" not in capsys.readouterr().err
    train(longer, tmp_path / "quiet", device=cpu, quiet=True)
    assert capsys.readouterr().err == ""


def repeating(
    pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, counted: int, **filters: bool
) -> str | None:
    monkeypatch.setattr(advice_of_texts, "_COUNTED", counted)
    source, target = collect([[list(side) for side in zip(*pairs, strict=True)]], 2)
    data = toy_recipe(Path("x")).data
    data = data.model_copy(update={"filters": data.filters.model_copy(update=filters)})
    return advice_of_texts.duplicates_warning(data, ParallelCorpus(source, target, "text", ("en", "de")))


def test_repeated_pairs_are_counted_unless_a_filter_removes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("a", "b"), ("a", "c"), ("yes", "ja"), ("", ""), ("", ""), ("yes", "ja"), ("d", "c"), ("yes", "ja")]
    assert repeating(pairs, monkeypatch, 100) == (
        "Warning: 2 (25%) of the 8 pairs of data.train repeat another (such as line 3: yes, 3 times). "
        "data.filters.duplicates=false keeps one of each."
    )
    assert repeating(pairs, monkeypatch, 100, duplicates=False) is None
    assert repeating([*pairs[:4], *((str(number), "x") for number in range(200))], monkeypatch, 1000) is None


def test_the_share_of_repetition_in_a_large_text_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(str(number // 3), "x") for number in range(2000)] + [(f"{number}!", "x") for number in range(1000)]
    text = repeating(pairs, monkeypatch, 500) or ""
    assert re.match(r"Warning: 4\d% of the 3,000 pairs .* 3 times\)", text), text


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "quickstart" else pytest.mark.slow) for name in sorted(shipped_recipes())],
)
def test_no_shipped_recipe_is_too_large_for_its_own_corpus(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if leaves_data_open(find_recipe(name)):
        pytest.skip("has no corpus of its own")
    recipe = load_recipe(find_recipe(name))
    if not str(recipe.data.train).startswith("sample:"):
        monkeypatch.setenv("NMT_CORPORA", str(request.getfixturevalue("corpora")))
        corpus, _, split = split_rows(str(recipe.data.train))[0].partition("/")
        if lookup(corpus) is None:
            pytest.skip("needs the text that a command in the header of the recipe prepares")
        if local_file(corpus, split, recipe.data.target) is None:
            pytest.skip(f"needs {corpus}, which is large: nmt corpora fetch {corpus}")
    text = TrainingText.load(recipe)
    source, target = text.subwords(recipe)
    encoded = encode_corpus(text.train, source, target, recipe.data.filters)
    model = build_model(recipe.model, source_size=len(source), target_size=len(target))
    tokens = encoded.tokens
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert advise(recipe, TrainingSize(len(encoded), tokens, (len(source), len(target)), parameters)) is None
