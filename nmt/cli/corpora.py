"""`nmt corpora`: list, describe, fetch and check public corpora; export and clean parallel text."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.commands import Command, SubCommands
from nmt.cli.inspecting import print_table
from nmt.cli.options import PrefixOutput, SourceLanguage, TargetLanguage, argument, new_files, option, set_up
from nmt.cli.streams import open_output, write_lines
from nmt.errors import DataError
from nmt.runtime.wording import counted, excerpt

if TYPE_CHECKING:
    from nmt.data.catalogue.schema import CatalogueEntry

_WIDTH = 60
"""Most characters of each side of a sample."""
Locator = Annotated[str, argument("Text as in a recipe: sample:test, web.tmx, text/web.{en,de}.gz.", "LOCATOR")]

corpora_app = typer.Typer(
    name="corpora",
    cls=SubCommands,
    help="""List, describe, fetch, check, export and clean corpora.

    Examples:
      nmt corpora info multi30k
      nmt corpora fetch multi30k

    Details:

    Corpora are looked for in the folder `$NMT_CORPORA` and its folders, then in the cache. Without COMMAND they are listed.
    """,
)


@corpora_app.command("list", cls=Command)
def list_corpora(
    search: Annotated[
        str | None,
        option("List names in mtdata's index with all WORDS.", "WORDS", "--search", default="those of the catalogue"),
    ] = None,
) -> None:
    """List the corpora with their languages and splits.

    Examples:
      nmt corpora
      nmt corpora list --search "europarl deu"

    Details:

    NAME-PAIR stands for one corpus per language pair, as opus-100-de-en; `nmt corpora info NAME` lists the pairs. A corpus
    that is "local only" can neither be fetched nor derived again, so you need a copy to reproduce figures measured on it.
    The test sets of sacreBLEU are corpora too, as sacrebleu:wmt14/en-de, and what mtdata knows, as
    mtdata:Statmt-europarl-10-deu-eng, whose text is not verified: --search needs `pip install "attentional-nmt[mtdata]"`.
    """
    from nmt.data.catalogue import entries
    from nmt.data.external import search_mtdata
    from nmt.data.sample import SIZES

    if search is None:
        print_table([["sample:", "en de", _some(SIZES), "embedded"], *map(_row, entries())])
        return
    set_up()
    matches = search_mtdata(search.split())
    if not matches:
        raise DataError(f"No corpus of mtdata has '{search}' in its name; languages are as eng and deu.")
    typer.echo("\n".join(matches))


def _row(entry: CatalogueEntry) -> list[str]:
    """One line of the list."""
    first = entry.corpus(entry.names[0])
    name, languages = f"{entry.name}{'-PAIR' if entry.pairs else ''}/", " ".join(entry.languages)
    if entry.pairs:
        languages = counted(len(entry.pairs), "pair")
    elif len(entry.languages) > 5:
        languages = counted(len(entry.languages), "language")
    sizes = dict.fromkeys(first.splits) if entry.pairs else first.splits
    return [name, languages, _some(sizes), "local only" if first.local_only else "fetched on use"]


def _some(sizes: Mapping[str, int | None]) -> str:
    """The splits with their sizes, as many as fit."""
    splits = ", ".join(f"{name} {count:,}" if count else name for name, count in sizes.items())
    return textwrap.shorten(splits, 43, placeholder=" ...")


# --- one corpus -------------------------------------------------------------------------------------------------


@corpora_app.command("info", cls=Command)
def describe_corpus(
    name: Annotated[str, argument("Corpus of `nmt corpora list`.", "NAME")],
) -> None:
    """Describe a corpus: splits, checksums, license, citation and sources.

    Examples:
      nmt corpora info multi30k
      nmt corpora info wmt14

    Details:

    Of a family such as wmt14, the splits are those of its first pair. Sources are tried in order. "verified" text must have
    the SHA-256 of the catalogue.
    """
    from nmt.data.catalogue import entries, local_file, named

    family = next((entry for entry in entries() if entry.pairs and entry.name == name), None)
    corpus = family.corpus(family.names[0]) if family else named(name)
    entry = corpus.entry
    rows = [("name", corpus.name), ("title", entry.title), ("languages", " ".join(corpus.languages))]
    if family:
        rows = [("name", f"{name}-PAIR"), ("title", entry.title), ("pairs", ", ".join(family.pairs))]
    for split, count in corpus.splits.items():
        verified = [language for language in corpus.sides(split) if corpus.digest(split, language)]
        state = f"verified: {' '.join(verified)}" if verified else "not verified"
        rows.append(("split", f"{split}, {counted(count, 'line') if count else 'size not known'}; {state}"))
        rows += [("  source", source.place) for source in corpus.sources(split)]
        paths = [local_file(corpus.name, split, language) for language in corpus.sides(split)]
        rows += [("  here", str(folder)) for folder in dict.fromkeys(path.parent for path in paths if path)]
    rows += [("license", entry.license), ("home", entry.home), ("citation", entry.citation)]
    print_table(rows + [(key, text) for key, text in (("note", entry.note), ("derivation", entry.derivation)) if text])


# --- files ------------------------------------------------------------------------------------------------------


@corpora_app.command("fetch", cls=Command)
def fetch_corpus(
    name: Annotated[str, argument("Corpus of `nmt corpora list`, or one split.", "NAME[/SPLIT]")],
) -> None:
    """Fetch a corpus, or one split of it, into the cache and check it.

    Examples:
      nmt corpora fetch multi30k
      NMT_CACHE=/data/cache nmt corpora fetch wmt14-de-en/newstest2014

    Details:

    Existing files are kept. Sources are tried in order.
    """
    from nmt.data.catalogue.fetching import fetch

    set_up()
    corpus, _, split = name.partition("/")
    for path in fetch(corpus, split or None):
        typer.echo(path)


@corpora_app.command("check", cls=Command)
def check_corpus(
    name: Annotated[str, argument("Corpus of `nmt corpora list`.", "NAME")],
) -> None:
    """Check that the files of a corpus have the right text.

    Examples:
      nmt corpora check multi30k
      NMT_CORPORA=/data/corpora nmt corpora check hansards-en-fr

    Details:

    A file is good, missing, different, or unverified if there is no checksum to compare it with. The exit status is 1 if a
    file differs.
    """
    from nmt.data.catalogue import check

    checks = check(name)
    for checked in checks:
        file = f"{name}/{checked.split}.{checked.language}"
        typer.echo(f"{checked.state:10} {file}  {checked.path or ''}".rstrip())
    if any(checked.state == "different" for checked in checks):
        raise DataError("Files have wrong content: remove what differs, then fetch or copy it again.")


@corpora_app.command("export", cls=Command)
def export_corpus(
    locator: Locator,
    source: SourceLanguage,
    target: TargetLanguage,
    output: PrefixOutput,
) -> None:
    """Write a parallel text as plain files, one sentence per line.

    Examples:
      nmt corpora export sample:test --source en --target de -o sample
      nmt corpora export 'multi30k/train[:5000]' --source en --target de -o text/small

    Details:

    [START:STOP] after a locator takes these pairs alone, counted from 0. A text with gold links also gives PREFIX.align, in
    Pharaoh format with source words first.
    """
    from nmt.alignment.gold import gold_links
    from nmt.alignment.link_files import format_pharaoh
    from nmt.data.locators import load_corpus

    set_up()
    paths = new_files(output, (source, target, "align"))
    corpus = load_corpus(locator, source=source, target=target)
    texts: list[Iterable[str]] = [corpus.source, corpus.target]
    if (links := gold_links(locator, source=source)) is not None:
        texts.append(map(format_pharaoh, links))
    for path, lines in zip(paths, texts, strict=False):
        write_lines(path, lines)
        typer.echo(path)


@corpora_app.command("clean", cls=Command)
def clean_corpus(
    locator: Locator,
    source: SourceLanguage,
    target: TargetLanguage,
    output: PrefixOutput,
    settings: Annotated[
        list[str] | None,
        option("Change one rule; may be repeated.", "RULE=VALUE", "--set", default="max_length=100, max_ratio=9"),
    ] = None,
) -> None:
    """Remove unusable pairs from a parallel text, and say what each rule removed.

    Examples:
      nmt corpora clean web.tsv --source en --target de --set copies=false -o clean/web
      nmt corpora clean sample:train --source en --target de --set max_ratio=2 --set scripts=true -o clean/sample

    Details:

    The rules are the settings of data.filters in a recipe; the first one that a pair breaks removes it. Pairs with an empty side are
    removed too. null is no rule.

    max_length: most words of the longer side; max_ratio: largest ratio of the longer side to the shorter; duplicates=false: no repeated
    pairs; copies=false: no pairs with two equal sides; max_word_length: most characters of a word; min_letters: least share of letters;
    scripts=true: most letters must be of the scripts of the language; marks=false: no marks of subwords (`@@ `) and no entities of
    HTML (`&quot;`); language: its least probability by py3langid, which needs
    `pip install "attentional-nmt[langid]"` and gives short lines low probabilities: try 0.1 first. Words are what spaces
    separate, or the characters of text that is written without spaces; in a recipe lengths are in subwords.

    Stdout has the number of pairs by rule, stderr up to three samples of each with their line numbers. No file is overwritten.
    """
    from nmt.data.filters import FilterReport, clean
    from nmt.data.locators import load_corpus
    from nmt.recipe import parse_filters, parse_overrides

    set_up()
    filters = parse_filters(parse_overrides(settings or ()), "nmt corpora clean")
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
    rows = [(report.total, "pair" if report.total == 1 else "pairs")]
    for rule, count in report.removed.items():
        rows.append((count, report.reason(rule)))
        print(f"{report.reason(rule)}:", file=sys.stderr)
        for sample in report.samples.get(rule, ()):
            sides = " ||| ".join(excerpt(side, _WIDTH) for side in (sample.source, sample.target))
            print(f"  line {sample.line:,}: {sides}", file=sys.stderr)
    for count, name in [*rows, (report.kept, "kept")]:
        typer.echo(f"{count:{len(f'{report.total:,}')},}  {name}")
