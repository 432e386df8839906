"""`nmt reproduce`: train the model of a recipe, and set its scores beside those that others reported."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path

import typer

from nmt.cli.options import AsJson, Device, Quiet, RecipeName, RunFolder, Settings, Threads, set_up
from nmt.runtime.progress import with_progress


def reproduce(
    name: RecipeName,
    settings: Settings = None,
    out: RunFolder = None,
    as_json: AsJson = False,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Train a recipe and print reported against achieved scores.

    Examples:
      nmt reproduce multi30k-en-de/bahdanau
      nmt reproduce iwslt15-en-vi/luong --json

    Details:

    Text that is missing is fetched; then the model is trained, translates the test text and is scored as the reported systems
    were (`reported` in the recipe). The table has the difference, the 95 % bootstrap interval of our score, and whether the
    reported one lies inside. The run folder also gets `reproduction.json` with all of it, and the translations.

    To resume, run the same command again: a training that has ended is not repeated, only scored. `nmt train --resume` and
    `nmt translate` use the same folder. To train on several GPUs, run `nmt train` with torchrun into the same folder first.
    """
    from nmt.training.auto import load_recipe

    recipe = load_recipe(name, settings or ())
    run = out or Path("runs") / recipe.name
    set_up(quiet=quiet, threads=threads, trains=True)
    import torch

    from nmt.comparison.held_out import HeldOut
    from nmt.comparison.measure import training_figures
    from nmt.comparison.plan import TRAINED, check_same_recipe
    from nmt.comparison.reproduction import RECORD, markdown, measure_scores, measurements, versions
    from nmt.decoding.loading import load
    from nmt.plotting.curves import plot_learning_curve
    from nmt.runtime.device import choose_device, processor
    from nmt.runtime.files import write_content
    from nmt.training.log import METRICS
    from nmt.training.trainer import train

    check_same_recipe(recipe, run)
    chosen_device = choose_device(device)
    text = HeldOut.load(recipe, "test")
    wanted = measurements(recipe, text)  # fails before any work is done
    if not (run / TRAINED).is_file():
        train(recipe, run, device=chosen_device, resume=run.is_dir(), quiet=quiet)
        plot_learning_curve(run / METRICS, run / "learning-curve.png")
        (run / TRAINED).touch()
    translator = load(run, chosen_device, to=text.corpus.languages[1])
    scores = measure_scores(translator, run, recipe, text, wanted, progress=partial(with_progress, quiet=quiet))
    description, aligned = text.describe()
    record = {
        "recipe": recipe.name,
        "scores": scores,
        "text": description,
        "aligned": aligned,
        "training": training_figures(run),
        "machine": f"{processor(chosen_device)}, {torch.get_num_threads()} threads",
        "command": shlex.join(["nmt", *sys.argv[1:]]),
        "versions": versions(),
    }
    content = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    write_content(run / RECORD, content)
    typer.echo(content if as_json else markdown(record), nl=False)
