"""`nmt align`: links of given translations, and how far they are from those of people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli.options import (
    BatchTokens,
    Bootstrap,
    Device,
    Gold,
    GoldOrder,
    LinksOutput,
    Model,
    Precision,
    Quiet,
    SourceText,
    TargetText,
    Threads,
    build_translator,
    links_place,
    load_models,
    need_attention,
    read_gold_links,
    set_up,
)
from nmt.cli.progress import shown, timed
from nmt.cli.streams import STANDARD, check_not_input, count_pairs, open_output, read_parallel
from nmt.errors import UsageError

if TYPE_CHECKING:
    from nmt.alignment.extraction import AlignedPair
    from nmt.alignment.links import GoldLinks, Links
    from nmt.bundle import Bundle

LinksFormat = Literal["pharaoh", "json", "npz", "naacl"]
_READ = "How links are read off"


def align(
    model: Model,
    source: SourceText,
    target: TargetText,
    output: LinksOutput = None,
    form: Annotated[
        LinksFormat, typer.Option("--format", help="Links alone (pharaoh, naacl), or words and matrices too.")
    ] = "pharaoh",
    level: Annotated[
        Literal["words", "pieces"], typer.Option(help="Link whitespace-separated words, or subwords.")
    ] = "words",
    weights: Annotated[
        Literal["posterior", "attention"],
        typer.Option(
            help="What a word was read from, given what it is; or the attention before it was known, which is faster.",
            rich_help_panel=_READ,
        ),
    ] = "posterior",
    extract: Annotated[
        Literal["argmax", "threshold", "mutual"] | None,
        typer.Option(
            help="Each target word's strongest source word; every pair that is strong enough; or every pair that is when a "
            "source word is shared out to those that look at it. [dim]\\[default: mutual for posteriors, threshold for guided "
            "attention, else argmax][/dim]",
            show_default=False,
            rich_help_panel=_READ,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="0..1",
            help="Least weight of a link. [dim]\\[default: 0.45 with --extract mutual, 0.3 with threshold; else none][/dim]",
            show_default=False,
            rich_help_panel=_READ,
        ),
    ] = None,
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A model of the other direction, which reads the target; its links join those of the first.",
            show_default=False,
            rich_help_panel=_READ,
        ),
    ] = None,
    symmetrise: Annotated[
        Literal["intersection", "union", "grow-diag-final-and", "mean", "geometric"] | None,
        typer.Option(
            help="How the links of both directions join; mean, geometric: links are read off the (geometric) mean of their "
            "weights. [dim]\\[default: geometric for posteriors, grow-diag-final-and for attention][/dim]",
            show_default=False,
            rich_help_panel=_READ,
        ),
    ] = None,
    no_punctuation: Annotated[
        bool,
        typer.Option("--no-punctuation", help="Drop links of words that are punctuation.", rich_help_panel=_READ),
    ] = False,
    shift: Annotated[
        int,
        typer.Option(
            min=-1,
            max=1,
            metavar="-1|0|1",
            help="Take the row of each step for that of the target token N places further on; -1 for a model whose rows "
            "belong to the word it was just fed (Luong et al. 2015, footnote 14). Holds for --reverse too.",
            rich_help_panel=_READ,
        ),
    ] = 0,
    gold: Gold = None,
    gold_order: GoldOrder = "source-target",
    bootstrap: Bootstrap = 1000,
    max_length: Annotated[
        int,
        typer.Option(
            min=1, max=8000, help="Most tokens of a side; a longer pair gets no links.", rich_help_panel="Machine"
        ),
    ] = 500,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Threads = None,
    batch_tokens: BatchTokens = 8192,
    quiet: Quiet = False,
) -> None:
    """Link the words of given translations by a model's attention.

    [bold]Examples[/bold]
      nmt align runs/en-de -s test.en -t test.de > test.align
      nmt align runs/en-fr -s gold.en -t gold.fr --gold gold.align

    [bold]Details[/bold]

    Each pair gets a line `i-j ...`: source word i is linked to target word j, counted from 0. Words are what spaces
    separate, or the model's tokens where a language is written without spaces (Chinese, Japanese, Thai, ...). A pair
    with a blank or too long side gets an empty line. With --gold, precision, recall and alignment error rate are printed instead, with
    a 95 % bootstrap interval in brackets.

    Formats: pharaoh is this; json a line with source, target, weights (one row per target word) and links; npz arrays
    weights_N, links_N, source_N and target_N of line N; naacl lines `sentence source target S`, all counted from 1.
    Weights are MODEL's, or the mean of both directions with --symmetrise mean or geometric.

    Attention at a step is decided before the target word is known, and often lies on all that could have come next. The
    posterior weighs it by how likely the word that did come is if each source word alone is read (Shankar and Sarawagi
    2019).
    """
    set_up(quiet=quiet, threads=threads)
    place = links_place(output, gold)
    _check_options(form, output, level=level, gold=gold, symmetrise=symmetrise, reverse=reverse)
    check_not_input(output, [source, target] if gold is None else [source, target, gold])
    from nmt.alignment.error_rate import error_rate
    from nmt.alignment.extraction import Extraction, fitting_extraction
    from nmt.alignment.forced_alignment import ForcedAligner, align_pairs

    total = count_pairs(source, target)
    known = None if gold is None else read_gold_links(gold, total, flipped=gold_order == "target-source")
    bundles = _load([model] if reverse is None else [model, reverse], device, level=level)
    posterior = weights == "posterior"
    fitting = fitting_extraction(bundles[0].recipe, posterior=posterior)
    extraction = Extraction(
        extract or fitting.method, threshold, symmetrise or fitting.joining, punctuation=not no_punctuation
    )
    options: dict[str, Any] = {"precision": precision, "batch_tokens": batch_tokens, "posterior": posterior}
    forward, *backward = (
        ForcedAligner(bundle, build_translator([bundle], **options), level, shift) for bundle in bundles
    )
    lines = read_parallel(source, target)
    aligned = align_pairs(lines, forward, *backward, extraction=extraction, longest=max_length)
    hidden = quiet or (place == STANDARD and sys.stdout is not None and sys.stdout.isatty())
    watched = shown(aligned, "aligning", total=total, quiet=hidden)
    pairs = enumerate(timed(watched, "aligned", quiet=quiet), start=1)
    links = _write(pairs if known is None else _held_against(known, pairs), place, form, keep=known is not None)
    if known is not None:
        typer.echo(str(error_rate(links, known, bootstrap=bootstrap)))


def _check_options(
    form: LinksFormat,
    output: Path | None,
    *,
    level: str,
    gold: Path | None,
    symmetrise: str | None,
    reverse: Path | None,
) -> None:
    """What cannot be is said before any work is done. Raises UsageError."""
    if form == "npz" and output in (None, STANDARD):
        raise UsageError("--format npz is not text for stdout: name a file with -o.")
    if gold is not None and level == "pieces":
        raise UsageError("--gold links words: leave out --level pieces.")
    if symmetrise is not None and reverse is None:
        raise UsageError("--symmetrise joins the links of two directions: give the other model with --reverse.")


def _load(folders: Sequence[Path], device: str, *, level: str) -> list[Bundle]:
    """The model and perhaps one of the other direction. Raises UsageError if they do not fit, DataError without attention."""
    bundles = load_models(folders, device)
    for folder, bundle in zip(folders, bundles, strict=True):
        need_attention(bundle, folder)
    for forward, backward in pairwise(bundles):
        one, other = forward.recipe.data, backward.recipe.data
        if (one.source, one.target) != (other.target, other.source):
            raise UsageError(
                f"{folders[1]} translates {other.source} to {other.target}, but the reverse of {folders[0]} must "
                f"translate {one.target} to {one.source}."
            )
        cuts = [(forward.source, backward.target), (forward.target, backward.source)]
        if level == "pieces" and any(mine.fingerprint != theirs.fingerprint for mine, theirs in cuts):
            raise UsageError(f"{folders[1]} cuts words into other tokens than {folders[0]}: leave out --level pieces.")
    return bundles


def _held_against(
    gold: Sequence[GoldLinks], pairs: Iterable[tuple[int, AlignedPair]]
) -> Iterator[tuple[int, AlignedPair]]:
    """The pairs, once it is sure that their sentences have the words that gold links name. Raises DataError."""
    from nmt.alignment.links import check_within

    for number, pair in pairs:
        source, target = pair.alignment.source, pair.alignment.target
        if number <= len(gold) and source and target:
            check_within(gold[number - 1].possible, len(source), len(target), f"--gold, sentence pair {number}")
        yield number, pair


def _write(
    pairs: Iterable[tuple[int, AlignedPair]], place: Path | None, form: LinksFormat, *, keep: bool
) -> list[Links]:
    """Write the pairs as they come, if there is a place to; the links of all of them if they are to be kept."""
    from nmt.alignment.writing import pair_writer

    kept = []
    with ExitStack() as stack:
        write = None
        if place is not None:
            stream = stack.enter_context(open_output(place, keep_part=True))
            write = stack.enter_context(pair_writer(stream, form))
        for number, pair in pairs:
            if write is not None:
                write(number, pair)
            if keep:
                kept.append(pair.links)
    return kept
