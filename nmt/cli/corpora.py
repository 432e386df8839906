"""`nmt corpora`: list, describe, fetch, check and export public corpora; `cleaning.py` has `nmt corpora clean`."""

from __future__ import annotations

import logging
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.commands import Command, SubCommands
from nmt.cli.inspecting import print_table
from nmt.cli.options import PrefixOutput, SourceLanguage, TargetLanguage, argument, new_files, option, set_up
from nmt.cli.streams import write_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.progress import showing_downloads
from nmt.runtime.wording import counted, in_columns

if TYPE_CHECKING:
    from nmt.data.catalogue.schema import CatalogueEntry, NamedCorpus, TextFile

_log = logging.getLogger(__name__)
_WIDTH = 100
_SPLITS_WIDTH = 43
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
    if search is not None:
        _list_names(search.split())
        return
    from nmt.data.catalogue import entries
    from nmt.data.sample import SIZES

    rows = {group: [_row(entry) for entry in entries() if entry.group == group] for group in _GROUPS}
    sample = ["sample:", "en de", _brief_splits(SIZES), "embedded"]
    lines = iter(in_columns([sample, *chain(*rows.values())]))
    typer.echo(next(lines))
    for group, title in _GROUPS.items():
        typer.echo("\n".join(["", title, *islice(lines, len(rows[group]))]))


def _list_names(words: Sequence[str]) -> None:
    """Print the names of corpora that have all words: ours, then those of mtdata. Raises DataError if there is none."""
    from nmt.data.catalogue import names
    from nmt.data.mtdata_index import search_mtdata

    set_up()
    matches = [name for name in names() if all(word.lower() in name.lower() for word in words)]
    for name in matches:
        typer.echo(name)
    try:
        others = search_mtdata(words)
    except UsageError as error:  # ours are listed without the extra
        _log.warning("%s", error)
        others = []
    for name in others:
        typer.echo(name)
    if not matches and not others:
        raise DataError(f"No corpus has '{' '.join(words)}' in its name; languages are as en in ours, eng in mtdata's.")


def _row(entry: CatalogueEntry) -> list[str]:
    """One line of the list."""
    first = entry.corpus(entry.names[0])
    if entry.pairs:
        name, languages, splits = f"{entry.name}-PAIR/", counted(len(entry.pairs), "pair"), dict.fromkeys(first.splits)
    else:
        name, languages, splits = f"{entry.name}/", " ".join(entry.languages), first.splits
    if len(entry.languages) > 5:
        languages = counted(len(entry.languages), "language")
    return [name, languages, _brief_splits(splits), "local only" if first.local_only else "fetched on use"]


def _brief_splits(sizes: dict[str, int | None] | dict[str, int]) -> str:
    """The splits with their sizes, as many as fit."""
    items = [f"{name} {count:,}" if count else name for name, count in sizes.items()]
    for shown in range(len(items), 0, -1):
        rest = f", {len(items) - shown} more" if shown < len(items) else ""
        if len(text := ", ".join(items[:shown]) + rest) <= _SPLITS_WIDTH:
            return text
    return f"{len(items)} splits"


# --- one corpus -------------------------------------------------------------------------------------------------


@corpora_app.command("info", cls=Command)
def describe_corpus(
    name: Annotated[str, argument("Corpus of `nmt corpora list`.", "NAME", default=False)],
) -> None:
    """Describe a corpus: splits, checksums, license, citation and sources.

    Examples:
      nmt corpora info multi30k
      nmt corpora info sacrebleu:wmt14

    Details:

    Sources are tried in order. "verified" text must have the SHA-256 of the catalogue. Of other text the SHA-256 is recorded
    at the first fetch and compared from then on.
    """
    from nmt.data.mtdata_index import PREFIX as MTDATA
    from nmt.data.mtdata_index import describe_mtdata
    from nmt.data.sacrebleu_sets import PREFIX as SACREBLEU
    from nmt.data.sacrebleu_sets import describe_test_set

    describe = {MTDATA: describe_mtdata, SACREBLEU: describe_test_set}.get(f"{name.partition(':')[0]}:")
    rows = list(describe(name).items()) if describe else _description(name)
    lines: list[list[str]] = []
    for key, text in rows:
        wrapped = textwrap.wrap(text, _WIDTH - 12, break_long_words=False, break_on_hyphens=False)
        lines += [[key if number == 0 else "", line] for number, line in enumerate(wrapped)]
    print_table(lines)


def _description(name: str) -> list[tuple[str, str]]:
    """What the catalogue says of a corpus, or of those of all language pairs."""
    from nmt.data.catalogue import entries, named

    family = next((entry for entry in entries() if entry.pairs and entry.name == name), None)
    corpus = family.corpus(family.names[0]) if family else named(name)
    rows = _family_rows(family) if family else _corpus_rows(corpus)
    entry = corpus.entry
    rows += [("license", entry.license), ("home", entry.home), ("citation", entry.citation)]
    return rows + [(key, text) for key, text in (("note", entry.note), ("derivation", entry.derivation)) if text]


def _family_rows(entry: CatalogueEntry) -> list[tuple[str, str]]:
    rows = [("name", f"{entry.name}-PAIR"), ("title", entry.title), ("pairs", ", ".join(entry.pairs))]
    for split, details in entry.splits.items():
        rows += [("split", split), *(("  source", source.place) for source in details.sources)]
    return rows


def _corpus_rows(corpus: NamedCorpus) -> list[tuple[str, str]]:
    rows = [("name", corpus.name), ("title", corpus.entry.title), ("languages", " ".join(corpus.languages))]
    for split, count in corpus.splits.items():
        files = [file for file in corpus.files if file.split == split]
        size = f", {counted(count, 'line')}" if count else ", size not known"
        rows += [("split", f"{split}{size}; {_verification(files)}")]
        rows += [("  source", text) for text in _sources(files)]
        rows += [("  here", str(folder)) for folder in _folders(corpus.name, files)]
    return rows


def _verification(files: Sequence[TextFile]) -> str:
    """Which sides have a checksum in the catalogue."""
    verified = [file.language for file in files if file.sha256]
    if len(verified) == len(files):
        return "verified"
    return f"verified: {' '.join(verified)}" if verified else "not verified"


def _sources(files: Sequence[TextFile]) -> list[str]:
    """The sources of a split in order, and the sides that each has, if it has not all."""
    sides: dict[str, list[str]] = {}
    for file in files:
        for source in file.sources:
            sides.setdefault(source.place, []).append(file.language)
    return [text if len(has) == len(files) else f"{text} ({' '.join(has)})" for text, has in sides.items()]


def _folders(name: str, files: Sequence[TextFile]) -> list[Path]:
    """Where the files of a split are on this machine."""
    from nmt.data.catalogue import local_file

    paths = (local_file(name, file.split, file.language) for file in files)
    return list(Counter(path.parent for path in paths if path))


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

    Existing files are kept. Sources are tried in order. An interrupted download continues when the command is repeated; until
    then its part stays in the folder downloads of the cache.
    """
    from nmt.data.catalogue.fetching import fetch
    from nmt.data.mtdata_index import PREFIX, fetch_mtdata

    set_up()
    corpus, _, split = name.partition("/")
    with showing_downloads() as show:
        is_mtdata = name.startswith(PREFIX)
        paths = fetch_mtdata(name, show) if is_mtdata else fetch(corpus, split or None, progress=show)
    for path in paths:
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
        items = check(corpus)
        if name is None and not any(item.path for item in items):
            continue
        for item in items:
            different += item.state == "different"
            name_of_file = f"{corpus}/{item.file.split}.{item.file.language}"
            typer.echo(f"{item.state:10} {name_of_file}  {item.path or ''}".rstrip())
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
