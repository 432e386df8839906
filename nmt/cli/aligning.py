"""`nmt align`: word links of given translations, and their alignment error rate."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli import options
from nmt.cli.options import (
    build_translator,
    links_destination,
    load_models,
    machine_option,
    option,
    read_gold_links,
    set_up,
)
from nmt.cli.streams import STANDARD, check_not_input, count_pairs, open_output, read_parallel
from nmt.errors import UsageError
from nmt.runtime.progress import timed, with_progress

if TYPE_CHECKING:
    from nmt.alignment.extraction import AlignedPair, Format
    from nmt.alignment.links import GoldLinks, Links
    from nmt.bundle.folder import Bundle

LinksFormat = Literal["pharaoh", "json"]
Level = Literal["words", "tokens"]
Symmetrize = Literal["intersection", "union", "grow-diag-final-and", "mean", "geometric"]
_extraction_option = partial(option, panel="Extraction of links")


def align(
    model: options.Model,
    source: options.SourceText,
    target: options.TargetText,
    to: options.To = None,
    output: options.LinksOutput = None,
    form: Annotated[LinksFormat, option("pharaoh; json has weights too.", "NAME", "--format")] = "pharaoh",
    confidence: Annotated[bool, option("Write the weight of each link too: `i-j:0.97`.", "", "--confidence")] = False,
    level: Annotated[Level, option("words, or tokens (subwords).", "NAME")] = "words",
    weights: Annotated[
        Literal["posterior", "attention"] | None,
        _extraction_option("posterior (given the target word) or attention.", "NAME", default="posterior"),
    ] = None,
    layer: options.AttentionLayer = None,
    head: options.AttentionHead = None,
    extract: Annotated[
        Literal["argmax", "threshold", "mutual"] | None,
        _extraction_option("argmax, threshold or mutual.", "NAME", default="mutual; for attention argmax"),
    ] = None,
    threshold: Annotated[
        float | None,
        _extraction_option("Least weight.", "0..1", default="mutual 0.45, with --aligner 0.4; threshold 0.3"),
    ] = None,
    reverse: Annotated[
        Path | None, _extraction_option("Model of the other direction, to join links with.", "MODEL", default="none")
    ] = None,
    symmetrize: Annotated[
        Symmetrize | None,
        _extraction_option("How to join both directions; see Details.", "NAME", default="by --weights"),
    ] = None,
    aligner: Annotated[
        Path | None,
        _extraction_option("Aligner of `nmt links --save`, to average with.", "FILE", default="none"),
    ] = None,
    no_punctuation: Annotated[
        bool, _extraction_option("Drop the links of punctuation.", "", "--no-punctuation")
    ] = False,
    gold: options.Gold = None,
    gold_order: options.GoldOrder = "source-target",
    bootstrap: options.Bootstrap = 1000,
    max_length: Annotated[
        int, machine_option("Most tokens per side; longer pairs get no links.", "N", min=1, max=8000)
    ] = 500,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    threads: options.Threads = None,
    batch_tokens: options.ScoredTokens = 8192,
    window: options.Window = None,
    quiet: options.Quiet = False,
) -> None:
    """Link the words of given translations by a model's attention.

    Examples:
      nmt align runs/en-de -s test.en -t test.de > test.align
      nmt align runs/en-fr -s gold.en -t gold.fr --gold gold.align

    Details:

    Each pair gives a line `i-j ...`: source word i, target word j, from 0; none if a side is blank. Without spaces, words are
    tokens. --extract: argmax links each target word to its best source word; threshold (default if guided) links what reaches
    --threshold; mutual normalizes over target words too. --symmetrize: intersection, union, grow-diag-final-and; for
    posteriors mean, geometric.
    """
    set_up(quiet=quiet, threads=threads)
    destination = links_destination(output, gold)
    chooses_attention = layer is not None or head is not None
    posterior = weights == "posterior" or (weights is None and not chooses_attention)
    if posterior and chooses_attention:
        raise UsageError("--layer and --head choose attention weights: leave them out, or --weights posterior.")
    if confidence and form != "pharaoh":
        raise UsageError("--confidence is for --format pharaoh: json has all weights.")
    if symmetrize is not None and reverse is None:
        raise UsageError("--symmetrize joins the links of two directions: give the other model with --reverse.")
    if gold is not None and level == "tokens":
        raise UsageError("--gold links words: leave out --level tokens.")
    if aligner is not None and (level == "tokens" or symmetrize in ("intersection", "union", "grow-diag-final-and")):
        raise UsageError(
            "--aligner averages weights between words: leave out --level tokens and heuristics of --symmetrize."
        )
    check_not_input(output, (source, target, gold, aligner))
    from nmt.alignment.aligner_file import load_aligner
    from nmt.alignment.error_rate import error_rate
    from nmt.alignment.extraction import Extraction, fitting_extraction
    from nmt.bundle.folder import choose_attention
    from nmt.decoding.forced_alignment import ForcedAligner, align_pairs

    total = count_pairs(source, target)
    gold_links = read_gold_links(gold, total, gold_order)
    bundles, targets = _load([model] if reverse is None else [model, reverse], device, to, level=level)
    bundles = choose_attention(bundles, layer, head)
    fitting = fitting_extraction(bundles[0].recipe, posterior=posterior)
    extraction = Extraction(
        extract or fitting.method, threshold, symmetrize or fitting.joining, punctuation=not no_punctuation
    )
    reading: dict[str, Any] = {
        "precision": precision,
        "batch_tokens": batch_tokens,
        "posterior": posterior,
        "window": window,
    }
    forward, *backward = (
        ForcedAligner(bundle, build_translator([bundle], to=language, **reading), level)
        for bundle, language in zip(bundles, targets, strict=True)
    )
    aligned = align_pairs(
        read_parallel(source, target),
        forward,
        *backward,
        extraction=extraction,
        longest=max_length,
        aligner=None if aligner is None else load_aligner(aligner),
    )
    is_hidden = quiet or (destination == STANDARD and sys.stdout is not None and sys.stdout.isatty())
    progress = with_progress(aligned, "aligning", total=total, quiet=is_hidden)
    pairs = timed(progress, "aligned", quiet=quiet)
    links = _write(pairs, destination, "confident" if confidence else form, gold_links)
    if gold_links is not None:
        typer.echo(str(error_rate(links, gold_links, bootstrap=bootstrap)))


def _load(folders: Sequence[Path], device: str, to: str | None, *, level: str) -> tuple[list[Bundle], list[str]]:
    """Load the model and that of --reverse, and the target language of each.

    Raises UsageError if they do not fit, DataError if one has no attention.
    """
    from nmt.bundle.languages import choose_direction, describe_directions

    bundles = load_models(folders, device, attending=True)
    source, target = choose_direction(bundles[0].recipe.data, to)
    for forward, backward in pairwise(bundles):
        if (target, source) not in backward.recipe.data.directions:
            raise UsageError(
                f"{folders[1]} translates {describe_directions(backward.recipe.data)}, but the reverse of {folders[0]} must "
                f"translate {target} to {source}."
            )
        sides = [(forward.source, backward.target), (forward.target, backward.source)]
        if level == "tokens" and any(mine.fingerprint != theirs.fingerprint for mine, theirs in sides):
            raise UsageError(f"{folders[1]} cuts words into other tokens than {folders[0]}: leave out --level tokens.")
    return bundles, [target, source][: len(bundles)]


def _write(
    pairs: Iterable[AlignedPair], destination: Path | None, form: Format, gold: Sequence[GoldLinks] | None
) -> list[Links]:
    """Write the pairs, if there is a destination. Returns their links if there are gold links, else nothing, to save memory.

    Raises DataError if a gold link lies beyond its sentences.
    """
    from nmt.alignment.extraction import format_pair
    from nmt.alignment.links import check_within

    links = []
    with ExitStack() as stack:
        stream = None if destination is None else stack.enter_context(open_output(destination, keep_part=True))
        for pair in pairs:
            if gold is not None:
                links.append(pair.links)
                number, source, target = len(links), pair.alignment.source, pair.alignment.target
                if number <= len(gold) and source and target:
                    check_within(gold[number - 1].possible, len(source), len(target), f"--gold, sentence pair {number}")
            if stream is not None:
                stream.write(f"{format_pair(pair, form)}\n".encode("utf-8", "replace"))
                stream.flush()
    return links
