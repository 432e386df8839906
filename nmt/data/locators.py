"""A locator -> its parallel text: files of many formats, the catalogue, the hub, mtdata, sacreBLEU or the embedded sample.

The text is not changed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from nmt.data import catalogue, sample
from nmt.data.catalogue import fetching
from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.formats import PAIR_FILES, holds_pairs, read_pairs
from nmt.data.formats.archives import find_members, find_text, split_archive
from nmt.data.formats.sgml import is_sgml, read_sgml
from nmt.data.hub_datasets import read_hub
from nmt.data.lines import COMPRESSIONS, Place, any_compression, read_lines
from nmt.data.mixture import mix
from nmt.data.mtdata_index import mtdata_files
from nmt.data.sacrebleu_sets import sacrebleu_files
from nmt.data.sides import refuse_swapped_languages, refuse_swapped_scripts
from nmt.data.tables import ROWS, Batches, in_batches
from nmt.errors import DataError
from nmt.recipe import DataConfig, HeldOutText, TextConfig
from nmt.runtime.archive_members import ArchiveMember
from nmt.runtime.arguments import as_path, refuse_address
from nmt.runtime.wording import counted
from nmt.text.languages import LANGUAGES, base_language
from nmt.text.normalization import Normalizer


def load_corpus(locator: str | Path, *, source: str, target: str, fetch: bool = True) -> ParallelCorpus:
    """Load a parallel corpus.

    Args:
        locator: `dir/train.{en,de}` or `dir/train` (any compression; also two `.sgm` files), a file with both sides (`.tsv .csv
            .jsonl .parquet .tmx .xlf .xliff .po`), `x.zip` or `x.zip/train.{en,de}`, `hf:owner/name[/config]:split`, a
            catalogue name `multi30k/train`, a test set of sacreBLEU `sacrebleu:wmt14/en-de`, a corpus of mtdata's index
            `mtdata:Statmt-europarl-10-deu-eng`, or `sample:train`. The names in braces are source and target in this order,
            unless they begin or end with the two language codes, which may be in any order. Codes of other languages are an
            error. A header, or the keys of JSON, may also name the languages (`deu`, `de_DE`, `German`), or `source` and
            `target`, in any order. A `.tsv` without a header has the columns source and target. `[100:200]` at the end takes
            these pairs alone, counted from 0; `[:200]` and `[100:]` leave out one end. Of `hf:...[:200]` no other rows are
            downloaded.
        source: language code of the source side.
        target: language code of the target side.
        fetch: whether text may be downloaded. Without, the hub, mtdata and sacreBLEU are not asked at all.

    Raises:
        DataError: there is no such corpus, or its text is unusable. The message names file and line.
        UsageError: the locator is an address of the web, or needs an extra that is not installed.
    """
    locator = locator if isinstance(locator, str) else str(as_path(locator, "The corpus"))
    refuse_address(locator, ":SPLIT, such as :train")
    place, rows = split_rows(locator)
    corpus = _load(place, source, target, fetch=fetch)
    if rows is not None:
        corpus = replace(corpus, source=corpus.source.part(rows), target=corpus.target.part(rows), name=locator)
    if not len(corpus):
        lines = "line" if rows is None else f"line of {place}"
        raise DataError(f"The corpus {locator} is empty: it has no {lines}.")
    refuse_swapped_scripts(corpus)
    return corpus


def load_training_corpus(data: DataConfig) -> ParallelCorpus:
    """Load and normalize `data.train`: one corpus, or the mixture of several. Raises DataError like `load_corpus`."""
    return _mixed(data, data.train, data.corpora)


def load_text(data: DataConfig, text: HeldOutText, *, fetch: bool = True) -> ParallelCorpus:
    """Load and normalize `data.valid` or `data.test`, as a mixture if there are several. Raises DataError like `load_corpus`."""
    return _mixed(data, text, data.texts(text), fetch=fetch)


def _mixed(data: DataConfig, value: object, texts: Sequence[TextConfig], *, fetch: bool = True) -> ParallelCorpus:
    """Texts of a recipe in its normal form with their tags; a single corpus without any is no mixture."""
    tags = list(map(data.tags, texts))
    parts = []
    for text in texts:
        source, target = data.direction(text)
        parts.append(_normalized(data, load_corpus(text.corpus, source=source, target=target, fetch=fetch)))
    return parts[0] if isinstance(value, str) and not any(tags) else mix(parts, tags)


def _normalized(data: DataConfig, corpus: ParallelCorpus) -> ParallelCorpus:
    """A corpus in the normal form of a recipe. Raises DataError if its sides are swapped."""
    refuse_swapped_languages(corpus)
    return corpus.normalized(Normalizer(data.normalization))


def split_rows(locator: str) -> tuple[str, slice | None]:
    """A locator without its rows, and the rows; None if it names none, or leaves them to the package datasets."""
    return (locator, None) if locator.startswith("hf:") else named_rows(locator)


def named_rows(locator: str) -> tuple[str, slice | None]:
    """A locator without its rows `[start:stop]`, and the rows; None if it names none."""
    parts = re.fullmatch(r"(.+)\[(\d*):(\d*)\]", locator)
    if parts is None:
        return locator, None
    place, *ends = parts.groups()
    return place, slice(*(int(end) if end else None for end in ends))


def _load(locator: str, source: str, target: str, *, fetch: bool) -> ParallelCorpus:
    """Load all pairs of a locator without rows."""
    languages = source, target
    if source == target and "{" not in locator:
        raise DataError(
            f"{locator} would give both sides the same text, since source and target are both {source}: "
            "set two languages, or name two files as in dir/train.{first,second}."
        )
    if locator.startswith("sample:"):
        return _from_sample(locator, source, target)
    if locator.startswith(("hf:", "mtdata:", "sacrebleu:")) and not fetch:
        raise DataError(f"{locator} may have to be fetched.")
    if locator.startswith("hf:"):
        return _of_batches(read_hub(locator, languages), locator, languages)
    if locator.startswith("sacrebleu:"):
        return _from_files(*sacrebleu_files(locator, source, target), locator, languages)
    if locator.startswith("mtdata:"):
        return _from_files(*mtdata_files(locator, source, target), locator, languages)
    if archive := split_archive(locator):
        return _from_archive(*archive, locator, languages)
    if holds_pairs(locator):
        return _of_batches(read_pairs(locator, languages), locator, languages)
    return _from_files(*_find_files(locator, source, target, fetch=fetch), locator, languages)


# --- two files, or members of an archive ------------------------------------------------------------------------


def _from_files(source: Place, target: Place, name: str, languages: tuple[str, str]) -> ParallelCorpus:
    if _is_same(source, target):
        raise DataError(f"{name} names the same file for both sides ({source}): name one for each language.")
    if is_sgml(source) and is_sgml(target):
        return _of_batches(in_batches(read_sgml(source, target), 2), name, languages)
    sides = [collect(_batched(read_lines(path)), 1)[0] for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{source} has {counted(len(sides[0]), 'line')}, but {target} has {len(sides[1]):,}: "
            "line n of one must translate line n of the other."
        )
    return ParallelCorpus(sides[0], sides[1], name, languages)


def _is_same(source: Place, target: Place) -> bool:
    """Whether two names are those of one file, such as a file and a link to it."""
    if isinstance(source, ArchiveMember) or isinstance(target, ArchiveMember):
        return source == target
    try:
        return Path(source).samefile(target)
    except OSError:  # reading it says what is wrong
        return False


def _batched(lines: Iterator[str]) -> Iterator[tuple[list[str]]]:
    while batch := list(islice(lines, ROWS)):
        yield (batch,)


def _find_files(locator: str, source: str, target: str, *, fetch: bool) -> tuple[Path, Path]:
    """Find the two files of a pattern with braces, a prefix, or a catalogue name."""
    names = _side_names(locator, source, target)
    try:
        paths = [any_compression(Path(name).expanduser()) for name in names]
    except (ValueError, RuntimeError) as error:
        raise DataError(f"{locator} cannot be the name of a file: {error}.") from None
    if paths[0] and paths[1]:
        return paths[0], paths[1]
    is_name = not any(paths) and "{" not in locator
    if is_name and (place := catalogue.split_name(locator)):
        return fetching.find(*place, source, fetch=fetch), fetching.find(*place, target, fetch=fetch)
    missing = " and no file ".join(name for name, path in zip(names, paths, strict=True) if path is None)
    problem = f"There is no file {missing} (also with {' '.join(COMPRESSIONS[1:])})"
    if is_name and Path(locator).is_file():
        example = f"dir/train.{{{source},{target}}}"
        raise DataError(
            f"{problem}: {locator} is one file; name two as in {example}, or one that holds both sides "
            f"({' '.join(PAIR_FILES)} .zip)."
        )
    raise DataError(problem + (f", and no such name in the catalogue{catalogue.nearest(locator)}" if is_name else "."))


def _side_names(locator: str, source: str, target: str) -> tuple[str, str]:
    """The file names of both sides. Language codes in braces may be in any order.

    Raises:
        DataError: the braces do not hold two names, or name other languages.
    """
    if "{" not in locator:
        return f"{locator}.{source}", f"{locator}.{target}"
    if not (braces := re.search(r"\{ *([^{},]+?) *, *([^{},]+?) *\}", locator)):
        raise DataError(f"The braces in {locator} must hold two names, as in dir/train.{{{source},{target}}}.")
    first, second = braces.groups()
    if (_fits(first, target) or _fits(second, source)) and not (_fits(first, source) or _fits(second, target)):
        first, second = second, first
    for name, code in ((first, source), (second, target)):
        language = _language_in(name)
        if language is not None and language != base_language(code):
            raise DataError(
                f"{locator} names {' and '.join(braces.groups())}, but the languages are {source} and {target}: "
                f"name files of these, as in dir/train.{{{source},{target}}}, or set data.source and data.target to those."
            )
    head, tail = locator[: braces.start()], locator[braces.end() :]
    return head + first + tail, head + second + tail


def _fits(name: str, code: str) -> bool:
    """Whether a name in braces is a language code, begins with one as `de.tok` does with `de`, or ends with one as `src.de` does."""
    return name == code or name.startswith((f"{code}-", f"{code}_", f"{code}.")) or name.endswith(f".{code}")


def _language_in(name: str) -> str | None:
    """The language that a name in braces begins or ends with; None if it names none."""
    codes = base_language(name), name.rpartition(".")[2].lower()
    return next((code for code in codes if code in LANGUAGES), None)


def _from_archive(archive: Path, inside: str, locator: str, languages: tuple[str, str]) -> ParallelCorpus:
    """Read members of a zip archive: those that the locator names, or the only text."""
    if not inside:
        members = find_text(archive, *languages)
    else:
        members = find_members(archive, [inside] if holds_pairs(inside) else _side_names(inside, *languages))
    if len(members) == 1:
        return _of_batches(read_pairs(members[0], languages), locator, languages)
    return _from_files(members[0], members[1], locator, languages)


# --- tables, the hub and the sample -----------------------------------------------------------------------------


def _of_batches(batches: Batches, name: str, languages: tuple[str, str]) -> ParallelCorpus:
    source, target = collect(batches, 2)
    return ParallelCorpus(source, target, name, languages)


def _from_sample(locator: str, source: str, target: str) -> ParallelCorpus:
    split = locator.removeprefix("sample:")
    if {source, target} != {"en", "de"}:
        raise DataError(f"The sample is in en and de, not in {source} and {target}.")
    return _from_files(sample.path(split, source), sample.path(split, target), locator, (source, target))
