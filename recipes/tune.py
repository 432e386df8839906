"""Search for better settings around a recipe on its validation text: `python recipes/tune.py mine.yaml --trials 30`.

The first trial is the recipe itself. The others multiply its settings by factors that optuna (`pip install "attentional-nmt[tune]"`)
chooses from the trials before. The first metric of `training.validation` decides. The folder gets a model folder for each trial and
optuna's record: run the same command again to add trials. `nmt train` with the printed settings trains the best one again.
"""

from pathlib import Path
from typing import Annotated

import optuna
import typer
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import nmt
from nmt.recipe import value_at

FACTORS = {  # the least and the largest factor of a setting, and what a whole number is rounded to
    "subwords.size": (0.4, 2, 100),
    "model.encoder.hidden": (0.6, 1.6, 32),
    "model.dropout.embedding": (0.5, 1.6, None),
    "model.dropout.annotations": (0.5, 1.6, None),
    "model.dropout.readout": (0.5, 1.4, None),
    "training.optimizer.rate": (0.4, 2.5, None),
    "training.batch_tokens": (0.5, 2, 128),
    "training.updates": (0.5, 2, 100),
    "training.label_smoothing": (0.3, 2, None),
}


def choose(trial: optuna.trial.BaseTrial, recipe: nmt.Recipe) -> list[str]:
    """The settings of a trial, as `KEY=VALUE`; a setting that is zero or missing in the recipe stays."""
    settings = []
    for key, (least, largest, multiple) in FACTORS.items():
        if start := value_at(recipe.model_dump(), key):
            factor = trial.suggest_float(key, least, largest, log=True)
            value = f"{start * factor:.3g}" if multiple is None else max(round(start * factor / multiple), 1) * multiple
            settings += [f"{key}={value}"] if factor != 1 else []
    return settings


def main(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="File or name of a recipe.")],
    trials: Annotated[int, typer.Option(help="How many trials to add.")] = 20,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the trials.")] = Path("runs/tune"),
    device: str = "auto",
) -> None:
    """Search for better settings of a recipe."""
    recipe = nmt.load_recipe(name, settings or ())
    metric = recipe.training.validation.metrics[0]
    out.mkdir(parents=True, exist_ok=True)

    def measure(trial: optuna.Trial) -> float:
        chosen = choose(trial, recipe)
        trial.set_user_attr("settings", " ".join(chosen))
        trial_recipe = nmt.load_recipe(name, [*(settings or ()), *chosen])
        return nmt.train(trial_recipe, out / f"trial-{trial.number:03}", device=device).best

    study = optuna.create_study(
        study_name=recipe.name,
        storage=JournalStorage(JournalFileBackend(str(out / "trials.journal"))),
        direction="minimize" if metric == "perplexity" else "maximize",
        sampler=optuna.samplers.TPESampler(seed=recipe.seed, n_startup_trials=6, multivariate=True),
        load_if_exists=True,
    )
    if not study.trials:
        study.enqueue_trial(dict.fromkeys(FACTORS, 1.0))
    study.optimize(measure, n_trials=trials, catch=nmt.DataError)  # such as a vocabulary that the text does not allow
    print(
        f"trial {study.best_trial.number}: {metric} {study.best_value:.2f}  {study.best_trial.user_attrs['settings']}"
    )


if __name__ == "__main__":
    typer.run(main)
