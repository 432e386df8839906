"""`nmt score`: log-probabilities of given translations, one of each line or those of an n-best list."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import repeat, tee
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli import options
from nmt.cli.options import build_translator, file_option, flag, load_models, set_up
from nmt.cli.streams import STANDARD, input_name, read_parallel, read_side
from nmt.cli.translation_writer import MOSES_BARS, moses_line
from nmt.errors import DataError, UsageError
from nmt.runtime.wording import counted, perplexity


def score(
    model: options.Model,
    source: options.SourceText,
    target: Annotated[Path | None, file_option("Its translation, line by line; - is stdin.", "--target", "-t")] = None,
    n_best: Annotated[Path | None, file_option("Or an n-best list of Moses, to add a feature to.", "--n-best")] = None,
    to: options.To = None,
    normalize: Annotated[bool, flag("--normalize", "Divide by the number of tokens, end mark included.")] = False,
    split_sentences: options.SplitSentences = None,
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
      nmt score runs/bahdanau -s test.en --n-best list.txt > with-feature.txt

    Details:

    Logarithms are natural. The mean per token and the perplexity of the whole text follow on stderr. A pair of more
    than 67 million source tokens times target tokens is an error.

    Lines of an n-best list are `number ||| text ||| features ||| score`, numbered from 0, as `nmt translate --format moses` writes
    them. Each is printed with a feature more, named nmt0 or, where there is one, nmt1.
    """
    set_up(quiet=quiet, threads=threads)
    entries: Iterable[list[str] | None] = repeat(None)
    if target is not None and n_best is None:
        pairs = read_parallel(source, target)
    elif n_best is not None and target is None and not source == n_best == STANDARD:
        sources = read_side(source)
        entries, listed = tee(_read_n_best(n_best, len(sources)))
        pairs = ((sources[int(number)], text.replace(MOSES_BARS, "|||")) for number, text, *_ in listed)
    else:
        raise UsageError("Give --source and either --target or --n-best; at most one of them is standard input.")
    translator = build_translator(
        load_models([model], device),
        precision=precision,
        batch_tokens=batch_tokens,
        alignments=False,
        split_sentences=split_sentences,
        to=to,
        window=window,
    )
    lines, tokens, total = 0, 0, 0.0
    scored = zip(translator.stream_scores(pairs), entries, strict=False)
    for lines, (translation, entry) in enumerate(scored, start=1):  # noqa: B007 -- counted for the summary
        best = translation.hypotheses[0]
        length = max(len(best.token_log_probs), 1)
        figure = best.log_probability / length if normalize else best.log_probability
        sys.stdout.write((f"{figure:.4f}" if entry is None else moses_line(entry, figure)) + "\n")
        sys.stdout.flush()
        tokens, total = tokens + length, total + best.log_probability
    if not quiet:
        mean = total / max(tokens, 1)
        figures = f"log-probability {mean:.4f} per token, perplexity {perplexity(math.exp(min(-mean, 700)))}"
        typer.echo(f"{counted(lines, 'line')}, {counted(tokens, 'token')}: {figures}", err=True)


def _read_n_best(path: Path, lines: int) -> Iterator[list[str]]:
    """The fields of an n-best list of a source of so many lines. Raises DataError with the line that is none of such a list."""
    for at, line in enumerate(read_side(path), start=1):
        fields = [field.strip() for field in line.split("|||")]
        if len(fields) < 4 or not re.fullmatch("[0-9]{1,9}", fields[0]) or int(fields[0]) >= lines:
            expected = f"`number ||| text ||| features ||| score` with a number below {lines:,}"
            raise DataError(f"{input_name(path)}, line {at}: expected {expected}, but it is {line[:60]!r}.")
        yield fields
