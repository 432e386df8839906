"""recipes/tune.py: a search for better settings, whose first trial is the recipe itself, and which goes on where it ended."""

from pathlib import Path

import optuna
import pytest
import typer
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from typer.testing import CliRunner

from nmt.recipe import dump_recipe, value_at
from recipes.tune import FACTORS, choose, main
from tests.training.toy import recipe, write_reversal


def test_settings_are_scaled_within_their_factors_and_zero_stays(tmp_path: Path) -> None:
    toy = recipe(tmp_path)
    assert choose(optuna.trial.FixedTrial(dict.fromkeys(FACTORS, 1.0)), toy) == []
    chosen = choose(optuna.trial.FixedTrial(dict.fromkeys(FACTORS, 0.9)), toy)
    settings = {key: value for key, _, value in (setting.partition("=") for setting in chosen)}
    assert float(settings["training.optimizer.rate"]) == pytest.approx(0.9 * toy.training.optimizer.rate, rel=0.01)
    assert int(settings["training.batch_tokens"]) % 128 == 0
    assert all(value_at(toy.model_dump(), key) for key in settings)


@pytest.mark.slow
def test_trials_are_added_to_those_of_an_earlier_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_reversal(tmp_path, pairs=50, held_out=5)
    training = {"updates": 2, "batch_tokens": 128, "validation": {"metrics": ["perplexity"]}}
    settings = recipe(tmp_path, training=training, name="mine")
    (tmp_path / "mine.yaml").write_text(dump_recipe(settings))
    monkeypatch.delitem(FACTORS, "subwords.size")  # the letters allow no more words
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(main)
    for _ in range(2):
        printed = CliRunner().invoke(app, ["mine.yaml", "--trials", "1", "--set", "seed=2"], catch_exceptions=False)
        assert "perplexity" in printed.stdout
    study = optuna.load_study(
        study_name="mine", storage=JournalStorage(JournalFileBackend(str(tmp_path / "runs/tune/trials.journal")))
    )
    first, second = study.trials
    assert not first.user_attrs["settings"]
    assert "training.optimizer.rate=" in second.user_attrs["settings"]
    assert {path.name for path in (tmp_path / "runs/tune").glob("trial-*")} == {"trial-000", "trial-001"}
