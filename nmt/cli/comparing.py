"""`nmt compare`: train several recipes under one budget, and write a table of results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import Device, Quiet, Split, argument, machine_option, option, set_up
from nmt.cli.training_progress import TrainingProgress, say
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import with_progress
from nmt.runtime.wording import counted

if TYPE_CHECKING:
    from nmt.comparison.measure import HeldOut
    from nmt.comparison.plan import Candidate
    from nmt.comparison.runs import Share
    from nmt.comparison.table import Row, Table


def compare(
    recipes: Annotated[
        list[str],
        argument(
            "YAML files, folders of them, or recipes that ship with nmt; `attention` names a group.",
            "RECIPE",
            default=False,
        ),
    ],
    out: Annotated[Path, option("Folder of runs and table.", "DIR", "--out", "-o", default=False)],
    settings: Annotated[
        list[str] | None,
        option("Change one setting of every recipe; may be repeated.", "KEY=VALUE", "--set", default="the recipes'"),
    ] = None,
    split: Split = "test",
    aligned: Annotated[
        str | None, option("Text with gold links, for the AER.", "TEXT", default="that of --split")
    ] = None,
    baseline: Annotated[
        str | None, option("Test the others against this one; p-values by randomization.", "RECIPE", default="none")
    ] = None,
    jobs: Annotated[int, machine_option("Trainings at a time.", "N", "--jobs", "-j", min=1)] = 1,
    threads: Annotated[
        int | None, machine_option("CPU threads of each training.", "N", default="cores divided by --jobs", min=1)
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train several recipes under one budget and tabulate their results.

    Examples:
      nmt compare a.yaml b.yaml --set training.epochs=5 -o table
      nmt compare "attention/*" --jobs 2 --baseline bahdanau-rnnsearch -o table

    Details:

    The folder gets `table.md`, which is also printed, `table.json` with all digits, `by-length.png` with BLEU by source
    length, and a model folder for each recipe under `runs/`. A text is a split of the recipes or the locator of a corpus, such
    as data/test.{en,de} or multi30k/val.

    To resume, or to add recipes, run the same command again: finished work is not repeated. Models are measured one at a
    time once all are trained. On a CPU, as many --jobs as cores train fastest.
    """
    from nmt.comparison import plan

    candidates = plan.find_candidates(recipes, settings or (), out)
    names = [candidate.name for candidate in candidates]
    if baseline is not None and (baseline not in names or len(names) < 2):
        raise UsageError(f"--baseline {baseline} must be one of two or more recipes, which are {', '.join(names)}.")
    plan.check_folder(candidates)
    set_up(quiet=quiet)
    from nmt.comparison.measure import HeldOut
    from nmt.comparison.runs import Share, check_runs, stoppable, train_all
    from nmt.runtime.cores import at_most_cores, usable_cores
    from nmt.runtime.device import choose_device, processor

    each = max(1, usable_cores() // jobs) if threads is None else at_most_cores(threads)
    share = Share(jobs, each, device, processor(choose_device(device)))
    with plan.locked(out) as lock, stoppable():
        check_runs(candidates)
        text = HeldOut.load(candidates[0].recipe, split, aligned)  # fails before any work is done
        plan.write_recipes(candidates)
        trained = sum(candidate.marker.is_file() for candidate in candidates)
        with TrainingProgress(len(candidates), trained, quiet=quiet) as watch:
            problems = train_all(candidates, share, watch, inherited=[lock])
        rows = _measured(candidates, problems, text, share, quiet=quiet)
        table = _table(rows, text, share, baseline)
        _write(table, out)
    typer.echo(table.markdown(), nl=False)
    if any(row.problem for row in rows):
        raise typer.Exit(1)


# --- measuring and writing --------------------------------------------------------------------------------------


def _measured(
    candidates: Sequence[Candidate], problems: dict[str, str], text: HeldOut, share: Share, *, quiet: bool
) -> list[Row]:
    """Measure the candidates one at a time, each with all resources."""
    import torch

    from nmt.comparison.measure import measure, saved_figures
    from nmt.comparison.table import Row
    from nmt.runtime.cores import usable_cores
    from nmt.runtime.device import choose_device

    torch.set_num_threads(min(share.threads * share.jobs, usable_cores()))
    machine, device = f"{share.processor}, {share.threads * share.jobs}", choose_device(share.device)

    def progress(name: str, items: Iterable[Any], what: str, total: int) -> Iterator[Any]:
        return with_progress(items, f"{name}: {what}", total, quiet=quiet)

    rows = []
    for candidate in candidates:
        problem, figures = problems.get(candidate.name), None
        try:
            if problem is None and (figures := saved_figures(candidate, text, machine)) is None:
                say(f"{candidate.name}: measuring", quiet=quiet)
                watch = partial(progress, candidate.name)
                figures = measure(candidate, text, machine, device=device, progress=watch)
        except (DataError, UsageError) as error:
            problem = str(error)
        rows.append(Row(candidate, figures, problem))
    return rows


def _table(rows: list[Row], text: HeldOut, share: Share, baseline: str | None) -> Table:
    from nmt.comparison.table import Table, with_p_values

    name = f"{_short(text.corpus.name)} ({' → '.join(text.corpus.languages)}), {counted(len(text.corpus), 'sentence pair')}"
    aligned = f"{_short(text.aligned.name)} ({counted(len(text.aligned), 'sentence pair')})" if text.gold else None
    machine = f"{share.processor}; trainings at a time: {share.jobs}, CPU threads of each: {share.threads}, "
    machine += f"of measuring: {share.jobs * share.threads}"
    command = shlex.join(["nmt", *map(_short, sys.argv[1:])])
    if baseline is not None:
        rows = with_p_values(rows, baseline, text.corpus)
    return Table(rows, name, aligned, machine, command, baseline)


def _short(argument: str) -> str:
    """Shorten absolute paths in an argument to file names."""
    key, equals, value = argument.rpartition("=")
    return f"{key}{equals}{Path(value).name}" if Path(value).is_absolute() else argument


def _write(table: Table, folder: Path) -> None:
    from nmt.comparison.table import describe
    from nmt.plotting.by_length import Line, plot_by_length
    from nmt.runtime.files import write_content

    write_content(folder / "table.json", table.json())
    write_content(folder / "table.md", table.markdown())
    lines, buckets, counts = [], [], []
    for row in table.rows:
        if row.figures is not None:
            score, *others = describe(row.candidate.recipe).values()
            lines.append(Line(row.candidate.name, [item.bleu for item in row.figures.by_length], score, str(others)))
            buckets = [str(item) for item in row.figures.by_length]
            counts = [item.sentences for item in row.figures.by_length]
    if lines:
        plot_by_length(lines, buckets, counts, folder / "by-length.png")
