"""`nmt translate` and `nmt score`."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import (
    BatchTokens,
    BeamSize,
    CoveragePenalty,
    Device,
    Horizon,
    LengthPenalty,
    Lexicon,
    MaxRatio,
    Model,
    Precision,
    Prune,
    Quiet,
    ReplaceUnknown,
    ShortlistFile,
    SourceText,
    TargetText,
    Threads,
    build_translator,
    load_models,
    load_shortlist,
    need_attention,
    set_up,
    unknown_words,
)
from nmt.cli.progress import is_watched, shown
from nmt.cli.streams import (
    STANDARD,
    check_not_input,
    count_lines,
    is_terminal,
    open_input,
    open_output,
    read_parallel,
    text_lines,
)
from nmt.errors import UsageError
from nmt.wording import counted, perplexity

if TYPE_CHECKING:
    from nmt.bundle import Bundle
    from nmt.decoding.translator import Translation

logger = logging.getLogger(__name__)

_NOTHING = "-inf", ""
"""Score and text in the place of a translation that the search did not find."""


def translate(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL", help="Model folders; several translate together as an ensemble.", show_default=False
        ),
    ],
    source: Annotated[
        Path,
        typer.Option("--input", "-i", metavar="FILE", help="Text to translate, one sentence per line; - is stdin."),
    ] = STANDARD,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is stdout.")
    ] = STANDARD,
    beam_size: BeamSize = None,
    n_best: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Write the N best translations of each line.", show_default=False),
    ] = None,
    alignments: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write the word links of each translation: i-j, source first.", show_default=False
        ),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write the score before each translation.")] = False,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = None,
    max_ratio: MaxRatio = None,
    horizon: Horizon = None,
    prune: Prune = None,
    replace_unknown: ReplaceUnknown = False,
    lexicon: Lexicon = None,
    shortlist: ShortlistFile = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Threads = None,
    batch_tokens: BatchTokens = 8192,
    quiet: Quiet = False,
) -> None:
    """Translate lines of text, one line out for each line in.

    [bold]Examples[/bold]
      echo "A man is riding a horse." | nmt translate runs/bahdanau
      nmt translate runs/a runs/b -i test.en -o test.de --beam-size 10

    [bold]Details[/bold]

    An empty line stays empty. At a terminal each line is answered at once. --scores writes `score TAB translation`.
    --n-best N writes N lines `line TAB score TAB translation`, best first, with score -inf where fewer were found. A
    score is the log-probability under the length and coverage penalty.

    --alignments writes a line `i-j ...` for each line of output: target word j was read from source word i, counted
    from 0. A line of thousands of tokens, translated in parts, may have none.

    A vocabulary of whole words, or of characters without byte fallback, writes unknown words as ⁇. --replace-unknown
    writes the source word with the most attention instead, or its translation in --lexicon.

    Large files are translated several times as fast with --precision int8 (bf16 where the processor is fast at it),
    --shortlist, --prune 2 and --horizon 2; some words then differ. On a CPU the search uses the system's C compiler
    once, if there is one, to become faster; NMT_NATIVE=0 turns this off.
    """
    _check_places(source, output, alignments, lexicon)
    set_up(quiet=quiet, threads=threads)
    bundles = load_models(models, device)
    if alignments is not None:
        need_attention(bundles[0], models[0])
    unknown = unknown_words(bundles[0], models[0], lexicon, replace=replace_unknown)
    translator = build_translator(
        bundles,
        precision=precision,
        decoding={
            "beam_size": beam_size,
            "length_penalty": length_penalty,
            "coverage_penalty": coverage_penalty,
            "max_ratio": max_ratio,
            "horizon": horizon,
            "prune": prune,
        },
        n_best=n_best or 1,
        batch_tokens=batch_tokens,
        alignments=alignments is not None,
        replace_unknown=unknown,
        shortlist=load_shortlist(shortlist, bundles[0]),
        **({"window": 1} if is_terminal(source) else {}),  # a person there waits for each line
    )
    with open_input(source) as reading, open_output(output) as writing, ExitStack() as stack:
        linking = None if alignments is None else stack.enter_context(open_output(alignments))
        hidden = quiet or not is_watched(quiet=quiet) or is_terminal(source) or writing.isatty()
        found_lines = translator.translate(text_lines(reading, source))
        total = None if hidden else count_lines(source)
        for number, found in enumerate(shown(found_lines, "translating", total=total, quiet=hidden), start=1):
            for line in _lines(found, number, n_best=n_best, scores=scores):
                writing.write(line.encode("utf-8", "replace") + b"\n")
            writing.flush()
            if linking is not None:
                linking.writelines(line.encode() + b"\n" for line in _links(found, number, bundles[0], n_best or 1))
                linking.flush()


def _check_places(source: Path, output: Path, alignments: Path | None, lexicon: Path | None) -> None:
    """Raise UsageError where one file would be two things."""
    for path in (output, alignments):
        check_not_input(path, [source] if lexicon is None else [source, lexicon])
    if alignments is not None and (alignments == output or alignments.absolute() == output.absolute()):
        raise UsageError(
            "Translations and --alignments cannot go to the same place: name another file for one of them."
        )


def _lines(found: Translation, number: int, *, n_best: int | None, scores: bool) -> Iterator[str]:
    """What is written for one line of input."""
    ranked = [(f"{hypothesis.score:.4f}", hypothesis.text) for hypothesis in found.hypotheses]
    for score, text in islice(chain(ranked, repeat(_NOTHING)), n_best or 1):
        yield "\t".join([str(number)] * bool(n_best) + [score] * bool(n_best or scores) + [text])


def _links(found: Translation, number: int, bundle: Bundle, lines: int) -> Iterator[str]:
    """The links of each translation of a line, then empty lines for those that were not found."""
    for rank in range(lines):
        yield _links_of(found, number, bundle, rank) if rank < len(found.hypotheses) else ""


def _links_of(found: Translation, number: int, bundle: Bundle, rank: int) -> str:
    """The links of a translation, none if it was too long to have an alignment."""
    from nmt.aligning import word_alignment, word_links
    from nmt.evaluation.alignment import format_pharaoh

    if not found.is_aligned(rank):
        logger.warning("Line %d is too long for word links: it gets none.", number)
        return ""
    return format_pharaoh(word_links(word_alignment(found, bundle, rank), bundle.recipe))


def score(
    model: Model,
    source: SourceText,
    target: TargetText,
    normalise: Annotated[
        bool, typer.Option("--normalise", help="Divide by the number of tokens, end mark included.")
    ] = False,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Threads = None,
    batch_tokens: BatchTokens = 8192,
    quiet: Quiet = False,
) -> None:
    """Print the log-probability of each given translation.

    [bold]Examples[/bold]
      nmt score runs/bahdanau -s test.en -t test.de
      nmt score runs/bahdanau -s test.en.gz -t test.de.gz --normalise > scores.txt

    [bold]Details[/bold]

    Logarithms are natural. The mean per token and the perplexity of the whole text follow on stderr. A pair of more
    than 67 million source tokens times target tokens is not scored: its line says nan.
    """
    set_up(quiet=quiet, threads=threads)
    pairs = read_parallel(source, target)
    translator = build_translator(
        load_models([model], device), precision=precision, batch_tokens=batch_tokens, alignments=False
    )
    summary = _print_scores(translator.score(pairs), normalise=normalise)
    if not quiet:
        typer.echo(summary, err=True)


def _print_scores(scored: Iterable[Translation], *, normalise: bool) -> str:
    """Print a line for each pair, and return the summary."""
    lines, tokens, total = 0, 0, 0.0
    for lines, found in enumerate(scored, start=1):  # noqa: B007 -- counted for the summary
        best = found.hypotheses[0]
        length = max(len(best.token_log_probs), 1)
        sys.stdout.write(f"{best.log_probability / length if normalise else best.log_probability:.4f}\n")
        if not math.isnan(best.log_probability):  # too long
            tokens, total = tokens + length, total + best.log_probability
    mean = total / max(tokens, 1)
    figures = f"log-probability {mean:.4f} per token, perplexity {perplexity(math.exp(min(-mean, 700)))}"
    return f"{counted(lines, 'line')}, {counted(tokens, 'token')}: {figures}"
