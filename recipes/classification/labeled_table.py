"""Texts and labels from a table with a header; every problem is one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import torch
from command_line import log
from torch import Tensor

from nmt import DataError
from nmt.data import read_table

FEWEST_TEXTS = 20


def read_lines(path: Path | None) -> list[str]:
    """The lines of a text; none if there is no path."""
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from None


def read_rows(path: Path, columns: Sequence[str]) -> list[list[str]]:
    """The values of these columns in all lines that have them, read as `nmt` reads tables."""
    batches = read_table(path, columns, exact=True)
    rows = [
        [value.strip() for value in row] for row in chain.from_iterable(zip(*batch, strict=True) for batch in batches)
    ]
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
    for column, name in enumerate(columns):
        if len({row[column] for row in rows}) == 1:
            raise DataError(f"Column '{name}' holds only '{rows[0][column]}', so there is nothing to learn.")
    return names, torch.tensor(labels)
