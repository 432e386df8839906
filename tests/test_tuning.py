"""`nmt tune`: trials around a recipe, within a budget, that go on after an interruption."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from nmt.cli import app
from nmt.comparison import runs, tuning
from nmt.comparison.plan import Candidate
from nmt.comparison.runs import Share, Stopped
from nmt.comparison.tuning import Tuning
from nmt.errors import DataError, UsageError
from nmt.recipe import Recipe, load_recipe
from tests.commands import bad, nmt, use_forks
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

SHARE = Share(1, 1, "cpu", "any")


class Silent:
    """Shows nothing."""

    def started(self, candidate: Candidate) -> None: ...
    def moved(self, candidate: Candidate, records: Sequence[Any]) -> None: ...
    def ended(self, candidate: Candidate, problem: str | None) -> None: ...


class Trainings:
    """Stands for the training processes: each takes 10 s for each of 10 validations, and scores best with a rate of 2e-3."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = 0.0
        self.names: list[str] = []
        self.validations = 0
        self.interrupt_at: int | None = None
        self.problem: str | None = None
        monkeypatch.setattr(tuning, "train_all", self.train)
        # In this module alone: the loop of a server in another thread would wait for hours by another clock.
        monkeypatch.setattr(tuning, "time", SimpleNamespace(monotonic=lambda: self.clock))

    def train(self, candidates: Sequence[Candidate], share: Share, watcher: Any, *, inherited: Sequence[int]) -> Any:
        [candidate] = candidates
        assert load_recipe(candidate.recipe_file) == candidate.recipe
        self.names.append(candidate.name)
        if self.problem is not None:
            return {candidate.name: self.problem}
        updates = candidate.recipe.training.updates or 0
        for number in range(1, 11):
            self.clock += 10
            self.validations += 1
            if self.validations == self.interrupt_at:
                raise Stopped(2)
            score = number / 10 * 40 - 1e4 * abs(candidate.recipe.training.optimizer.rate - 2e-3)
            watcher.moved(candidate, [{"kind": "valid", "update": number * updates // 10, "chrf": score}])
        return {}


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    return Trainings(monkeypatch)


def toy(folder: Path, **training: Any) -> Recipe:
    return toy_recipe(
        folder,
        training={
            "updates": 1000,
            "optimizer": {"kind": "adam", "rate": 1e-3},
            "validation": {"metrics": "chrf"},
            **training,
        },
    )


def test_trials_find_a_better_rate_within_the_budget(trainings: Trainings, tmp_path: Path) -> None:
    search = Tuning(toy(tmp_path), tmp_path, 1500)
    search.run(SHARE, Silent())
    assert 1500 <= trainings.clock < 1500 + 100
    first = next(trial for trial in search.trials if trial.candidate.name == "trial-001")
    assert not first.settings
    best = search.trials[0]
    assert best.value > first.value + 2
    assert abs(best.settings["training.optimizer.rate"] - 2e-3) < 1e-3
    assert load_recipe(tmp_path / "best.yaml") == best.candidate.recipe
    assert trainings.validations < 10 * len(trainings.names)  # some ended early


def test_settings_stay_in_their_ranges_and_those_that_a_recipe_lacks_are_left(
    trainings: Trainings, tmp_path: Path
) -> None:
    search = Tuning(toy(tmp_path), tmp_path, 1000)
    assert not {"model.dropout.readout", "training.label_smoothing"} & search.ranges.keys()  # zero in the toy
    search.run(SHARE, Silent())
    for trial in search.trials:
        recipe = trial.candidate.recipe
        assert 0.4e-3 <= recipe.training.optimizer.rate <= 2.5e-3
        assert recipe.training.batch_tokens % 128 == 0
        changed: Mapping[str, Any] = trial.settings
        assert changed.keys() <= search.ranges.keys()


def test_an_interrupted_search_goes_on_with_its_trial_and_counts_its_time(trainings: Trainings, tmp_path: Path) -> None:
    trainings.interrupt_at = 25
    with pytest.raises(Stopped):
        Tuning(toy(tmp_path), tmp_path, 1000).run(SHARE, Silent())
    interrupted, spent = trainings.names[-1], trainings.clock
    search = Tuning(toy(tmp_path), tmp_path, 1000)
    assert search.spent == spent
    search.run(SHARE, Silent())
    assert trainings.names.count(interrupted) == 2
    assert 1000 <= search.spent < 1100
    before = len(trainings.names)
    Tuning(toy(tmp_path), tmp_path, 1000).run(SHARE, Silent())  # the budget is spent
    assert len(trainings.names) == before
    assert len({trial.candidate.name for trial in search.trials}) == len(search.trials)


def test_a_lower_perplexity_is_better(trainings: Trainings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(candidates: Sequence[Candidate], share: Share, watcher: Any, *, inherited: Sequence[int]) -> Any:
        trainings.clock += 100
        rate = candidates[0].recipe.training.optimizer.rate
        watcher.moved(candidates[0], [{"kind": "valid", "update": 1000, "perplexity": 10 + 1e4 * abs(rate - 2e-3)}])
        return {}

    monkeypatch.setattr(tuning, "train_all", train)
    search = Tuning(toy(tmp_path, validation={"metrics": "perplexity"}), tmp_path, 1500)
    search.run(SHARE, Silent())
    assert search.trials[0].value == min(trial.value for trial in search.trials) < 18


def test_a_recipe_that_cannot_be_trained_ends_the_search(trainings: Trainings, tmp_path: Path) -> None:
    trainings.problem = "There is no file train.src."
    with pytest.raises(DataError, match=r"There is no file train\.src\."):
        Tuning(toy(tmp_path), tmp_path, 1000).run(SHARE, Silent())


def test_the_trials_of_another_recipe_are_not_gone_on_with(trainings: Trainings, tmp_path: Path) -> None:
    Tuning(toy(tmp_path), tmp_path, 100).run(SHARE, Silent())
    with pytest.raises(UsageError, match=r"another training\.label_smoothing"):
        Tuning(toy(tmp_path, label_smoothing=0.2), tmp_path, 100)


def test_the_command_prints_its_trials_and_leaves_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_reversal(tmp_path, pairs=100, held_out=5)
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "name: mine\ndata: {source: src, target: tgt, train: 'train.{src,tgt}', valid: 'valid.{src,tgt}'}\n"
        "subwords: {kind: word, size: 12, byte_fallback: false}\n"
        "model: {embedding: 8, encoder: {hidden: 8}, attention: {score: {size: 8}}, dropout: 0}\n"
        "training: {updates: 2, batch_tokens: 128, label_smoothing: 0, validation: {metrics: [perplexity]}}\n"
    )
    use_forks(runs, monkeypatch)
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["tune", str(mine), "--budget", "0.1s", "--threads", "1"])
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    assert lines[0].split() == ["trial", "perplexity", "minutes", "settings"]
    assert any("trial-001" in line and "the recipe" in line for line in lines)
    folder = tmp_path / "runs/tune-mine"
    assert (folder / "runs/trial-001/weights.safetensors").is_file()
    assert "trial-001: trained" in ended.stderr
    assert load_recipe(folder / "best.yaml").name in {path.name for path in (folder / "runs").iterdir()}


@pytest.mark.parametrize("budget", ["2", "h", "-1h", "2 hours", ""])
def test_a_budget_that_is_no_time_is_refused(budget: str) -> None:
    assert "is no time such as 2h" in bad(nmt("tune", "quickstart", "--budget", budget), 2)
