"""Read columns of data sets of the Hugging Face hub, through the package datasets."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nmt.data.tables import ROWS, Batches, arrow_texts, one_line
from nmt.errors import DataError
from nmt.runtime.cache import expand_home
from nmt.runtime.wording import reason


def read_hub(locator: str, names: Sequence[str], *, advice: bool = True) -> Batches:
    """Read columns of `hf:owner/name[/config]:split`, or of a local folder that `datasets` can read (`hf:./folder:split`).

    The first rows of a split, `hf:owner/name:train[:1000000]`, are streamed: the others are not downloaded. Line ends inside texts
    become spaces.

    Raises:
        DataError: the data set cannot be loaded or has no such columns of text, or it is a folder of `.tsv` or `.csv`, which `datasets`
            reads in ways of its own. With `advice`, the message says what to do without a connection.
    """
    parts = re.fullmatch(r"hf:(.+?):([\w.+-]+(?:\[[^\]]*\])?)", locator)
    if not parts:
        raise DataError(f"'{locator}' names no dataset: write hf:owner/name:split or hf:owner/name/config:split.")
    tables_in_folder = [*expand_home(parts[1]).rglob("*.[ct]sv*")]
    if tables_in_folder:
        raise DataError(f"{locator} is a folder of tables: name one of them, such as {min(tables_in_folder)}.")
    if first_rows := re.fullmatch(r"(.+)\[0?:(\d+)\]", parts[2]):
        tables = _first_tables(parts[1], first_rows[1], int(first_rows[2]), locator, advice)
    else:
        dataset = _load_dataset(parts[1], parts[2], locator, advice).with_format("arrow")
        tables = (dataset[start : start + ROWS] for start in range(0, len(dataset), ROWS))
    return (tuple(map(one_line, batch)) for batch in arrow_texts(tables, names, locator))


def _first_tables(path: str, split: str, count: int, locator: str, advice: bool) -> Iterator[Any]:
    """The first rows of a split, as they arrive."""
    dataset = _load_dataset(path, split, locator, advice, streaming=True)
    tables = dataset.with_format("arrow").iter(batch_size=ROWS)
    with _explaining(locator, advice=advice):
        while count > 0 and (table := next(tables, None)) is not None:  # `take` would read on, to the next file
            yield table[:count]
            count -= len(table)


def _load_dataset(path: str, split: str, locator: str, advice: bool, *, streaming: bool = False) -> Any:
    """Load a split of a data set of the hub, or of a local folder. Raises DataError if that fails."""
    import datasets  # not at the top: it takes a second

    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of each attempt; the last error says why
    owner, _, name = path.partition("/")
    name, _, config = name.partition("/")
    with _explaining(locator, advice=advice):
        if (folder := expand_home(path)).is_dir():
            return datasets.load_dataset(str(folder), split=split, streaming=streaming)
        return datasets.load_dataset(f"{owner}/{name}".rstrip("/"), config or None, split=split, streaming=streaming)


@contextmanager
def _explaining(locator: str, *, advice: bool) -> Iterator[None]:
    """A context whose errors become DataErrors that say why the data set cannot be loaded."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001 -- errors of hub, file system and readers share no base class
        first = error.__cause__ or error if type(error).__name__ == "DatasetGenerationError" else error
        remedy = ""
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError) and advice:
            remedy = (
                "; without a connection, load it once on a connected machine and copy its cache (HF_HOME), "
                "or export it to files and name those"
            )
        raise DataError(f"Cannot load {locator}: {reason(first)}{remedy}.") from None
