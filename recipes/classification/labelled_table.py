"""Texts and labels from a table with a header; every problem is one sentence."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from command_line import log
from torch import Tensor

from nmt import DataError

FEWEST_TEXTS = 20
_FORMATS: dict[str, dict[str, Any]] = {".tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE}}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what can go wrong while reading a file into a DataError."""
    try:
        yield
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from None


def read_lines(path: Path | None) -> list[str]:
    """The lines of a text; none if there is no path."""
    if path is None:
        return []
    with reading(path):
        return path.read_text(encoding="utf-8-sig").splitlines()


def read_table(path: Path, columns: Sequence[str]) -> list[list[str]]:
    """The values of these columns in all lines that have them.

    A `.tsv` is separated by tabs, and quotes in it are text; other tables are separated by commas, and quotes enclose text.
    """
    csv.field_size_limit(2**31 - 1)
    with reading(path), path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, **_FORMATS.get(path.suffix, {}))
        header = list(reader.fieldnames or [])
        if missing := [column for column in columns if column not in header]:
            raise DataError(f"{path} has no column '{missing[0]}': its columns are {', '.join(header) or 'none'}.")
        rows = [[(row[column] or "").strip() for column in columns] for row in reader]
    complete = [row for row in rows if all(row)]
    if len(complete) < len(rows):
        log(f"Skipped {len(rows) - len(complete):,} of {len(rows):,} lines, which lack a text or a label.")
    if len(complete) < FEWEST_TEXTS:
        raise DataError(f"{path} has {len(complete)} texts with labels, but training needs at least {FEWEST_TEXTS}.")
    return complete


def read_labels(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> tuple[list[str], Tensor]:
    """The names of the labels, and whether each row has them [N C].

    A single column names one class per row. Several columns are a label each, and hold 0 or 1.
    """
    if len(columns) == 1:
        names = sorted({row[0] for row in rows})
        if len(names) > len(rows) / 2:
            raise DataError(
                f"Column '{columns[0]}' has {len(names):,} classes in {len(rows):,} texts, too many to learn."
            )
        labels = [[row[0] == name for name in names] for row in rows]
    else:
        names = list(columns)
        if odd := {value for row in rows for value in row} - {"0", "1"}:
            raise DataError(f"Several label columns must hold 0 or 1, but one of them holds '{min(odd)}'.")
        labels = [[value == "1" for value in row] for row in rows]
    for place, name in enumerate(columns):
        if len({row[place] for row in rows}) == 1:
            raise DataError(f"Column '{name}' holds only '{rows[0][place]}', so there is nothing to learn.")
    return names, torch.tensor(labels)
