"""The `nmt` command. Heavy imports are inside the commands that need them, so that `nmt --help` is instant."""

import os
import sys
from typing import Annotated

import typer

from nmt import __version__
from nmt.cli.aligning import align
from nmt.cli.commands import Command, Commands
from nmt.cli.comparing import compare
from nmt.cli.corpora import corpora_app
from nmt.cli.evaluating import evaluate
from nmt.cli.inspecting import info, recipe_app
from nmt.cli.linking import links
from nmt.cli.plotting import plot
from nmt.cli.reproducing import reproduce
from nmt.cli.scoring import score
from nmt.cli.serving import serve
from nmt.cli.sharing import export, push
from nmt.cli.shortlisting import shortlist
from nmt.cli.training import average, train
from nmt.cli.translating import translate

SPINS = "1000"
"""How often an OpenMP thread of libgomp looks for work before it sleeps, some microseconds.

Its default of 300,000 keeps cores from other processes for milliseconds: beside one busy process, training on two cores falls to
a quarter of its speed and less. On a quiet machine it is 3 to 8 % faster.
"""
_USE, _INSPECT = "Training, translation and alignment", "Recipes, models and corpora"

app = typer.Typer(
    cls=Commands,
    help="Train attentional recurrent translation models, and translate with them.",
    epilog="First steps: nmt train quickstart; nmt translate runs/quickstart",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _panel, _functions in (
    (_USE, (train, average, shortlist, translate, serve, evaluate, score, align, links, plot)),
    (_INSPECT, (compare, reproduce, info, export, push)),
):
    for _function in _functions:
        app.command(cls=Command, rich_help_panel=_panel)(_function)
app.add_typer(recipe_app, rich_help_panel=_INSPECT)
app.add_typer(corpora_app, rich_help_panel=_INSPECT)


def _show_version(version: bool) -> None:
    if version:
        typer.echo(f"nmt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; without arguments print the help."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # which libgomp reads when torch is imported
    app(sys.argv[1:] or ["--help"])
