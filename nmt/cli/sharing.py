"""`nmt export` and `nmt push`."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import Model, Quiet, argument, option, set_up
from nmt.runtime.wording import counted

if TYPE_CHECKING:
    from nmt.sharing.exporting import SharedModel

_log = logging.getLogger(__name__)

License = Annotated[
    str | None,
    option("License of the model, for its card: mit, cc-by-4.0, ...", "ID", default="that of an earlier card"),
]


def export(
    model: Model,
    output: Annotated[Path, option("New file; it ends with .zip.", "FILE", "--output", "-o", default=False)],
    license: License = None,
    quiet: Quiet = False,
) -> None:
    """Write a model as one file, for every command.

    Examples:
      nmt export runs/bahdanau -o bahdanau.zip
      nmt export runs/bahdanau -o bahdanau.zip --license cc-by-4.0

    Details:

    The zip holds what translating needs (recipe, subwords, weights), data.json, metrics.jsonl and scores.json if they are
    there, and a model card, README.md. Nothing else of the folder is in it. The same model gives the same bytes. The name of
    the file is printed.

    The card shows the scores in MODEL/scores.json (what `nmt evaluate` prints as JSON) and of the best validation. A
    README.md of your own in the folder takes its place.
    """
    set_up(quiet=quiet)
    from nmt.sharing.exporting import SharedModel, check_output

    check_output(output)
    shared = SharedModel.load(model, license)
    shared.write(output)
    _warn(shared)
    typer.echo(output)


def push(
    model: Model,
    name: Annotated[str, argument("owner/name on the hub.", "NAME", default=False)],
    license: License = None,
    private: Annotated[bool, option("Make a private repository.", "", "--private")] = False,
    replace_card: Annotated[bool, option("Replace the card on the hub.", "", "--replace-card")] = False,
    dry_run: Annotated[bool, option("Print the card and the files, and upload nothing.", "", "--dry-run")] = False,
    quiet: Quiet = False,
) -> None:
    """Upload a model to the Hugging Face hub.

    Examples:
      nmt push runs/bahdanau me/bahdanau-en-de --license cc-by-4.0
      nmt push runs/bahdanau me/bahdanau-en-de --dry-run

    Details:

    Needs a token that may write: `hf auth login`, or HF_TOKEN. A repository that is not there is made. All is uploaded in
    one commit: what `nmt export` writes. A README.md in the model folder is the card; without one, nmt writes it. A card on
    the hub that differs from it stays, unless --replace-card is given. The address of the model is printed.
    """
    set_up(quiet=quiet)
    from nmt.sharing.exporting import SharedModel
    from nmt.sharing.pushing import check_name, upload

    repository = check_name(name)
    shared = SharedModel.load(model, license)
    if dry_run:
        _warn(shared)
        _show(shared, repository)
        return
    result = upload(shared, repository, private=private, replace_card=replace_card)
    _warn(replace(shared, license=result.license))
    if result.keeps_card:
        _log.warning(
            "The card on the hub differs from the new one and stays as it is: --replace-card replaces it, --dry-run "
            "prints the new one."
        )
    typer.echo(result.address)


def _warn(shared: SharedModel) -> None:
    for warning in shared.warnings():
        _log.warning("%s", warning)


def _show(shared: SharedModel, repository: str) -> None:
    """Print the card and the files with their sizes."""
    from nmt.bundle.places import CARD

    card = shared.card(f"hf:{repository}")
    sizes = {CARD: len(card.encode()), **{name: path.stat().st_size for name, path in shared.files().items()}}
    typer.echo(card)
    for name, size in sizes.items():
        typer.echo(f"{size:>13,}  {name}")
    typer.echo(f"{sum(sizes.values()):>13,}  bytes in {counted(len(sizes), 'file')}")
