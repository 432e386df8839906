"""Search for better settings of a recipe on its validation text: trials that optuna chooses, within a budget of time.

The folder is that of a comparison, with a run per trial, and three files more:

recipe.yaml             the recipe that the search starts from
trials.journal          optuna's record of the trials, from which the search goes on
best.yaml               the recipe of the best trial so far
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from nmt.bundle.folder import RECIPE
from nmt.comparison.plan import Candidate, write_recipes
from nmt.comparison.runs import Record, Share, Watcher, train_all
from nmt.errors import DataError, UsageError
from nmt.recipe import Recipe, changed_keys, dump_recipe, parse_recipe, put, value_at
from nmt.runtime.files import write_content

JOURNAL, BEST = "trials.journal", "best.yaml"
_NAME, _SECONDS, _VALUE = "name", "seconds", "value"
"""What a trial records: the name of its run, how long it took, and its best validation."""


@dataclass(frozen=True)
class Range:
    """What is tried for one setting: the recipe's value times a factor.

    Attributes:
        key: the setting.
        least: the smallest factor.
        most: the largest.
        multiple: what an integer is rounded to; 0 for other numbers.
        limit: the largest value.
    """

    key: str
    least: float
    most: float
    multiple: int = 0
    limit: float = float("inf")

    def value(self, start: float, factor: float) -> float:
        """The value of this setting."""
        if self.multiple:
            return max(round(start * factor / self.multiple), 1) * self.multiple
        return min(float(f"{start * factor:.3g}"), self.limit)


SPACE = (
    Range("subwords.size", 0.4, 2, multiple=100),
    Range("model.encoder.hidden", 0.6, 1.6, multiple=32),
    Range("model.dropout.embedding", 0.5, 1.6, limit=0.6),
    Range("model.dropout.annotations", 0.5, 1.6, limit=0.6),
    Range("model.dropout.readout", 0.5, 1.5, limit=0.7),
    Range("training.optimizer.rate", 0.4, 2.5),
    Range("training.batch_tokens", 0.5, 2, multiple=128),
    Range("training.updates", 0.5, 2, multiple=100),
    Range("training.label_smoothing", 0.3, 2, limit=0.4),
)
"""What is searched, as far as a recipe has these settings and they are not zero or null."""


@dataclass(frozen=True)
class Trial:
    """One trial: the settings that were changed, its best validation, and its run."""

    settings: Mapping[str, float]
    value: float
    seconds: float
    candidate: Candidate


class Tuning:
    """A search for settings, which goes on from its folder. The first trial is the recipe itself.

    Args:
        recipe: the recipe.
        folder: the folder of the trials.
        budget: seconds of all trials together, those of earlier calls included.
    """

    def __init__(self, recipe: Recipe, folder: Path, budget: float) -> None:
        self.recipe, self.folder, self.budget = recipe, folder, budget
        self.metric = recipe.training.validation.metrics[0]
        self.is_loss = self.metric == "perplexity"
        self.tree = json.loads(recipe.model_dump_json())
        self._check_recipe()
        self.ranges = {item.key: item for item in SPACE if value_at(self.tree, item.key)}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(
            study_name=recipe.name,
            storage=JournalStorage(JournalFileBackend(str(folder / JOURNAL))),
            direction="minimize" if self.is_loss else "maximize",
            sampler=optuna.samplers.TPESampler(seed=recipe.seed, n_startup_trials=6, multivariate=True),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=20),
            load_if_exists=True,
        )

    def _check_recipe(self) -> None:
        """Raise UsageError if the trials in the folder are those of another recipe."""
        path = self.folder / RECIPE
        if not path.exists():
            write_content(path, dump_recipe(self.recipe))
        elif changed := changed_keys(self.recipe, path):
            raise UsageError(
                f"The trials in {self.folder} are those of a recipe with another {', '.join(changed)}: choose another --out."
            )

    @property
    def spent(self) -> float:
        """Seconds of all trials so far; one that was taken up again has those before it too."""
        seconds = {trial.user_attrs.get(_NAME): trial.user_attrs.get(_SECONDS, 0.0) for trial in self.study.trials}
        return float(sum(seconds.values()))

    @property
    def trials(self) -> list[Trial]:
        """The trials that were validated, best first."""
        trials = {
            trial.user_attrs[_NAME]: Trial(
                self._settings(trial.params),
                trial.user_attrs[_VALUE],
                trial.user_attrs[_SECONDS],
                self._candidate(trial.user_attrs[_NAME], trial.params),
            )
            for trial in self.study.trials
            if _VALUE in trial.user_attrs
        }  # one that was taken up again has its last record
        return sorted(trials.values(), key=lambda trial: trial.value, reverse=not self.is_loss)

    def run(self, share: Share, watcher: Watcher, *, inherited: Sequence[int] = ()) -> None:
        """Train trial after trial until the budget is spent. A trial ends early if others were better as far as it has come.

        Raises:
            Stopped: on a signal; the next call goes on with the trial.
            DataError: the folder cannot be written.
        """
        self._take_up()
        while self.spent < self.budget:
            trial = self.study.ask()
            factors = {key: trial.suggest_float(key, own.least, own.most, log=True) for key, own in self.ranges.items()}
            candidate = self._candidate(trial.user_attrs.get(_NAME, f"trial-{trial.number + 1:03}"), factors)
            trial.set_user_attr(_NAME, candidate.name)
            write_recipes([candidate])
            following = _Following(trial, watcher, self.metric, self.budget - self.spent)
            problems = {}
            try:
                problems = train_all([candidate], share, following, inherited=inherited)
            except optuna.TrialPruned:
                watcher.ended(candidate, None)
            finally:
                following.record_time()
            self._end(trial, following.best, problems.get(candidate.name))

    def _take_up(self) -> None:
        """Put trials that a signal or crash has interrupted first, with their runs; in a new search, the recipe itself."""
        if not self.study.trials:
            self.study.enqueue_trial(dict.fromkeys(self.ranges, 1.0))
        for trial in self.study.get_trials(states=[TrialState.RUNNING]):
            self.study.tell(trial.number, state=TrialState.FAIL)
            self.study.enqueue_trial(trial.params, trial.user_attrs)

    def _end(self, trial: optuna.Trial, best: float | None, problem: str | None) -> None:
        """Record how a trial ended. Raises DataError if the first one failed, since the recipe itself is at fault."""
        if best is None or problem is not None:
            self.study.tell(trial, state=TrialState.FAIL)
            if trial.number == 0:
                raise DataError(f"The recipe itself cannot be trained: {problem}")
            return
        self.study.tell(trial, best)
        write_content(self.folder / BEST, dump_recipe(self.trials[0].candidate.recipe))

    def _candidate(self, name: str, factors: Mapping[str, float]) -> Candidate:
        """The recipe of a trial, with its paths."""
        tree = json.loads(json.dumps({**self.tree, "name": name}))
        for key, value in self._settings(factors).items():
            put(tree, key, value)
        return Candidate(parse_recipe(tree, str(self.folder)), self.folder)

    def _settings(self, factors: Mapping[str, float]) -> dict[str, float]:
        """The settings that a trial changes; a factor of 1 changes nothing."""
        return {
            key: self.ranges[key].value(value_at(self.tree, key), factor)
            for key, factor in factors.items()
            if factor != 1
        }


class _Following:
    """Watches the training of one trial: reports validations to optuna, and ends it if it is not promising or time is up."""

    def __init__(self, trial: optuna.Trial, watcher: Watcher, metric: str, seconds: float) -> None:
        self.trial, self.watcher, self.metric = trial, watcher, metric
        self.started_at, self.seconds = time.monotonic(), seconds
        self.before = trial.user_attrs.get(_SECONDS, 0.0)
        self.best: float | None = trial.user_attrs.get(_VALUE)

    def started(self, candidate: Candidate) -> None:
        """The training was started or resumed."""
        self.watcher.started(candidate)

    def moved(self, candidate: Candidate, records: Sequence[Record]) -> None:
        """The training has logged new records. Raises TrialPruned to end it."""
        self.watcher.moved(candidate, records)
        updates = candidate.recipe.training.updates
        for record in records:
            if record["kind"] == "valid":
                self._report(record, updates or record["update"])
        if self.best is not None and time.monotonic() - self.started_at > self.seconds:
            raise optuna.TrialPruned

    def _report(self, record: Record, updates: int) -> None:
        value = record[self.metric]
        better = value if self.best is None else (min if self.metric == "perplexity" else max)(value, self.best)
        self.best = better
        self.trial.set_user_attr(_VALUE, better)
        self.trial.report(value, step=100 * record["update"] // updates)
        if self.trial.should_prune():
            raise optuna.TrialPruned

    def ended(self, candidate: Candidate, problem: str | None) -> None:
        """The training has finished or failed."""
        self.watcher.ended(candidate, problem)

    def record_time(self) -> None:
        """Add the time since the start to that of the trial."""
        self.trial.set_user_attr(_SECONDS, self.before + time.monotonic() - self.started_at)
