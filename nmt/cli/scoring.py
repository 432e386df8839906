"""`nmt score`: log-probabilities of given translations."""

from __future__ import annotations

import math
import sys
from typing import Annotated

import typer

from nmt.cli import options
from nmt.cli.options import build_translator, flag, load_models, set_up
from nmt.cli.streams import read_parallel
from nmt.runtime.wording import counted, perplexity


def score(
    model: options.Model,
    source: options.SourceText,
    target: options.TargetText,
    to: options.To = None,
    normalize: Annotated[bool, flag("--normalize", "Divide by the number of tokens, end mark included.")] = False,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    threads: options.Threads = None,
    batch_tokens: options.ScoredTokens = 8192,
    window: options.Window = None,
    quiet: options.Quiet = False,
) -> None:
    """Print the log-probability of each given translation.

    Examples:
      nmt score runs/bahdanau -s test.en -t test.de
      nmt score runs/bahdanau -s test.en.gz -t test.de.gz --normalize > scores.txt

    Details:

    Logarithms are natural. The mean per token and the perplexity of the whole text follow on stderr. A pair of more
    than 67 million source tokens times target tokens is an error.
    """
    set_up(quiet=quiet, threads=threads)
    pairs = read_parallel(source, target)
    translator = build_translator(
        load_models([model], device),
        precision=precision,
        batch_tokens=batch_tokens,
        alignments=False,
        to=to,
        window=window,
    )
    lines, tokens, total = 0, 0, 0.0
    for lines, translation in enumerate(translator.stream_scores(pairs), start=1):  # noqa: B007 -- counted for the summary
        best = translation.hypotheses[0]
        length = max(len(best.token_log_probs), 1)
        sys.stdout.write(f"{best.log_probability / length if normalize else best.log_probability:.4f}\n")
        sys.stdout.flush()
        tokens, total = tokens + length, total + best.log_probability
    if not quiet:
        mean = total / max(tokens, 1)
        figures = f"log-probability {mean:.4f} per token, perplexity {perplexity(math.exp(min(-mean, 700)))}"
        typer.echo(f"{counted(lines, 'line')}, {counted(tokens, 'token')}: {figures}", err=True)
