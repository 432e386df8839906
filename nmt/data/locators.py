"""A locator -> its parallel text: files of many formats, the catalogue, the hub, mtdata, sacreBLEU or the embedded sample.

The text is not changed.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from nmt.data import catalogue, sample
from nmt.data.catalogue import fetching
from nmt.data.columns import Column, collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.external import read_hub, read_mtdata, sacrebleu_files
from nmt.data.formats import PAIR_FILES, read_units
from nmt.data.lines import COMPRESSIONS, FORMATS, any_compression, read_lines, unequal
from nmt.data.mixture import mix
from nmt.data.sides import refuse_swapped_languages, refuse_swapped_scripts
from nmt.data.tables import find_columns, in_batches, is_table, read_table, suffix_among
from nmt.errors import DataError
from nmt.recipe import HELD_OUT, REST, DataConfig, HeldOutText
from nmt.runtime.arguments import as_path, refuse_address
from nmt.runtime.cache import expand_home
from nmt.text.languages import find_language
from nmt.text.normalization import Normalizer


def load_corpus(locator: str | Path, *, source: str, target: str, fetch: bool = True) -> ParallelCorpus:
    """Load a parallel corpus.

    Args:
        locator: `dir/train.{en,de}` or `dir/train` (any compression), a file with both sides (`.tsv .csv .jsonl .parquet .tmx
            .xlf .xliff .po`), `hf:owner/name[/config]:split`, a catalogue name `multi30k/train`, a test set of sacreBLEU
            `sacrebleu:wmt14/en-de`, a corpus of mtdata's index `mtdata:Statmt-europarl-10-deu-eng`, or `sample:train`. Braces,
            headers and keys of JSON name the languages, by code or English name (`de`, `deu`, `de_AT`, `German`), or are `source`
            and `target`, in any order. A `.tsv` without a header has the columns source and target. `[100:200]` at the end takes
            these pairs alone, counted from 0; `[:200]` and `[100:]` leave out one end. Of `hf:...[:200]` no other rows are
            downloaded. `[held-out]` takes the pairs that are kept back for validation, `[rest]` all others.
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
    if rows is None:
        corpus = _load(place, source, target, fetch=fetch)
    else:
        corpus = load_corpus(place, source=source, target=target, fetch=fetch)
        blocks = rows(len(corpus))
        sides = [Column.concatenated(map(side.part, blocks)) for side in (corpus.source, corpus.target)]
        corpus = replace(corpus, source=sides[0], target=sides[1], name=locator)
    if not len(corpus):
        if locator.endswith(HELD_OUT):
            problem = f"{place} has too few lines to keep some back for validation"
            raise DataError(f"{problem}: name a text by --valid (data.valid).")
        lines = "line" if rows is None else f"line of {place}"
        raise DataError(f"The corpus {locator} is empty: it has no {lines}.")
    are_two = source != target and find_language(source) and find_language(target)  # src and copy may be an exercise
    if are_two and len(corpus) >= 10 and all(first == second for first, second in corpus):  # a few lines may be names
        raise DataError(f"{locator} has the same text on both sides: name one for each language.")
    refuse_swapped_scripts(corpus)
    return corpus


def load_training_corpus(data: DataConfig) -> ParallelCorpus:
    """Load and normalize `data.train`: one corpus, or the mixture of several. Raises DataError like `load_corpus`."""
    return load_text(data, data.train)


def load_text(data: DataConfig, text: HeldOutText, *, fetch: bool = True) -> ParallelCorpus:
    """Load and normalize a text of a recipe, a mixture if it is several corpora or has tags.

    Raises:
        DataError: like `load_corpus`, or the sides of a corpus are swapped.
    """
    texts, parts = data.texts(text), []
    for config in texts:
        source, target = data.direction(config)
        corpus = load_corpus(config.corpus, source=source, target=target, fetch=fetch)
        refuse_swapped_languages(corpus)
        parts.append(corpus.normalized(Normalizer(data.normalization)))
    tags = list(map(data.tags, texts))
    return parts[0] if isinstance(text, str) and not any(tags) else mix(parts, tags)


def split_rows(locator: str) -> tuple[str, Callable[[int], list[slice]] | None]:
    """A locator without its rows, such as `[start:stop]`, and these, given how many there are; None without, or for `datasets`."""
    for name in (HELD_OUT, REST):
        if locator.endswith(name):
            return locator.removesuffix(name), partial(_held_out, rest=name == REST)
    match = re.fullmatch(r"(?!hf:)(.+)\[(\d*):(\d*)\]", locator)
    if match is None:
        return locator, None
    start, stop = (int(end) if end else None for end in match.groups()[1:])
    return match[1], lambda _: [slice(start, stop)]


def _held_out(pairs: int, *, rest: bool) -> list[slice]:
    """1,000 rows, at most a tenth, in ten blocks that are spread over the text, which may be sorted; or the rest of the rows."""
    count = min(1000, pairs // 10)
    starts = [pairs * block // 10 for block in range(11)]
    ends = [start + count * (block + 1) // 10 - count * block // 10 for block, start in enumerate(starts[:-1])]
    return list(map(slice, ends, starts[1:]) if rest else map(slice, starts, ends))


def _load(locator: str, source: str, target: str, *, fetch: bool) -> ParallelCorpus:
    """Load all pairs of a locator without rows."""
    languages = source, target
    if source == target and "{" not in locator:
        problem = f"{locator} is the text of both sides, since source and target are both {source}"
        raise DataError(f"{problem}: set two languages, or name two files as in dir/train.{{first,second}}.")
    if locator.startswith("sample:"):
        if {source, target} != {"en", "de"}:
            raise DataError(f"The sample is in en and de, not in {source} and {target}.")
        split = locator.removeprefix("sample:")
        return _from_files(sample.path(split, source), sample.path(split, target), locator, languages)
    if locator.startswith(("hf:", "mtdata:", "sacrebleu:")) and not fetch:
        raise DataError(f"{locator} may have to be fetched.")
    if locator.startswith("sacrebleu:"):
        return _from_files(*sacrebleu_files(locator, source, target), locator, languages)
    if locator.startswith("hf:"):
        batches = read_hub(locator, languages)
    elif locator.startswith("mtdata:"):
        batches = read_mtdata(locator, languages)
    elif is_table(locator):
        batches = read_table(locator, languages)
    elif suffix_among(FORMATS, locator):
        batches = read_units(locator, languages)
    else:
        return _from_files(*_find_files(locator, source, target, fetch=fetch), locator, languages)
    first, second = collect(batches, 2)
    return ParallelCorpus(first, second, locator, languages)


# --- two files ------------------------------------------------------------------------


def _from_files(source: Path, target: Path, name: str, languages: tuple[str, str]) -> ParallelCorpus:
    if source.exists() and target.exists() and source.samefile(target):
        raise DataError(f"{name} names the same file for both sides ({source}): name one for each language.")
    sides = [collect(in_batches(((line,) for line in read_lines(path)), 1), 1)[0] for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise unequal((source, target), list(map(len, sides)))
    return ParallelCorpus(sides[0], sides[1], name, languages)


def _find_files(locator: str, source: str, target: str, *, fetch: bool) -> tuple[Path, Path]:
    """Find the two files of a pattern with braces, a prefix, or a catalogue name."""
    names = _side_names(locator, source, target)
    paths = [any_compression(expand_home(name)) for name in names]
    if paths[0] and paths[1]:
        return paths[0], paths[1]
    is_name = not any(paths) and "{" not in locator
    if is_name and (place := catalogue.split_name(locator)):
        return fetching.find(*place, source, fetch=fetch), fetching.find(*place, target, fetch=fetch)
    missing = " and no file ".join(name for name, path in zip(names, paths, strict=True) if path is None)
    problem = f"There is no file {missing} (also with {' '.join(COMPRESSIONS[1:])})"
    if not is_name:
        raise DataError(f"{problem}.")
    if Path(locator).is_file():
        two = f"name two as in dir/train.{{{source},{target}}}, or one with both sides, such as .tsv"
        raise DataError(f"{problem}: {locator} is one file; {two}.")
    if (folder := expand_home(locator)).is_dir():
        raise DataError(f"{locator} is a folder: name its text, as {_pattern_in(folder, source, target)}.")
    raise DataError(f"{problem}, and no such name in the catalogue{catalogue.nearest(locator)}")


def _pattern_in(folder: Path, source: str, target: str) -> str:
    """The pattern of a text in a folder, that of the training text if it has one; of no particular text if it has none."""
    names = sorted(path.name for path in folder.iterdir())
    prefixes = [name.rpartition(f".{source}")[0] for name in names]
    sides = f".{{{source},{target}}}"
    texts = [f"{prefix}{sides}" for prefix in prefixes if prefix and any_compression(folder / f"{prefix}.{target}")]
    texts += [name for name in names if suffix_among(PAIR_FILES, name)]
    return f"{folder}/{min(texts, key=lambda text: 'train' not in text, default=f'train{sides}')}"


def _side_names(locator: str, source: str, target: str) -> tuple[str, str]:
    """The file names of both sides. Names in braces are found as columns are. Raises DataError if they are no such names."""
    if "{" not in locator:
        return f"{locator}.{source}", f"{locator}.{target}"
    if not (braces := re.search(r"\{ *([^{},]+?) *, *([^{},]+?) *\}", locator)):
        raise DataError(f"The braces in {locator} must hold two names, as in dir/train.{{{source},{target}}}.")
    first, second = names = braces.groups()
    languages = source, target
    if source != target:
        # the language in `src.de` or `de.tok` is the last word that names one
        words = ([name, *reversed(re.split("[._-]", name))] for name in names)
        header = [next((w for w in of_name if w in languages or find_language(w)), of_name[0]) for of_name in words]
        columns = find_columns(header, languages, locator)
        if columns is None:
            raise DataError(
                f"The braces in {locator} must name the languages {source} and {target}, by codes or English names, "
                f"but name {first} and {second}."
            )
        first, second = (names[column] for column in columns)
    head, tail = locator[: braces.start()], locator[braces.end() :]
    return head + first + tail, head + second + tail
