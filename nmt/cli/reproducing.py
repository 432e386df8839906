"""`nmt reproduce`: train the model of a recipe, and set its scores beside those that others reported."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import AsJson, Device, Processes, Quiet, RecipeName, Settings, Threads, option, set_up
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import showing_downloads, with_progress

if TYPE_CHECKING:
    import torch

    from nmt.comparison.measure import HeldOut
    from nmt.comparison.reproduction import Reproduction
    from nmt.recipe import Recipe


@dataclass(frozen=True)
class _Machine:
    """What trains: each of the processes has its own threads."""

    device: torch.device
    processes: int
    threads: int

    @classmethod
    def of(cls, device: str, processes: int, threads: int | None) -> _Machine:
        """The device of this name; as many threads as cores, or as asked."""
        import torch

        from nmt.runtime.cores import usable_cores
        from nmt.runtime.device import choose_device

        share = torch.get_num_threads() if processes == 1 else max(usable_cores() // processes, 1)
        return cls(choose_device(device), processes, threads or share)

    def record(self) -> dict[str, Any]:
        """What to record of it."""
        from nmt.runtime.device import processor

        return {"processor": processor(self.device), "threads": self.threads, "processes": self.processes}


def reproduce(
    name: RecipeName,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        option(
            "Run folder.", "DIR", "--out", "-o", default="runs/NAME, by the recipe's name; with --smoke, none is kept"
        ),
    ] = None,
    smoke: Annotated[
        bool, option("Run every step in about a minute, on the first pairs of the text.", "", "--smoke")
    ] = False,
    as_json: AsJson = False,
    device: Device = "auto",
    threads: Threads = None,
    processes: Processes = 1,
    quiet: Quiet = False,
) -> None:
    """Train a recipe and print reported against achieved scores.

    Examples:
      nmt reproduce multi30k-en-de/bahdanau
      nmt reproduce iwslt15-en-vi/luong --smoke

    Details:

    Text that is missing is fetched; then the model is trained, translates the test text and is scored as the reported systems
    were (`reported` in the recipe). The table has the difference, the 95 % bootstrap interval of our score, and whether the
    reported one lies inside. The run folder also gets `reproduction.json` with all of it, and the translations.

    To resume, run the same command again: a training that has ended is not repeated, only scored. `nmt train --resume` and
    `nmt translate` use the same folder.

    --smoke takes 400 training, 50 validation and 50 test pairs, a few updates and a vocabulary that such text allows. It tells
    whether everything works; its scores say nothing. Corpora of the catalogue are fetched whole.
    """
    from nmt import recipe as recipes
    from nmt.training.auto import load_recipe

    path = recipes.find_recipe(name)
    recipe = load_recipe(path, settings or ())
    set_up(quiet=quiet, threads=threads)
    from nmt.comparison.measure import HeldOut
    from nmt.comparison.reported import measurements
    from nmt.comparison.runs import Stopped
    from nmt.comparison.smoke import smoke_recipe
    from nmt.training.checkpoint import has_state

    machine = _Machine.of(device, processes, threads)
    with ExitStack() as stack:
        _say("fetch", quiet=quiet)
        try:
            _fetch(recipe)
            recipe = smoke_recipe(recipe) if smoke else recipe
            if recipe.data.test is None:
                raise UsageError(
                    f"{recipe.name} names no data.test, so there is nothing to score: add it with --set data.test=..."
                )
            text = HeldOut.load(recipe, "test", None)
        except DataError as error:
            raise _with_advice(error, name) from None
        measurements(recipe, text)  # fails before any work is done
        run = out or Path("runs") / recipe.name
        is_kept = out is not None or not smoke
        if not is_kept:
            run = Path(stack.enter_context(TemporaryDirectory(prefix="nmt-"))) / recipe.name
        _say(f"train: {run}", quiet=quiet)
        try:
            _train(recipe, run, machine, quiet=quiet)
        except Stopped as ending:
            if is_kept:
                raise
            raise typer.Exit(ending.exit_status) from None  # there is nothing to go on from
        except DataError as error:
            raise error if has_state(run) else _with_advice(error, name) from None
        _say(f"decode and score: {text.corpus.name}", quiet=quiet)
        result = _scored(recipe, run, text, machine.device, smoke=smoke, quiet=quiet)
        result.save(run)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    else:
        typer.echo(result.markdown(), nl=False)
        if is_kept:
            _say(f"record: {run / 'reproduction.json'}", quiet=quiet)


def _with_advice(error: DataError, name: str) -> DataError:
    """The error that something is missing before the training, with where the recipe says how to make it."""
    return DataError(f"{error} What the recipe needs: `nmt recipe show {name}`.")


def _say(line: str, *, quiet: bool) -> None:
    if not quiet:
        typer.echo(f"== {line}", err=True)


def _fetch(recipe: Recipe) -> None:
    """Fetch the missing files of catalogue corpora, showing progress. Raises DataError."""
    from nmt.data import catalogue
    from nmt.data.catalogue import fetching
    from nmt.data.locators import split_rows

    data = recipe.data
    with showing_downloads() as show:
        for text in (*data.corpora, *data.texts(data.valid), *data.texts(data.test)):
            if place := catalogue.split_name(split_rows(text.corpus)[0]):
                for language in data.direction(text):
                    fetching.find(*place, language, progress=show)


def _train(recipe: Recipe, run: Path, machine: _Machine, *, quiet: bool) -> None:
    """Train the recipe, or go on with its run; do nothing if that has ended."""
    from nmt.comparison.measure import training_figures
    from nmt.comparison.plan import TRAINED, check_same_recipe, mark_trained
    from nmt.comparison.runs import Stopped, records
    from nmt.plotting.curves import plot_learning_curve
    from nmt.training.log import METRICS
    from nmt.training.trainer import Interrupted, train

    check_same_recipe(recipe, run)
    if (run / TRAINED).is_file():
        return
    before = training_figures(run)["updates"] if records(run) else 0
    if machine.processes > 1:
        _train_together(recipe, run, machine, quiet=quiet)
    else:
        try:
            train(recipe, run, device=machine.device, resume=run.is_dir(), quiet=quiet)
        except Interrupted as ending:
            raise Stopped(ending.exit_status - 128) from None
    plot_learning_curve(run / METRICS, run / "learning-curve.png")
    was_trained_here = training_figures(run)["updates"] > before
    mark_trained(run, machine.record() if was_trained_here else dict.fromkeys(machine.record()))


def _train_together(recipe: Recipe, run: Path, machine: _Machine, *, quiet: bool) -> None:
    """Train with several processes, which read the recipe from a file."""
    from nmt.recipe import dump_recipe
    from nmt.runtime.files import write_content
    from nmt.training.launch import launch

    with TemporaryDirectory(prefix="nmt-") as folder:
        path = Path(folder) / f"{recipe.name}.yaml"
        write_content(path, dump_recipe(recipe))
        command = ["train", str(path), "--out", str(run), "--device", str(machine.device)]
        command += ["--threads", str(machine.threads), *["--resume"] * run.is_dir(), *["--quiet"] * quiet]
        if status := launch(command, machine.processes):
            raise typer.Exit(status)  # the first process has said why


def _scored(
    recipe: Recipe, run: Path, text: HeldOut, device: torch.device, *, smoke: bool, quiet: bool
) -> Reproduction:
    import torch

    from nmt.comparison.reported import measure_scores, measurements
    from nmt.comparison.reproduction import Reproduction, describe_text, training_record
    from nmt.comparison.smoke import describe_smoke
    from nmt.decoding.loading import load
    from nmt.runtime.device import processor

    threads = torch.get_num_threads()
    corpus, aligned = describe_text(text)
    return Reproduction(
        recipe=recipe.name,
        scores=measure_scores(
            load(run, device, to=text.corpus.languages[1]),
            run,
            recipe,
            text,
            measurements(recipe, text),
            processes=threads if device.type == "cpu" else 1,
            progress=partial(with_progress, quiet=quiet),
        ),
        text=corpus,
        aligned=aligned,
        training=training_record(run),
        machine={"processor": processor(device), "threads": threads},
        command=shlex.join(["nmt", *sys.argv[1:]]),
        smoke=describe_smoke() if smoke else None,
    )
