"""`nmt plot`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import BeamSize, Device, Model, Quiet, Threads, build_translator, load_models, set_up
from nmt.errors import DataError


def plot(
    model: Model,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence to translate.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .pdf or .svg.")
    ] = Path("alignment.png"),
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Show how the model would read the source for this translation.", show_default=False
        ),
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, metavar="N", help="Draw the N best translations side by side.")] = 1,
    beam_size: BeamSize = None,
    style: Annotated[
        Literal["color", "grey"], typer.Option(help="Blue on white, or white on black as in the paper.")
    ] = "color",
    dpi: Annotated[float, typer.Option(help="Dots an inch of a PNG.")] = 150,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Draw which source words each word of the translation was aligned to.

    [bold]Examples[/bold]

      nmt plot runs/bahdanau "A man is riding a horse." -o align.png

      nmt plot runs/bahdanau "A man is riding a horse." --target "Ein Mann reitet auf einem Pferd." -o align.svg
    """
    set_up(quiet=quiet, threads=threads)
    from nmt.aligning import word_alignment
    from nmt.plotting.heatmap import plot_alignment
    from nmt.plotting.style import file_format

    file_format(output)  # a wrong suffix is said before any work is done
    [bundle] = load_models([model], device)
    if bundle.recipe.model.attention.score.kind == "none":
        raise DataError(f"{model} was trained without attention (score: none), so there is no alignment to draw.")
    translator = build_translator([bundle], decoding={"beam_size": beam_size}, n_best=n_best)
    found = next(translator.translate([sentence]) if target is None else translator.score([(sentence, target)]))
    if not found.source_ids:
        raise DataError("The sentence to plot is empty.")
    panels = [word_alignment(found, bundle, rank) for rank in range(len(found.hypotheses))]
    titles = [f"{rank}: {hypothesis.score:.2f}" for rank, hypothesis in enumerate(found.hypotheses, start=1)]
    plot_alignment(panels, output, title=titles if len(panels) > 1 else None, style=style, dpi=dpi)
    if not quiet:
        for panel in panels:
            typer.echo(" ".join(panel.target), err=True)
    typer.echo(output)
