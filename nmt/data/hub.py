"""Read columns of data sets of the Hugging Face hub, through the package datasets."""

import logging
import re
from collections.abc import Sequence
from typing import Any

from nmt.cache import expand_home
from nmt.data.tables import ROWS, Batches, arrow_texts, one_line
from nmt.errors import DataError


def read_hub(locator: str, names: Sequence[str], *, advice: bool = True) -> Batches:
    """Read columns of `hf:owner/name[/config]:split`, or of a local folder that `datasets` can read (`hf:./folder:split`).

    Line ends inside texts become spaces. Raises DataError if the data set cannot be loaded or has no such columns of text;
    with `advice`, the message says what to do without a connection.
    """
    parts = re.fullmatch(r"hf:(.+?):([\w.+-]+(?:\[[^\]]*\])?)", locator)
    if not parts:
        raise DataError(f"'{locator}' names no dataset: write hf:owner/name:split or hf:owner/name/config:split.")
    dataset = _load_dataset(parts[1], parts[2], locator, advice)
    tables = (dataset.with_format("arrow")[start : start + ROWS] for start in range(0, len(dataset), ROWS))
    return (tuple(map(one_line, batch)) for batch in arrow_texts(tables, names, locator))


def _load_dataset(path: str, split: str, locator: str, advice: bool) -> Any:
    try:
        import datasets
    except ImportError:
        raise DataError(f"{locator} needs the package datasets: install it with `pip install datasets`.") from None
    parts = path.split("/")
    folder = expand_home(path)
    is_folder = folder.is_dir()
    config = "/".join(parts[2:]) if len(parts) > 2 and not is_folder else None
    name = str(folder) if is_folder else "/".join(parts[:2])
    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of each attempt; the last error says why
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as error:  # noqa: BLE001 -- errors of hub, file system and builders share no base class
        raise DataError(f"Cannot load {locator}: {_reason(error, advice)}") from None


def _reason(error: Exception, advice: bool) -> str:
    """Why `datasets` failed, with advice if it was the connection."""
    first = error.__cause__ or error if type(error).__name__ == "DatasetGenerationError" else error
    text = " ".join(str(first).split()).rstrip(".") or type(first).__name__
    if not isinstance(error, OSError) or isinstance(error, FileNotFoundError) or not advice:
        return f"{text}."
    return (
        f"{text}; without a connection, load it once on a connected machine and copy its cache (HF_HOME), "
        "or export it to files and name those."
    )
