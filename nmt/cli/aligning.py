"""`nmt align`: word links of given translations, and their alignment error rate."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli import options
from nmt.cli.options import build_translator, file_option, flag, load_models, option, read_gold_links, set_up
from nmt.cli.streams import STANDARD, check_not_input, count_pairs, open_output, read_parallel
from nmt.errors import UsageError
from nmt.runtime.progress import timed, with_progress

if TYPE_CHECKING:
    from nmt.alignment.extraction import Format
    from nmt.alignment.links import GoldLinks, Links
    from nmt.bundle.folder import Bundle

LinksFormat = Literal["pharaoh", "json"]
Weights = Literal["posterior", "attention"]
Extract = Literal["argmax", "threshold", "mutual"]
Symmetrize = Literal["intersection", "union", "grow-diag-final-and", "mean", "geometric"]
LinkRow = tuple[str, "Links", tuple[int, int]]
"""A line of output, its links, and the numbers of source and target words."""
_EXTRACTION = "Extraction of links"
extraction_option = partial(option, panel=_EXTRACTION)


def align(
    model: options.Model,
    source: options.SourceText,
    target: options.TargetText,
    to: options.To = None,
    output: options.LinksOutput = None,
    form: Annotated[LinksFormat, option("pharaoh; json has weights too.", "NAME", "--format")] = "pharaoh",
    confidence: Annotated[bool, flag("--confidence", "Write the weight of each link too: `i-j:0.97`.")] = False,
    weights: Annotated[
        Weights | None, extraction_option("posterior or attention.", "NAME", default="posterior")
    ] = None,
    layer: options.AttentionLayer = None,
    head: options.AttentionHead = None,
    extract: Annotated[Extract | None, extraction_option("How to find links.", "NAME", default="by --weights")] = None,
    threshold: Annotated[float | None, extraction_option("Least weight.", "0..1", default="by --extract")] = None,
    reverse: Annotated[
        Path | None, extraction_option("Model of the reverse direction.", "MODEL", default="none")
    ] = None,
    symmetrize: Annotated[
        Symmetrize | None, extraction_option("How to join both directions.", "NAME", default="by --weights")
    ] = None,
    aligner: Annotated[
        Path | None, file_option("Aligner of `nmt links --save`, to average with.", panel=_EXTRACTION)
    ] = None,
    gold: options.Gold = None,
    gold_order: options.GoldOrder = "source-target",
    bootstrap: options.Bootstrap = 1000,
    split_sentences: options.SplitSentences = None,
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

    Each pair gives a line `i-j ...`: source word i, target word j, from 0; none if a side is blank or has over 500 tokens.
    Without spaces, words are tokens.

    --weights posterior are those given the target word. --extract argmax (default for attention) links each target word to
    its best source word; threshold (default for guided attention) links what reaches --threshold, 0.3; mutual (default for
    posteriors) normalizes over target words too, with --threshold 0.45, or 0.4 with --aligner. --symmetrize joins links by
    intersection, union or grow-diag-final-and (default for attention), weights by mean or geometric (default for posteriors).
    """
    set_up(quiet=quiet, threads=threads)
    chooses_attention = layer is not None or head is not None
    posterior = weights == "posterior" or (weights is None and not chooses_attention)
    if posterior and chooses_attention:
        raise UsageError("--layer and --head choose attention weights: leave them out, or --weights posterior.")
    if symmetrize is not None and reverse is None:
        raise UsageError("--symmetrize joins the links of two directions: give the other model with --reverse.")
    if aligner is not None and symmetrize in ("intersection", "union", "grow-diag-final-and"):
        raise UsageError("--aligner averages weights between words: leave out heuristics of --symmetrize.")
    check_not_input(output, (source, target, gold, aligner))
    from nmt.alignment.aligner_file import load_aligner
    from nmt.alignment.extraction import Extraction, fitting_extraction, format_pair
    from nmt.bundle.folder import choose_attention
    from nmt.decoding.forced_alignment import ForcedAligner, align_pairs

    total = count_pairs(source, target)
    gold_links = read_gold_links(gold, total, gold_order)
    bundles, targets = _load([model] if reverse is None else [model, reverse], device, to)
    bundles = choose_attention(bundles, layer, head)
    fitting = fitting_extraction(bundles[0].recipe, posterior=posterior)
    extraction = Extraction(extract or fitting.method, threshold, symmetrize or fitting.joining)
    settings: dict[str, Any] = {"precision": precision, "batch_tokens": batch_tokens, "window": window}
    build = partial(build_translator, posterior=posterior, split_sentences=split_sentences, **settings)
    forward, *backward = (
        ForcedAligner(bundle, build([bundle], to=language)) for bundle, language in zip(bundles, targets, strict=True)
    )
    aligned = align_pairs(
        read_parallel(source, target),
        forward,
        *backward,
        extraction=extraction,
        aligner=None if aligner is None else load_aligner(aligner),
    )
    is_shown = output in (None, STANDARD) and gold is None and sys.stdout is not None and sys.stdout.isatty()
    progress = with_progress(aligned, "aligning", total=total, quiet=quiet or is_shown)
    written: Format = "confident" if confidence and form == "pharaoh" else form
    rows = (
        (format_pair(pair, written), pair.links, (len(pair.alignment.source), len(pair.alignment.target)))
        for pair in timed(progress, "aligned", quiet=quiet)
    )
    write_links(rows, output, gold_links, bootstrap=bootstrap)


def write_links(
    rows: Iterable[LinkRow], output: Path | None, gold: Sequence[GoldLinks] | None, *, bootstrap: int
) -> None:
    """Write links, with gold links only to a named file; then print their error rate. Raises DataError for a gold link beyond its pair."""
    from nmt.alignment.error_rate import error_rate
    from nmt.alignment.links import check_within

    destination = STANDARD if output is None and gold is None else output
    predicted = []
    with ExitStack() as stack:
        stream = None if destination is None else stack.enter_context(open_output(destination, keep_part=True))
        for number, (line, links, (source, target)) in enumerate(rows, start=1):
            if gold is not None:
                predicted.append(links)
                if source and target and number <= len(gold):
                    check_within(gold[number - 1].possible, source, target, f"--gold, sentence pair {number}")
            if stream is not None:
                stream.write(f"{line}\n".encode("utf-8", "replace"))
                stream.flush()
    if gold is not None:
        typer.echo(str(error_rate(predicted, gold, bootstrap=bootstrap)))


def _load(folders: Sequence[Path], device: str, to: str | None) -> tuple[list[Bundle], list[str]]:
    """Load the model and that of --reverse, and the target language of each.

    Raises UsageError if they do not fit, DataError if one has no attention.
    """
    from nmt.bundle.languages import choose_direction, describe_directions

    bundles = load_models(folders, device, attending=True)
    source, target = choose_direction(bundles[0].recipe.data, to)
    for backward in bundles[1:]:
        if (target, source) not in backward.recipe.data.directions:
            raise UsageError(
                f"{folders[1]} translates {describe_directions(backward.recipe.data)}, but the reverse of {folders[0]} must "
                f"translate {target} to {source}."
            )
    return bundles, [target, source][: len(bundles)]
