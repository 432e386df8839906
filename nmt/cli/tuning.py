"""`nmt tune`: search for better settings of a recipe on its validation text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import Device, Quiet, Settings, Threads, option, set_up
from nmt.cli.text_options import RecipeArgument, SourceCode, TargetCode, TestText, TrainText, ValidText, named_recipe
from nmt.cli.training_progress import TrainingProgress
from nmt.errors import UsageError

if TYPE_CHECKING:
    from nmt.comparison.tuning import Tuning

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _seconds(text: str) -> float:
    """The seconds of a time such as 2h, 90m or 1h30m."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise typer.BadParameter(f"'{text}' is no time such as 2h, 90m or 1h30m.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def tune(
    recipe: RecipeArgument = None,
    source: SourceCode = None,
    target: TargetCode = None,
    train: TrainText = None,
    valid: ValidText = None,
    test: TestText = None,
    *,
    budget: Annotated[
        float, option("Time of all trials together, such as 90m or 2h.", "TIME", parser=_seconds, default=False)
    ],
    settings: Settings = None,
    out: Annotated[
        Path | None,
        option("Folder of the trials.", "DIR", "--out", "-o", default="runs/tune-NAME, by the recipe's name"),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Search for better settings of a recipe, within a budget of time.

    Examples:
      nmt tune mine.yaml --budget 2h
      nmt tune --source es --target gn --train data/train.{es,gn} --valid data/dev.{es,gn} --budget 8h

    Details:

    The first trial is the recipe itself. The others change sizes of vocabulary, layers and batches, dropout, learning rate, label
    smoothing and the number of updates, as optuna (`pip install "attentional-nmt[tune]"`) chooses from the trials before; one that is worse
    than others were after as many updates ends early. The first metric of training.validation decides.

    The folder gets the recipe of the best trial, `best.yaml`, and a model folder for each trial under `runs/`; the table on stdout
    has all trials, best first. To go on after an interruption, or with a larger budget, run the same command again.
    """
    from nmt.training.auto import load_recipe

    name, overrides = named_recipe(recipe, source=source, target=target, train=train, valid=valid, test=test)
    config = load_recipe(name, [*overrides, *(settings or ())])
    set_up(quiet=quiet)
    try:
        from nmt.comparison.tuning import BEST, Tuning
    except ModuleNotFoundError:
        raise UsageError('`nmt tune` needs optuna: install it with pip install "attentional-nmt[tune]".') from None
    from nmt.comparison import plan
    from nmt.comparison.runs import Share, stoppable
    from nmt.runtime.cores import at_most_cores, usable_cores
    from nmt.runtime.device import choose_device, processor

    folder = out or Path("runs") / f"tune-{config.name}"
    each = usable_cores() if threads is None else at_most_cores(threads)
    with plan.locked(folder) as lock, stoppable():
        tuning = Tuning(config, folder, budget)
        with TrainingProgress(None, quiet=quiet) as watch:
            tuning.run(Share(1, each, device, processor(choose_device(device))), watch, inherited=[lock])
    _print_table(tuning)
    typer.echo(f"{folder / BEST}: the best recipe.", err=True)


def _print_table(tuning: Tuning) -> None:
    """All trials, best first."""
    from nmt.runtime.wording import in_columns

    rows = [["trial", tuning.metric, "minutes", "settings"]]
    for trial in tuning.trials:
        changed = "  ".join(f"{key.rpartition('.')[2]}={value:g}" for key, value in trial.settings.items())
        rows.append([trial.candidate.name, f"{trial.value:.2f}", f"{trial.seconds / 60:.1f}", changed or "the recipe"])
    for line in in_columns(rows):
        typer.echo(line)
