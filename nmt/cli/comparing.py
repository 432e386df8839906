"""`nmt compare`: train several recipes under one budget, and write a table of results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import Device, Quiet, Settings, Split, argument, machine_option, option, set_up
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import with_progress

if TYPE_CHECKING:
    from nmt.comparison.held_out import HeldOut
    from nmt.comparison.measure import LengthScore
    from nmt.comparison.plan import Candidate
    from nmt.comparison.runs import Machine
    from nmt.comparison.table import Row


def compare(
    recipes: Annotated[
        list[str], argument("YAML files, folders of them, or names or groups of `nmt recipe list`.", "RECIPE")
    ],
    out: Annotated[Path, option("Folder of runs and table.", "DIR", "--out", "-o")],
    settings: Settings = None,
    split: Split = "test",
    aligned: Annotated[str | None, option("Text with gold links, for the AER.", "TEXT", default="as --split")] = None,
    baseline: Annotated[str | None, option("Test the others against this one.", "RECIPE", default="none")] = None,
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

    To resume, or to add recipes, run the same command again: finished trainings are not repeated. Models are measured one at a
    time once all are trained. On a CPU, as many --jobs as cores train fastest.
    """
    from nmt.comparison import plan

    candidates = plan.find_candidates(recipes, settings or (), out)
    names = [candidate.name for candidate in candidates]
    if baseline is not None and (baseline not in names or len(names) < 2):
        raise UsageError(f"--baseline {baseline} must be one of two or more recipes, which are {', '.join(names)}.")
    for candidate in candidates:
        plan.check_same_recipe(candidate.recipe, candidate.run)
    set_up(quiet=quiet)
    from nmt.comparison.held_out import HeldOut
    from nmt.comparison.runs import Machine, stoppable, train_all
    from nmt.comparison.table import Table, with_p_values
    from nmt.runtime.cores import usable_cores
    from nmt.runtime.device import choose_device, processor
    from nmt.runtime.files import locked, write_content

    def say(line: str) -> None:
        if not quiet:
            typer.echo(line, err=True)

    threads = max(1, usable_cores() // jobs) if threads is None else min(threads, usable_cores())
    machine = Machine(jobs, threads, device, processor(choose_device(device)))
    with locked(out / ".comparison", f"Another comparison is at work in {out}."), stoppable():
        text = HeldOut.load(candidates[0].recipe, split, aligned)  # fails before any work is done
        problems = train_all(candidates, machine, say)
        rows = _measured(candidates, problems, text, machine, say, quiet=quiet)
        if baseline is not None:
            rows = with_p_values(rows, baseline, text.corpus)
        description = f"{machine.processor}; trainings at a time: {jobs}, CPU threads of each: {threads}, "
        description += f"of measuring: {jobs * threads}"
        table = Table(rows, *text.describe(), description, shlex.join(["nmt", *sys.argv[1:]]), baseline)
        write_content(out / "table.json", table.json())
        write_content(out / "table.md", table.markdown())
        _plot(rows, out / "by-length.png")
    typer.echo(table.markdown(), nl=False)
    if any(row.problem for row in rows):
        raise typer.Exit(1)


def _measured(
    candidates: Sequence[Candidate],
    problems: dict[str, str],
    text: HeldOut,
    machine: Machine,
    say: Callable[[str], None],
    *,
    quiet: bool,
) -> list[Row]:
    """Measure the candidates one at a time, each with all resources."""
    import torch

    from nmt.comparison.measure import measure
    from nmt.comparison.table import Row
    from nmt.runtime.cores import usable_cores
    from nmt.runtime.device import choose_device

    threads = machine.threads * machine.jobs
    torch.set_num_threads(min(threads, usable_cores()))
    device = choose_device(machine.device)
    rows = []
    for candidate in candidates:
        problem, figures = problems.get(candidate.name), None
        try:
            if problem is None:
                say(f"{candidate.name}: measuring")
                figures = measure(candidate, text, device=device, progress=partial(with_progress, quiet=quiet))
        except (DataError, UsageError) as error:
            problem = str(error)
        rows.append(Row(candidate, figures, problem))
    return rows


def _plot(rows: Sequence[Row], path: Path) -> None:
    """Draw BLEU by length of the source, if there are figures."""
    from nmt.plotting.by_length import ScoreLine, plot_by_length

    lines: list[ScoreLine] = []
    buckets: tuple[LengthScore, ...] = ()
    for row in rows:
        if row.figures is not None:
            score = next(iter(row.candidate.recipe.model.attention_in_words.values()))
            buckets = row.figures.by_length
            lines.append(ScoreLine(row.name, [bucket.bleu for bucket in buckets], score))
    if lines:
        plot_by_length(lines, list(map(str, buckets)), [bucket.sentences for bucket in buckets], path)
