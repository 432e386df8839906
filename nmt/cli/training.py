"""`nmt train` and `nmt average`."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli import options
from nmt.cli.options import THE_RECIPES, argument, flag, option
from nmt.errors import UsageError
from nmt.runtime.cores import usable_cores
from nmt.runtime.wording import counted

_text = partial(option, panel="Text", default=THE_RECIPES)
SourceCode = Annotated[str | None, _text("Source language, such as es.", "CODE", "--source")]
TargetCode = Annotated[str | None, _text("Target language, such as gn.", "CODE", "--target")]
TrainText = Annotated[str | None, _text("Training text: 'data/train.{es,gn}', a table, a corpus.", "TEXT", "--train")]
ValidText = Annotated[str | None, _text("Validation text; without any, a part of --train.", "TEXT", "--valid")]
TestText = Annotated[str | None, _text("Text for `nmt evaluate`.", "TEXT", "--test")]
MonolingualText = Annotated[str | None, _text("More text of the target language.", "FILE", "--monolingual")]


def train(
    recipe: Annotated[str | None, argument(options.RECIPE_HELP, "RECIPE", default="auto")] = None,
    source: SourceCode = None,
    target: TargetCode = None,
    train: TrainText = None,
    valid: ValidText = None,
    test: TestText = None,
    monolingual: MonolingualText = None,
    settings: options.Settings = None,
    out: options.RunFolder = None,
    resume: Annotated[bool, flag("--resume", "Resume the run in --out.")] = False,
    force: Annotated[bool, flag("--force", "Resume even if the recipe or the text has changed.")] = False,
    dump_recipe: Annotated[bool, flag("--dump-recipe", "Print the recipe with all defaults, and exit.")] = False,
    device: options.Device = "auto",
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Train a model on your text, or that of a recipe.

    Examples:
      nmt train --source es --target gn --train 'data/train.{es,gn}' --valid 'data/dev.{es,gn}'
      nmt train mine.yaml --set training.epochs=5 --out runs/short

    Details:

    Without validation text, 1,000 pairs of the training text (at most a tenth) are kept back for it, the same in every run.

    Without a recipe, or with `base: auto` in it, all settings that it leaves open follow from the text; the log and the recipe in
    the run folder say why.

    --monolingual names a file with one sentence per line. The model is trained without it; a model of the reverse direction translates
    it back; and a model is trained on both texts. The better one is kept. That takes some three times as long. Until it ends, the
    model is in RUN/alone.

    The run folder is also the model folder, from the first validation on. It holds the log `metrics.jsonl` and its plot
    `learning-curve.png`.

    --set takes dotted keys and YAML values, such as model.attention.score=general. --dump-recipe shows all keys.

    Ctrl-C, SIGTERM and closing the terminal save the state and print how to resume (exit status 130, 143 and 129); a second
    Ctrl-C ends at once. The state is also saved with every validation and every ten minutes. On a CPU with the same number of
    --threads, a resumed run gives the same bytes as an uninterrupted one. --resume with more training.epochs or
    training.updates, another patience, or other intervals of log and validation extends a run; other changes need --force.

    An update is skipped if its loss or gradient is not finite, or its batch does not fit into GPU memory (which ends a training of
    several processes). Five in a row end training; the last good model stays.

    Several GPUs train one model with `torchrun --nproc-per-node 4 -m nmt train ...`. With --max-restarts 3, a training that loses
    a process goes on from its last saved state.
    """
    from nmt import recipe as recipes
    from nmt.training.auto import load_recipe

    text = {"source": source, "target": target, "train": train, "valid": valid, "test": test}
    text["monolingual"] = monolingual
    given = {f"data.{key}": value for key, value in text.items() if value is not None}
    if resume and out is not None and recipe is None and not given:
        recipe = _recipe_to_resume(out)
    path = recipes.find_recipe(recipe or "auto")
    missing = [f"--{key}" for key in ("source", "target", "train") if text[key] is None]
    if recipe is None and missing:
        raise UsageError(f"Give a recipe, or the text to train on: {', '.join(missing)} missing (`nmt train --help`).")
    if not missing and recipes.leaves_data_open(path):
        given["name"] = f"{source}-{target}"
    overrides = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]
    overrides += settings or ()
    config = load_recipe(path, overrides, run=out if resume else None)
    if dump_recipe:
        typer.echo(recipes.dump_recipe(config), nl=False)
        return
    from nmt.training import parallel

    is_first = parallel.rank_of_process() == 0
    if threads is None and parallel.count_of_ranks() > 1:
        threads = max(usable_cores() // parallel.ranks_on_this_machine(), 1)
    options.set_up(quiet=quiet or not is_first, threads=threads, trains=True)
    from nmt.plotting.curves import plot_learning_curve
    from nmt.runtime.device import choose_device
    from nmt.training.log import METRICS
    from nmt.training.trainer import Interrupted
    from nmt.training.trainer import train as run

    folder = out or Path("runs") / config.name
    resume = resume or parallel.goes_on_by_itself(folder)
    start: Callable[..., object] = run
    if config.data.monolingual is not None:
        from nmt.training.back_translation import train_with_monolingual

        start = partial(train_with_monolingual, given=recipes.read_recipe(path, overrides)[1])
    try:
        start(config, folder, device=choose_device(device), resume=resume, force=force, quiet=quiet)
    except (Interrupted, parallel.LostRank) as ending:
        if is_first:
            raise
        raise typer.Exit(ending.exit_status) from None  # the first process says why
    if not is_first:
        return
    plot_learning_curve(folder / METRICS, folder / "learning-curve.png")
    typer.echo(folder)


def _recipe_to_resume(run: Path) -> str:
    from nmt.bundle.folder import RECIPE
    from nmt.training.folder import GIVEN

    if not run.is_dir():
        raise UsageError(f"There is no run folder {run} to resume.")
    return str(run / (GIVEN if (run / GIVEN).is_file() else RECIPE))


def average(
    run: Annotated[Path, argument("Run folder.", "RUN")],
    output: Annotated[
        Path | None, option("New model folder.", "DIR", "--output", "-o", default="RUN-average, or RUN-last")
    ] = None,
    best: Annotated[int | None, option("Average the N best checkpoints.", "N", default="all", min=1)] = None,
    last: Annotated[
        bool, flag("--last", "Take the last weights, or their moving average if training.ema is set.")
    ] = False,
) -> None:
    """Average a run's best checkpoints, or take its last weights.

    Examples:
      nmt average runs/bahdanau --best 3 -o models/mean-of-3
      nmt average runs/bahdanau --last

    Details:

    A run keeps as many checkpoints as the recipe's training.validation.keep_best says. Its last weights are those of the state,
    which every validation saves, and every ten minutes do: also of a run that was killed or goes on.
    """
    from nmt.training.best import average_run, save_last

    options.set_up()
    if last and best is not None:
        raise UsageError("--best and --last exclude each other: take the mean of the best weights, or the last ones.")
    folder = output or Path(os.path.relpath(f"{run.resolve()}-{'last' if last else 'average'}"))
    if last:
        report = f"The weights after {counted(save_last(run, folder), 'update')}."
    else:
        report = f"Averaged {counted(average_run(run, folder, best=best), 'checkpoint')}."
    typer.echo(report, err=True)
    typer.echo(folder)
