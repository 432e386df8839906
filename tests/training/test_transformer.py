"""A Transformer through the public path: it learns, resumes, translates, scores and aligns as recurrent models do."""

from __future__ import annotations

from pathlib import Path

import pytest

import nmt
from nmt.recipe import Recipe, ValidationConfig
from nmt.training.trainer import Interrupted
from nmt.training.update import TrainStep
from tests.training.runs import outcome
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

LINES = ["a b c", "h", "d e a f", "", "c c g h b a"]
MODEL = {"kind": "transformer", "embedding": 32, "heads": 2, "feed_forward": 64, "norm": "pre", "dropout": 0.1}
MODEL |= {"encoder": {"layers": 1}, "decoder": {"layers": 2}, "alignment_layer": 2}
TRAINING = {"epochs": 4, "validation": {"every": 40}}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    folder = tmp_path_factory.mktemp("text")
    write_reversal(folder)
    guided = TRAINING | {"guided_alignment": {"links": str(folder / "train.align"), "weight": 2.0}}
    return toy_recipe(folder, training=guided, model=MODEL)


@pytest.fixture(scope="module")
def run(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transformer") / "run"
    nmt.train(recipe, folder, quiet=True, device="cpu")
    return folder


def test_a_reversal_is_learned_and_its_alignment_is_anti_diagonal(run: Path) -> None:
    translation = nmt.load(run, "cpu").score(("a b c d", "d c b a"))
    [hypothesis] = translation.hypotheses
    assert hypothesis.log_probability > -2.5
    assert hypothesis.alignment[:4].argmax(1).tolist() == [3, 2, 1, 0]


def test_an_interrupted_run_resumes_to_the_same_bytes(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = recipe.training.model_copy(update={"updates": 12, "validation": ValidationConfig(every=4)})
    recipe = recipe.model_copy(update={"training": short})
    nmt.train(recipe, tmp_path / "whole", quiet=True, device="cpu")
    update, calls = TrainStep.update, list[None]()

    def interrupted(*arguments: object) -> object:
        calls.append(None)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return update(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(TrainStep, "update", interrupted)
        with pytest.raises((Interrupted, KeyboardInterrupt)):
            nmt.train(recipe, tmp_path / "run", quiet=True, device="cpu")
    nmt.train(recipe, tmp_path / "run", quiet=True, device="cpu", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
