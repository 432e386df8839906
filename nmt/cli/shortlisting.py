"""`nmt shortlist`: learn which target tokens translate which source tokens, for `nmt translate --shortlist`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import Model, file_option, option, set_up
from nmt.cli.streams import check_not_input, read_parallel
from nmt.errors import UsageError

FILE = "shortlist.safetensors"


def shortlist(
    model: Model,
    source: Annotated[
        Path | None, file_option("Source text, one sentence per line.", "--source", "-s", default="training text")
    ] = None,
    target: Annotated[
        Path | None, file_option("Its translation, line by line.", "--target", "-t", default="training text")
    ] = None,
    output: Annotated[Path | None, file_option("Where to write.", "--output", "-o", default=f"MODEL/{FILE}")] = None,
    candidates: Annotated[int, option("Most translations per source token.", "N", min=0)] = 40,
    frequent: Annotated[int, option("Frequent target tokens on every list.", "N", min=0)] = 500,
) -> None:
    """Learn likely translations of each token, for faster translation.

    Examples:
      nmt shortlist runs/bahdanau
      nmt shortlist runs/bahdanau -s train.en.gz -t train.de.gz

    Details:

    `nmt translate --shortlist FILE` then considers only the candidates of each line and the most frequent tokens instead of
    the whole vocabulary. Candidates are learned by IBM model 1. The name of the file is printed.
    """
    if (source is None) != (target is None):
        raise UsageError("A text has two sides: give --source and --target, or neither.")
    check_not_input(output, (source, target))
    set_up()
    from nmt.bundle.folder import Bundle
    from nmt.data.locators import load_training_corpus
    from nmt.decoding.shortlist_learning import learn_shortlist

    bundle = Bundle.load(model, weights=False)
    pairs: Iterable[tuple[str, str]]
    if source and target:
        normalize = bundle.normalizer
        pairs = ((normalize(one), normalize(other)) for one, other in read_parallel(source, target))
    else:
        pairs = load_training_corpus(bundle.recipe.data).untagged.pairs()
    result = learn_shortlist(pairs, bundle.source, bundle.target, candidates=candidates, frequent=frequent)
    path = output or model / FILE
    result.save(path, bundle.source, bundle.target)
    typer.echo(path)
