"""`nmt export` and `nmt push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import Model, Quiet, argument, flag, option, set_up

License = Annotated[
    str | None,
    option("License of the model, for its card: mit, cc-by-4.0, ...", "ID", default="that of an earlier card"),
]


def export(
    model: Model,
    output: Annotated[Path, option("New file; it ends with .zip.", "FILE", "--output", "-o")],
    license: License = None,
    quiet: Quiet = False,
) -> None:
    """Write a model as one file, for every command.

    Examples:
      nmt export runs/bahdanau -o bahdanau.zip
      nmt export runs/bahdanau -o bahdanau.zip --license cc-by-4.0

    Details:

    The zip holds what translating needs (recipe, subwords, weights), data.json, metrics.jsonl and scores.json if they are
    there, and a model card, README.md. Nothing else of the folder is in it. The same model and name give the same bytes. The
    name of the file is printed.

    The card shows the scores in MODEL/scores.json (what `nmt evaluate` prints as JSON) and of the best validation. A
    README.md of your own in the folder takes its place.
    """
    set_up(quiet=quiet)
    from nmt.sharing import publishing

    typer.echo(publishing.export(model, output, license=license))


def push(
    model: Model,
    name: Annotated[str, argument("owner/name on the hub.", "NAME")],
    license: License = None,
    private: Annotated[bool, flag("--private", "Make a private repository.")] = False,
    quiet: Quiet = False,
) -> None:
    """Upload a model to the Hugging Face hub.

    Examples:
      nmt push runs/bahdanau me/bahdanau-en-de --license cc-by-4.0
      nmt push runs/bahdanau hf:me/bahdanau-en-de --private

    Details:

    Needs a token that may write: `hf auth login`, or HF_TOKEN. A repository that is not there is made. All is uploaded in
    one commit: what `nmt export` writes. A README.md in the model folder is the card; without one, nmt writes it, but a card
    on the hub that was edited by hand stays. The address of the model is printed.
    """
    set_up(quiet=quiet)
    from nmt.sharing import publishing

    typer.echo(publishing.push(model, name, private=private, license=license).address)
