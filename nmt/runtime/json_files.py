"""Read JSON that strangers wrote: every failure is one message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nmt.errors import DataError

_MOST_DIGITS = 40


def read_content(path: Path) -> bytes:
    """The content of a file. Raises DataError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from None


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, in which whole numbers of many digits are floating-point. Raises ValueError."""
    try:
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else float(digits))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: Path) -> Any:
    """The value of a JSON file. Raises DataError if it cannot be read or is damaged."""
    try:
        return parse_json(read_content(path))
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}.") from None


def read_records(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The JSON objects of a log, which has one per line, each with the number of its line.

    A last line without its end, which a crash leaves, and blank lines are passed over. Raises DataError, naming file and line.
    """
    records = []
    for number, line in enumerate(read_content(path).split(b"\n")[:-1], start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise DataError(f"{path} is damaged: line {number:,} is not a JSON object.")
        records.append((number, record))
    return records
