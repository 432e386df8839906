"""Corpora that other packages provide: data sets of the Hugging Face hub, mtdata's index, and sacreBLEU's test sets.

Each package downloads to a cache of its own. mtdata is the extra `mtdata`.
"""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.data.tables import ROWS, Batches, arrow_texts, in_batches
from nmt.errors import DataError, NmtError, UsageError
from nmt.runtime.cache import cache_folder, expand_home
from nmt.runtime.wording import did_you_mean, reason
from nmt.text.languages import is_swapped


@contextmanager
def _explaining(problem: str, remedy: str = "") -> Iterator[None]:
    """A context whose errors become DataErrors; `remedy` is what to do without a connection."""
    try:
        yield
    except (NmtError, ImportError):
        raise
    except SystemExit:  # how sacreBLEU refuses a wrong checksum, after a line on stderr
        raise DataError(f"{problem}; the line above says why.") from None
    except Exception as error:  # noqa: BLE001 -- the packages have no errors of their own, and their parsers raise any
        first = error.__cause__ or error if type(error).__name__ == "DatasetGenerationError" else error
        is_absent = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
        raise DataError(f"{problem}: {reason(first)}{remedy if is_absent else ''}.") from None


# --- the hub ----------------------------------------------------------------------------------------------------


def read_hub(locator: str, names: Sequence[str]) -> Batches:
    """Read columns of `hf:owner/name[/config]:split`, or of a local folder that `datasets` can read (`hf:./folder:split`).

    The first rows of a split, `hf:owner/name:train[:1000000]`, are streamed: the others are not downloaded. Line ends inside texts
    become spaces.

    Raises:
        DataError: the data set cannot be loaded or has no such columns of text, or it is a folder of `.tsv` or `.csv`, which `datasets`
            reads in ways of its own.
    """
    parts = re.fullmatch(r"hf:(.+?):([\w.+-]+(?:\[[^\]]*\])?)", locator)
    if not parts:
        raise DataError(f"'{locator}' names no dataset: write hf:owner/name:split or hf:owner/name/config:split.")
    if tables := [*expand_home(parts[1]).rglob("*.[ct]sv*")]:
        raise DataError(f"{locator} is a folder of tables: name one of them, such as {min(tables)}.")
    return arrow_texts(_hub_tables(locator, *parts.groups()), names, locator)


def _hub_tables(locator: str, path: str, split: str) -> Iterator[Any]:
    """The rows of a split of a data set of the hub, or of a local folder, as Arrow tables. Raises DataError."""
    import datasets  # not at the top: it takes a second

    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of each attempt; the last error says why
    first_rows = re.fullmatch(r"(.+)\[0?:(\d+)\]", split)
    owner, _, name = path.partition("/")
    name, _, config = name.partition("/")
    remedy = "; without a connection, load it once on a connected machine and copy its cache (HF_HOME)"
    folder = expand_home(path)
    place = [str(folder)] if folder.is_dir() else [f"{owner}/{name}".rstrip("/"), config or None]
    with _explaining(f"Cannot load {locator}", remedy):
        dataset: Any = datasets.load_dataset(
            *place,
            split=first_rows[1] if first_rows else split,
            streaming=first_rows is not None,
        ).with_format("arrow")
        if first_rows is None:
            yield from (dataset[start : start + ROWS] for start in range(0, len(dataset), ROWS))
            return
        tables, count = dataset.iter(batch_size=ROWS), int(first_rows[2])
        while count > 0 and (table := next(tables, None)) is not None:  # `take` would read on, to the next file
            yield table[:count]
            count -= len(table)


# --- mtdata -----------------------------------------------------------------------------------------------------


def read_mtdata(locator: str, languages: tuple[str, str]) -> Batches:
    """Read a corpus such as `mtdata:Statmt-europarl-10-deu-eng` in either direction.

    Raises:
        DataError: the index has no such corpus, it is in other languages, or it cannot be fetched.
        UsageError: the extra `mtdata` is not installed.
    """
    with _mtdata(f"{locator} (`nmt corpora list --search WORDS` finds names)") as folder:
        from mtdata.cache import Cache
        from mtdata.entry import DatasetId
        from mtdata.index import INDEX
        from mtdata.parser import Parser

        entry = INDEX[DatasetId.parse(locator.removeprefix("mtdata:"))]
        first, second = map(str, entry.did.langs)
        swapped = is_swapped((first, second), languages, locator)
        paths = Cache(folder).get_entry(entry)
        rows = Parser(paths, ext=entry.in_ext or None, ent=entry).read_segs(show_pbar=False)
        pairs = ((row[1] or "", row[0] or "") if swapped else (row[0] or "", row[1] or "") for row in rows)
        yield from in_batches(pairs, 2)


def search_mtdata(words: Sequence[str]) -> list[str]:
    """The names of all parallel corpora that have all words, in any case. Raises DataError or UsageError."""
    with _mtdata("its index"):
        from mtdata.index import INDEX

        names = [str(entry.did) for entry in INDEX.get_entries() if len(entry.did.langs) == 2]
    return sorted(f"mtdata:{name}" for name in names if all(word.lower() in name.lower() for word in words))


@contextmanager
def _mtdata(what: str) -> Iterator[Path]:
    """A context in which mtdata is imported and is silent, and the folder of our cache for its index and downloads."""
    folder = cache_folder() / "mtdata"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MTDATA", str(folder))
    handlers = list(logging.root.handlers)
    logging.disable(logging.ERROR)  # it logs each step, and sets up logging when it is imported
    try:
        with _explaining(f"mtdata cannot read {what}"):
            yield folder
    except ImportError:
        raise UsageError('The corpora of mtdata need its package: pip install "attentional-nmt[mtdata]".') from None
    finally:
        logging.root.handlers[:] = handlers
        logging.disable(logging.NOTSET)


# --- sacreBLEU --------------------------------------------------------------------------------------------------


def sacrebleu_files(locator: str, source: str, target: str) -> tuple[Path, Path]:
    """The files of both sides of `sacrebleu:wmt14/en-de`; the first reference, if there are several.

    A test set is read in both directions, so `sacrebleu:wmt14/en-de` also serves de-en.

    Raises:
        DataError: sacreBLEU has no such test set or language pair, or cannot download it.
    """
    from sacrebleu.dataset import DATASETS

    whole = locator.removeprefix("sacrebleu:").strip("/")
    name, _, pair = whole.rpartition("/")
    if whole in DATASETS:
        raise DataError(f"{locator} needs a language pair, as in {locator}/{next(iter(DATASETS[whole].langpairs))}.")
    if name not in DATASETS:
        nearest = did_you_mean(name or whole, DATASETS, f"; it has {', '.join(DATASETS)}.")
        raise DataError(f"sacreBLEU has no test set '{name or whole}'{nearest}")
    test_set: Any = DATASETS[name]
    if pair not in test_set.langpairs:
        nearest = did_you_mean(pair, test_set.langpairs, f"; it has {', '.join(test_set.langpairs)}.")
        raise DataError(f"sacreBLEU's {name} has no {pair}{nearest}")
    first, second = pair.split("-", 1)
    swapped = is_swapped((first, second), (source, target), locator)
    remedy = "; on a machine without a connection, copy the folder ~/.sacrebleu of another, or name one with SACREBLEU"
    with _explaining(f"sacreBLEU cannot provide {locator}", remedy):
        files = [Path(test_set.get_source_file(pair)), Path(test_set.get_reference_files(pair)[0])]
    return (files[1], files[0]) if swapped else (files[0], files[1])
