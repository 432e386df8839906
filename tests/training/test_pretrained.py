"""Starting from another model: fine-tuning with its subwords, and transfer with others."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.bundle.folder import Bundle, weights_of
from nmt.errors import DataError
from nmt.recipe import Recipe
from nmt.text.subwords import Subwords
from nmt.training.log import read_validations
from nmt.training.pretrained import load_pretrained
from nmt.training.trainer import Interrupted, train
from tests.training.toy import recipe as toy_recipe

PARENT = ["a b c d", "c d e f", "f e d c b a"]
CHILD = ["d e f g", "g h h g", "f e d"]
"""Its words are d to h; the parent has a to f."""


@pytest.fixture(scope="module")
def parent(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("parent") / "run"
    train(toy_recipe(small), run, device="cpu", quiet=True)
    return run


def starting_from(folder: Path, small: Path, **settings: Any) -> Recipe:
    return toy_recipe(small, training={"pretrained": str(folder), "epochs": 1, **settings})


def best_perplexity(run: Path) -> float:
    records = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return float([record["perplexity"] for record in records if record["kind"] == "valid"][-1])


def test_fine_tuning_continues_from_the_weights_and_subwords(parent: Path, small: Path, tmp_path: Path) -> None:
    frozen = starting_from(parent, small, updates=1, optimizer={"kind": "sgd", "rate": 1e-20})
    train(frozen, tmp_path / "run", device="cpu", quiet=True)
    start, result = Bundle.load(parent), Bundle.load(tmp_path / "run")
    for name, value in weights_of(start.model).items():
        assert torch.equal(weights_of(result.model)[name], value), name
    assert (result.source.serialized, result.target.serialized) == (start.source.serialized, start.target.serialized)
    assert best_perplexity(tmp_path / "run") == best_perplexity(parent)


def test_the_start_is_validated_and_stays_if_training_makes_it_worse(
    parent: Path, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    harmful = starting_from(parent, small, optimizer={"kind": "sgd", "rate": 2.0}, clip_norm=None, updates=2, ema=0.5)
    train(harmful, run, device="cpu")
    assert capsys.readouterr().err.endswith("\nNo later model was better: the model is still the start (update 0).\n")
    first, last = read_validations(run)
    assert (first["update"], first["best"], first["perplexity"]) == (0, True, best_perplexity(parent))
    assert (last["update"], last["best"]) == (2, False)
    start, result = (weights_of(Bundle.load(folder).model) for folder in (parent, run))
    assert all(torch.equal(result[name], start[name]) for name in start)


def test_a_resumed_run_does_not_need_the_pretrained_model(
    parent: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "parent"
    shutil.copytree(parent, copy)
    recipe = starting_from(copy, small, epochs=2)
    train(recipe, tmp_path / "whole", device="cpu", quiet=True)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nmt.training.trainer.Trainer._train_epoch", interrupt)
        with pytest.raises(Interrupted):
            train(recipe, tmp_path / "run", device="cpu", quiet=True)
    shutil.rmtree(copy)
    train(recipe, tmp_path / "run", device="cpu", resume=True, quiet=True)
    whole, result = (weights_of(Bundle.load(tmp_path / name).model) for name in ("whole", "run"))
    assert all(torch.equal(whole[name], result[name]) for name in whole)


@pytest.mark.parametrize(("parent_tie", "tie"), [("all", "none"), ("none", "all"), ("target", "target")])
def test_with_new_subwords_each_common_token_keeps_its_weights(
    parent_tie: str, tie: str, small: Path, tmp_path: Path
) -> None:
    def bundle(lines: list[str], size: int, tied: str) -> Bundle:
        subwords = Subwords.train(lines, kind="word", size=size, byte_fallback=False)
        recipe = toy_recipe(small, training={"pretrained": {"model": str(tmp_path), "subwords": "new"}})
        model = recipe.model.model_copy(update={"tie": tied, "embedding_scale": 1.0})
        return Bundle.fresh(recipe.model_copy(update={"model": model}), subwords, subwords)

    old, new = bundle(PARENT, 10, parent_tie), bundle(CHILD, 9, tie)
    old.save(tmp_path)
    first = {name: value.clone() for name, value in weights_of(new.model).items()}
    pretrained = load_pretrained(new.recipe, lambda *args, **sizes: old.model)
    assert pretrained is not None
    sentence = pretrained.copy_to(new)
    assert sentence.endswith("which has 7 of 9 source tokens and 7 of 9 target tokens.")  # 4 special ones, d, e and f
    tokens, before = new.source.tokens(range(9)), old.source.tokens(range(10))
    weights = dict(old.model.named_parameters(remove_duplicate=False))
    for name, value in weights_of(new.model).items():
        if name.startswith(("source_embedding", "target_embedding", "output")):
            for row, token in enumerate(tokens):
                expected = weights[name][before.index(token)] if token in before else first[name][row]
                assert torch.equal(value[row], expected), (name, token)
        else:
            assert torch.equal(value, weights[name]), name


def test_another_architecture_is_refused_in_one_sentence(parent: Path, small: Path, tmp_path: Path) -> None:
    recipe = starting_from(parent, small)
    wider = recipe.model_copy(
        update={"model": toy_recipe(small, model={"embedding": 32, "encoder": {"hidden": 33}}).model}
    )
    with pytest.raises(
        DataError, match=r"^This recipe cannot start from .*: .* is \[.*\] here, but it has .*recipe\.yaml"
    ):
        train(wider, tmp_path / "run", device="cpu", quiet=True)
