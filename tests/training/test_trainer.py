"""Whole runs: they learn, stop, resume, and leave a model folder."""

from pathlib import Path

import pytest
import torch

from nmt.bundle.folder import Bundle, load_tensors, weights_of
from nmt.data.locators import load_corpus
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from nmt.training.best import average_run, save_last
from nmt.training.folder import LOCK, STATE, State, load_state
from nmt.training.log import read_validations
from nmt.training.losses import PendingStats
from nmt.training.optim import Clock
from nmt.training.trainer import train
from nmt.training.update import PreparedGroup, TrainStep
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reversal")
    write_reversal(folder, longest=5)
    return folder


def test_reversal_is_learned_and_its_alignment_is_anti_diagonal(corpus: Path, tmp_path: Path) -> None:
    # With three seeds 98 to 100 % of the links are anti-diagonal.
    recipe = toy_recipe(corpus, training={"epochs": 8, "validation": {"every": 150}}, seed=7)
    result = train(recipe, tmp_path / "run", device=CPU, quiet=True)
    bundle = Bundle.load(tmp_path / "run")
    valid = load_corpus(f"{corpus}/valid", source="src", target="tgt")
    translations = list(Translator([bundle]).translate(valid.source))
    correct = [translation.text == gold for translation, gold in zip(translations, valid.target, strict=True)]
    assert sum(correct) / len(correct) >= 0.95
    assert result.best > 90
    hits = [
        int(weights.argmax()) == length - 1 - row
        for translation, is_correct in zip(translations, correct, strict=True)
        if is_correct and (length := len(translation.source_ids))
        for row, weights in enumerate(translation.hypotheses[0].alignment[:length, :length])
    ]
    assert sum(hits) / len(hits) > 0.9


def test_patience_stops_a_run_that_does_not_improve(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    still = {
        "epochs": 50,
        "optimizer": {"kind": "sgd", "rate": 1e-12},
        "validation": {"patience": 2, "metrics": "perplexity"},
    }
    train(toy_recipe(small, training=still), tmp_path / "run", device=CPU)
    assert len(read_validations(tmp_path / "run")) <= 4
    assert "Training stops: the last 2 validations gave no better score" in capsys.readouterr().err


def test_accumulated_batches_give_the_gradient_of_one_large_batch(small: Path, tmp_path: Path) -> None:
    one_update = {"updates": 1, "optimizer": {"kind": "sgd", "rate": 0.1}, "clip_norm": None}
    weights = []
    for name, batches in (("large", {"batch_tokens": 10_000}), ("sum", {"accumulate": 1000})):
        train(toy_recipe(small, training=one_update | batches), tmp_path / name, device=CPU, quiet=True)
        weights.append(load_tensors(tmp_path / name / "weights.safetensors"))
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], rtol=1e-4, atol=1e-6)


def test_a_run_folder_is_a_model_folder_whose_best_checkpoints_can_be_averaged(small: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(toy_recipe(small, training={"validation": {"keep_best": 2}}), run, device=CPU, quiet=True)
    model = {"recipe.yaml", "source.model", "target.model", "weights.safetensors"}
    assert {path.name for path in run.iterdir()} == {*model, "data.json", "metrics.jsonl", "best", STATE, LOCK}
    assert [record["epoch"] for record in read_validations(run)] == [1, 2, 2]
    assert all({"loss", "perplexity", "bleu", "best"} <= record.keys() for record in read_validations(run))
    assert average_run(run, tmp_path / "mean") == 2
    files = sorted((run / "best").glob("*.safetensors"))
    assert len(files) == 2
    one, two, mean = map(load_tensors, [*files, tmp_path / "mean" / "weights.safetensors"])
    for name in mean:
        torch.testing.assert_close(mean[name], (one[name] + two[name]) / 2)
    Bundle.load(tmp_path / "mean")
    with pytest.raises(UsageError, match="between 1 and 2"):
        average_run(run, tmp_path / "other", best=3)


@pytest.mark.parametrize("ema", [None, 0.5])
def test_the_last_weights_are_a_model_while_a_run_goes_on_that_has_none(
    small: Path, tmp_path: Path, ema: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, update, states = tmp_path / "run", TrainStep.update, list[State]()

    def look(self: TrainStep, group: PreparedGroup, clock: Clock) -> PendingStats:
        if clock.update == 3:
            assert not (run / "weights.safetensors").exists()
            assert save_last(run, tmp_path / "last") == 3
            states.append(load_state(run))
        return update(self, group, clock)

    monkeypatch.setattr(TrainStep, "update", look)
    monkeypatch.setattr("nmt.training.trainer.SAVE_EVERY", 0.0)
    train(toy_recipe(small, training={"ema": ema, "updates": 4}), run, device=CPU, quiet=True)
    expected = states[0].average if ema else states[0].weights
    for name, value in weights_of(Bundle.load(tmp_path / "last").model).items():
        assert torch.equal(value, expected[name])
    with pytest.raises(UsageError, match="exists already"):
        save_last(run, tmp_path / "last")


def test_a_run_that_is_extended_says_where_it_goes_on(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, schedule = tmp_path / "run", {"kind": "cosine", "final": 0.1}
    train(toy_recipe(small, training={"updates": 4, "schedule": schedule}), run, device=CPU)
    assert "goes on" not in capsys.readouterr().err
    validation = {"every": 3, "patience": 50, "keep_best": 2}
    longer = {"updates": 8, "epochs": 9, "log_every": 2, "schedule": schedule, "validation": validation}
    train(toy_recipe(small, training=longer), run, device=CPU, resume=True)
    assert "The run goes on after update 4 of 8.\n" in capsys.readouterr().err
    assert [record["update"] for record in read_validations(run)] == [4, 6, 8, 8]
    assert len(list((run / "best").iterdir())) == 2
    train(toy_recipe(small, training=longer), run, device=CPU, resume=True)
    assert "The run is finished, after update 8;" in capsys.readouterr().err
