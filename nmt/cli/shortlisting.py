"""`nmt shortlist`: learn which target pieces translate which source pieces, for `nmt translate --shortlist`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import Model, set_up
from nmt.cli.streams import check_not_input, read_parallel
from nmt.errors import UsageError

if TYPE_CHECKING:
    from nmt.bundle import Bundle

FILE = "shortlist.safetensors"


def shortlist(
    model: Model,
    source: Annotated[
        Path | None,
        typer.Option(
            "--source",
            "-s",
            metavar="FILE",
            help="Source text, a sentence a line. [dim]\\[default: what the model was trained on][/dim]",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option("--target", "-t", metavar="FILE", help="Its translations, line by line.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=f"Where to write. [dim]\\[default: {FILE} in the model folder][/dim]",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[int, typer.Option(min=0, help="Most translations of a source piece.")] = 40,
    frequent: Annotated[int, typer.Option(min=0, help="Most frequent target pieces, on every list.")] = 500,
) -> None:
    """Learn a lexical shortlist: the target pieces that each source piece is likely to be translated by.

    `nmt translate --shortlist` then chooses among those of a line and the most frequent ones, not among the whole
    vocabulary. The links between pieces are those of IBM model 1. The file's name is printed.

    [bold]Examples[/bold]

      nmt shortlist runs/bahdanau

      nmt shortlist runs/bahdanau -s train.en.gz -t train.de.gz --candidates 80 -o shortlist.safetensors
    """
    if (source is None) != (target is None):
        raise UsageError("A text has two sides: give --source and --target, or neither.")
    check_not_input(output, [path for path in (source, target) if path])
    set_up()
    from nmt.aligning.shortlist import learn_shortlist
    from nmt.bundle import Bundle

    bundle = Bundle.load(model, weights=False)
    pairs = read_parallel(source, target) if source and target else _training_text(bundle)
    learnt = learn_shortlist(pairs, bundle.source, bundle.target, candidates=candidates, frequent=frequent)
    path = output or model / FILE
    learnt.save(path, bundle.source, bundle.target)
    typer.echo(path)


def _training_text(bundle: Bundle) -> Iterable[tuple[str, str]]:
    from nmt.data.corpus import load_corpus

    data = bundle.recipe.data
    corpus = load_corpus(data.train, source=data.source, target=data.target)
    return zip(corpus.source, corpus.target, strict=True)
