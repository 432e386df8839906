"""`nmt corpora clean`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nmt.cli.options import PrefixOutput, SourceLanguage, TargetLanguage, argument, new_files, option, set_up
from nmt.cli.streams import open_output
from nmt.errors import DataError
from nmt.runtime.wording import counted, excerpt

_WIDTH = 60
"""Most characters of each side of a sample."""


def clean_corpus(
    locator: Annotated[
        str, argument("Text as in a recipe, such as web.tmx or text/web.{en,de}.gz.", "LOCATOR", default=False)
    ],
    source: SourceLanguage,
    target: TargetLanguage,
    output: PrefixOutput,
    max_length: Annotated[int, option("Most words of the longer side.", "N", min=1)] = 100,
    max_ratio: Annotated[float, option("Largest ratio of the longer side to the shorter.", "RATIO", min=1)] = 9.0,
    no_duplicates: Annotated[bool, option("Remove repeated pairs.", "", "--no-duplicates")] = False,
    no_copies: Annotated[bool, option("Remove pairs with two equal sides.", "", "--no-copies")] = False,
    max_word_length: Annotated[int | None, option("Most characters of a word.", "N", default="any", min=1)] = None,
    min_letters: Annotated[
        float | None, option("Least share of letters.", "SHARE", default="any", min=0, max=1)
    ] = None,
    scripts: Annotated[bool, option("Most letters must be of the scripts of the language.", "", "--scripts")] = False,
    language: Annotated[
        float | None, option("Least probability of the language, by py3langid.", "P", default="any", min=0, max=1)
    ] = None,
) -> None:
    """Remove unusable pairs from a parallel text, and say what each rule removed.

    Examples:
      nmt corpora clean web.tsv --source en --target de --no-copies -o clean/web
      nmt corpora clean sample:train --source en --target de --max-ratio 2 --scripts -o clean/sample

    Details:

    The rules are those of `data.filters` in a recipe. They apply in the order of the options, after one that removes pairs with an empty
    side, and a pair counts for the first rule that it breaks. A rule on one side applies to both.

    Lengths are in words, which are what spaces separate; in a recipe --max-length and --max-ratio are in tokens, because there
    are subwords. --language needs `pip install "attentional-nmt[langid]"`, and gives short lines low probabilities: try 0.1 first.

    Stdout has the number of pairs by rule, stderr up to three samples of each with their line numbers. A file gets its name
    once it is complete, and none is overwritten.
    """
    from nmt.data.filters import FilterReport, clean
    from nmt.data.locators import load_corpus
    from nmt.recipe import parse_filters

    set_up()
    settings = {
        "max_length": max_length,
        "max_ratio": max_ratio,
        "duplicates": not no_duplicates,
        "copies": not no_copies,
        "max_word_length": max_word_length,
        "min_letters": min_letters,
        "scripts": scripts,
        "language": language,
    }
    filters = parse_filters(settings, "nmt corpora clean")
    paths = new_files(output, (source, target))
    corpus = load_corpus(locator, source=source, target=target)
    report = FilterReport({}, filters, unit="word")
    with open_output(paths[0]) as first, open_output(paths[1]) as second:
        for pairs, counts in clean(corpus, filters):
            report += counts
            first.writelines(f"{pair[0]}\n".encode() for pair in pairs)
            second.writelines(f"{pair[1]}\n".encode() for pair in pairs)
        if not report.kept:
            raise DataError(f"No pair of {locator} passes the filters ({report}): relax them.")
    for rule in report.removed:
        samples = report.samples.get(rule, ())
        if samples:
            print(f"{report.reason(rule)}:", file=sys.stderr)
        for sample in samples:
            sides = " ||| ".join(excerpt(side, _WIDTH) for side in (sample.source, sample.target))
            print(f"  line {sample.line:,}: {sides}", file=sys.stderr)
    removed = {report.reason(rule): count for rule, count in report.removed.items()}
    rows = {counted(report.total, "pair").split()[1]: report.total, **removed, "kept": report.kept}
    for name, count in rows.items():
        typer.echo(f"{count:{len(f'{report.total:,}')},}  {name}")
