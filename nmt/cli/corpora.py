"""`nmt corpora`: list, describe, fetch, check and export public corpora; `cleaning.py` has `nmt corpora clean`."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.commands import Command, SubCommands
from nmt.cli.inspecting import print_table
from nmt.cli.options import PrefixOutput, SourceLanguage, TargetLanguage, argument, new_files, option, set_up
from nmt.cli.streams import write_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.wording import counted, in_columns

if TYPE_CHECKING:
    from nmt.data.catalogue.schema import CatalogueEntry

_log = logging.getLogger(__name__)
_WIDTH = 100
_GROUPS = {
    "small": "Captions and everyday sentences",
    "talks": "Talks",
    "news": "News and WMT",
    "parliament": "Parliaments",
    "collections": "Collections and others",
}

corpora_app = typer.Typer(
    name="corpora",
    cls=SubCommands,
    help="""List, describe, fetch, check, export and clean corpora.

    Examples:
      nmt corpora info multi30k
      nmt corpora fetch multi30k

    Details:

    Corpora are looked for in the folder `$NMT_CORPORA`, then in the cache. Without COMMAND they are listed.
    """,
)


@corpora_app.command("list", cls=Command)
def list_corpora(
    search: Annotated[
        str | None,
        option("List names with all WORDS, those of mtdata too.", "WORDS", "--search", default="all of the catalogue"),
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
    mtdata:Statmt-europarl-10-deu-eng, whose text is not verified: --search finds its names (`pip install "attentional-nmt[mtdata]"`).
    """
    from nmt.data.catalogue import entries, names
    from nmt.data.external import search_mtdata
    from nmt.data.sample import SIZES

    if search is None:
        rows = [["sample:", "en de", _some(SIZES), "embedded"]]
        for group, title in _GROUPS.items():
            rows += [[], [title], *(_row(entry) for entry in entries() if entry.group == group)]
        lines = iter(in_columns([row for row in rows if len(row) > 1]))
        typer.echo("\n".join(next(lines) if len(row) > 1 else "".join(row) for row in rows))
        return
    set_up()
    matches = [name for name in names() if all(word.lower() in name.lower() for word in search.split())]
    try:
        matches += search_mtdata(search.split())
    except UsageError as error:  # ours are listed without the extra
        _log.warning("%s", error)
    if not matches:
        raise DataError(f"No corpus has '{search}' in its name; languages are as en in ours, eng in mtdata's.")
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
    name: Annotated[str, argument("Corpus of `nmt corpora list`.", "NAME", default=False)],
) -> None:
    """Describe a corpus: splits, checksums, license, citation and sources.

    Examples:
      nmt corpora info multi30k

    Details:

    Sources are tried in order. "verified" text must have the SHA-256 of the catalogue.
    """
    lines: list[list[str]] = []
    for key, text in _description(name):
        wrapped = textwrap.wrap(text, _WIDTH - 12, break_long_words=False, break_on_hyphens=False)
        lines += [[key if number == 0 else "", line] for number, line in enumerate(wrapped)]
    print_table(lines)


def _description(name: str) -> list[tuple[str, str]]:
    """What the catalogue says of a corpus, or of a family of them with the splits of its first language pair."""
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
    return rows + [(key, text) for key, text in (("note", entry.note), ("derivation", entry.derivation)) if text]


# --- files ------------------------------------------------------------------------------------------------------


@corpora_app.command("fetch", cls=Command)
def fetch_corpus(
    name: Annotated[str, argument("Corpus of `nmt corpora list`, or one split.", "NAME[/SPLIT]", default=False)],
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
def check_corpora(
    name: Annotated[str | None, argument("Corpus to check.", "NAME", default="all on this machine")] = None,
) -> None:
    """Check that the files of corpora have the right text.

    Examples:
      nmt corpora check
      NMT_CORPORA=/data/corpora nmt corpora check multi30k

    Details:

    A file is good, missing, different, or unverified if there is no checksum to compare it with. The exit status is 1 if a
    file differs.
    """
    from nmt.data.catalogue import check, names

    different = 0
    for corpus in [name] if name else names():
        checks = check(corpus)
        if name is None and not any(checked.path for checked in checks):
            continue
        for checked in checks:
            if checked.state == "different":
                different += 1
            name_of_file = f"{corpus}/{checked.split}.{checked.language}"
            typer.echo(f"{checked.state:10} {name_of_file}  {checked.path or ''}".rstrip())
    if different:
        raise DataError(
            f"Wrong content in {counted(different, 'file')}: remove what differs, then fetch or copy it again."
        )


@corpora_app.command("export", cls=Command)
def export_corpus(
    locator: Annotated[str, argument("Text as in a recipe, such as sample:test.", "LOCATOR", default=False)],
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
