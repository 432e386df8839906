"""Read columns of data sets of the Hugging Face hub, through the package datasets."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from nmt.data.columns import collect
from nmt.data.tables import ROWS, Batches, arrow_texts, one_line, read_table, suffix_among
from nmt.errors import DataError
from nmt.runtime.cache import expand_home
from nmt.runtime.wording import reason


def read_hub(locator: str, names: Sequence[str], *, advice: bool = True) -> Batches:
    """Read columns of `hf:owner/name[/config]:split`, or of a local folder that `datasets` can read (`hf:./folder:split`).

    The first rows of a split, `hf:owner/name:train[:1000000]`, are streamed: the others are not downloaded. Tables of a local folder
    (`.tsv .csv`) are read as if they were named. Line ends inside texts become spaces. Raises DataError if the data set cannot be
    loaded or has no such columns of text; with `advice`, the message says what to do without a connection.
    """
    parts = re.fullmatch(r"hf:(.+?):([\w.+-]+(?:\[[^\]]*\])?)", locator)
    if not parts:
        raise DataError(f"'{locator}' names no dataset: write hf:owner/name:split or hf:owner/name/config:split.")
    if files := _local_tables(expand_home(parts[1]), locator, advice):
        return _rows_of_files(files, parts[2], names, locator)
    if first_rows := re.fullmatch(r"(.+)\[0?:(\d+)\]", parts[2]):
        tables = _first_tables(parts[1], first_rows[1], int(first_rows[2]), locator, advice)
    else:
        dataset = _load_dataset(parts[1], parts[2], locator, advice).with_format("arrow")
        tables = (dataset[start : start + ROWS] for start in range(0, len(dataset), ROWS))
    return (tuple(map(one_line, batch)) for batch in arrow_texts(tables, names, locator))


def _local_tables(folder: Path, locator: str, advice: bool) -> Mapping[str, Sequence[str]]:
    """The files of each split of a local folder; none if they are not all tsv or csv, or a card says how to read them."""
    if not folder.is_dir():
        return {}
    config = _load("load_dataset_builder", str(folder), locator=locator, advice=advice).config
    files = {str(split): paths for split, paths in (config.data_files or {}).items()}
    are_tables = all(suffix_among((".tsv", ".csv"), path) for path in chain(*files.values()))
    return files if are_tables and _has_defaults(config) else {}


def _has_defaults(config: Any) -> bool:
    """Whether a card sets nothing that says how to read the text of a table."""
    names = ("name", "version", "data_dir", "data_files", "description", "sep")
    return bool(config == type(config)(**{name: getattr(config, name) for name in names}))


def _rows_of_files(files: Mapping[str, Sequence[str]], split: str, names: Sequence[str], locator: str) -> Batches:
    """The rows of a split such as `train`, `train[:100]`, `train[50%:]` or `train+test`."""
    from datasets import ReadInstruction

    needed = re.sub(r"\[.*?\]", "", split).split("+")
    columns = {
        name: collect(chain.from_iterable(read_table(path, names) for path in paths), len(names))
        for name, paths in files.items()
        if name in needed
    }
    lengths = {name: len(columns[name][0]) if name in columns else 0 for name in files}
    with _explaining(locator, advice=False):
        parts = ReadInstruction.from_spec(split).to_absolute(lengths)
    for part in parts:
        sides = (column.part(slice(part.from_, part.to)).batches(ROWS) for column in columns[part.splitname])
        yield from zip(*sides, strict=True)


def _first_tables(path: str, split: str, count: int, locator: str, advice: bool) -> Iterator[Any]:
    """The first rows of a split, as they arrive."""
    dataset = _load_dataset(path, split, locator, advice, streaming=True)
    tables = dataset.with_format("arrow").iter(batch_size=ROWS)
    with _explaining(locator, advice=advice):
        while count > 0 and (table := next(tables, None)) is not None:  # `take` would read on, to the next file
            yield table[:count]
            count -= len(table)


def _load_dataset(path: str, split: str, locator: str, advice: bool, *, streaming: bool = False) -> Any:
    parts = path.split("/")
    folder = expand_home(path)
    is_folder = folder.is_dir()
    config = "/".join(parts[2:]) if len(parts) > 2 and not is_folder else None
    name = str(folder) if is_folder else "/".join(parts[:2])
    return _load("load_dataset", name, config, split=split, streaming=streaming, locator=locator, advice=advice)


def _load(function: str, *arguments: Any, locator: str, advice: bool, **options: Any) -> Any:
    """Call a function of `datasets`. Raises DataError if it fails."""
    try:
        import datasets
    except ImportError:
        raise DataError(f"{locator} needs the package datasets: install it with `pip install datasets`.") from None
    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of each attempt; the last error says why
    with _explaining(locator, advice=advice):
        return getattr(datasets, function)(*arguments, **options)


@contextmanager
def _explaining(locator: str, *, advice: bool) -> Iterator[None]:
    """A context whose errors become DataErrors that say why the data set cannot be loaded."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001 -- errors of hub, file system and readers share no base class
        raise DataError(f"Cannot load {locator}: {_reason(error, advice)}") from None


def _reason(error: Exception, advice: bool) -> str:
    """Why `datasets` failed, with advice if it was the connection."""
    first = error.__cause__ or error if type(error).__name__ == "DatasetGenerationError" else error
    text = reason(first)
    if not isinstance(error, OSError) or isinstance(error, FileNotFoundError) or not advice:
        return f"{text}."
    return (
        f"{text}; without a connection, load it once on a connected machine and copy its cache (HF_HOME), "
        "or export it to files and name those."
    )
