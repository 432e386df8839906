"""Read columns of tables: tsv, csv, JSON Lines, Parquet and Arrow."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from nmt.data.columns import Column, collect
from nmt.data.lines import COMPRESSIONS, read_lines
from nmt.errors import DataError
from nmt.runtime.cache import expand_home
from nmt.text.languages import find_language, matching

ROWS = 10_000
"""Rows per batch."""
_QUOTED = re.compile(r'"(?=.*"")(?:[^"]|"")*"')
"""A cell that a writer of CSV has put in quotes because of the quotes in it, which it has doubled."""
Batches = Iterator[tuple[list[str], ...]]
"""Batches of rows; each is a tuple with one list per column."""
Pairs = Iterator[tuple[str, str]]
_SIDES = tuple(
    re.compile(rf"({side})([ _-](text|sentence|segment))?", re.IGNORECASE)
    for side in ("source|src", "target|tgt|trg|translation")
)
"""Names of columns that are none of a language."""


def is_table(path: str | Path) -> bool:
    """Whether the suffix of a file is that of a table."""
    return suffix_among(TABLES, path) is not None


def suffix_among(suffixes: Iterable[str], place: str | Path) -> str | None:
    """Which of these suffixes a name has, before that of a compression; None if it has none, or braces."""
    name = str(place)
    name = next((name.removesuffix(end) for end in COMPRESSIONS[1:] if name.endswith(end)), name)
    return next((suffix for suffix in suffixes if name.endswith(suffix) and "{" not in name), None)


def read_table(place: str | Path, names: Sequence[str], *, exact: bool = False) -> Batches:
    """Read the columns of these names; line ends inside texts become spaces, so that each text is one line.

    Unless `exact`, a header may name languages in other words (see `find_columns`), and a tsv file of two columns needs none.

    Raises DataError if there is no such file or column, or a cell is not text.
    """
    return _READERS[suffix_among(TABLES, place) or ".tsv"](existing_file(place), names, exact)


def read_column(path: Path, language: str) -> Column:
    """Read the column of one language from a table. Raises DataError if there is none, or it is not text."""
    [column] = collect(read_table(str(path), (language,)), 1)
    return column


def find_columns(
    header: Sequence[str], names: Sequence[str], place: object, *, exact: bool = False
) -> list[int] | None:
    """The columns of these names; None if the header lacks one.

    Unless `exact`, a name that is a language is the column that any code (`deu`, `de_DE`) or English name of it heads, and two
    languages are the columns `source` and `target` where the header does not name both.

    Raises DataError if several columns could be one of them; `place` is the name of the table.
    """
    columns = [
        [at for at, cell in enumerate(header) if cell == name]
        if exact
        else matching(header, name, [other for other in names if other != name])
        for name in names
    ]
    if not all(columns) and len(names) == 2 and not exact:
        columns = [[at for at, name in enumerate(header) if side.fullmatch(name.strip())] for side in _SIDES]
    if not all(columns):
        return None
    for name, numbers in zip(names, columns, strict=True):
        if len(numbers) > 1:
            several = " and ".join(header[at] for at in numbers)
            raise DataError(f"{place}: the columns {several} could both be {name}: rename or remove all but one.")
    pair = [at for [at] in columns]
    return pair if len(set(pair)) == len(names) else None


def existing_file(place: str | Path) -> Path:
    """The file of this name, `~` expanded. Raises DataError if there is none."""
    path = expand_home(place)
    if not path.is_file():
        raise DataError(f"There is no file {place}.")
    return path


def _delimited(path: Path, names: Sequence[str], exact: bool, delimiter: str) -> Batches:
    """Read rows of a csv file (quotes as in RFC 4180) or a tsv file (without a header, source and target)."""
    is_csv = delimiter == ","
    if not is_csv and '"' in (line := next(read_lines(path), "")):
        # all cells are in quotes if the names of columns are
        is_csv = find_columns(line.replace('"', "").split("\t"), names, path, exact=exact) is not None
    rows = _csv_rows(path, delimiter) if is_csv else _tsv_rows(path)
    first = next(rows, None)
    if first is None:
        return
    header, may_have_none = first[1], delimiter == "\t" and len(names) == 2 and not exact
    columns = find_columns(header, names, path, exact=exact)
    if columns is None and may_have_none and len(header) == 2:
        names_side = any(side.fullmatch(cell.strip()) for side in _SIDES for cell in header)
        # Short codes are words too (`is`, `so`): one of them beside a word counts only if it is a language of the table.
        names_language = any(matching(header, name) for name in names) or all(map(find_language, header))
        if not (names_side or names_language):
            columns, rows = [0, 1], chain([first], rows)
    if columns is None:
        advice = "; a table without a header has source and target alone" if may_have_none else ""
        raise DataError(f"{path}, line 1: needs the {_columns(names)}, but has {', '.join(header)}{advice}.")

    def cells() -> Iterator[tuple[str, ...]]:
        for line, row in rows:
            if len(row) != len(header):
                problem = f"the number of columns is {len(row)}, but {len(header)} in the first line"
                is_quoted = '"' in "".join(row) and not is_csv
                advice = "; save text with tabs or line ends in quotes as .csv" if is_quoted else ""
                raise DataError(f"{path}, line {line}: {problem}{advice}.")
            yield tuple(row[column] for column in columns)

    yield from in_batches(cells(), len(names))


def _columns(names: Sequence[str], conjunction: str = "and") -> str:
    return f"column{'s' * (len(names) > 1)} {f' {conjunction} '.join(names)}"


def in_batches(rows: Iterator[tuple[str, ...]], width: int) -> Batches:
    """Group rows into batches of columns. Line ends inside texts become spaces."""
    while batch := list(islice(rows, ROWS)):
        yield tuple(_single_lines([row[column] for row in batch]) for column in range(width))


def _single_lines(texts: list[str]) -> list[str]:
    return [re.sub(r"[\r\n]+", " ", text) if "\n" in text else text for text in texts]


def _tsv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a tsv file, numbered from 1. Quotes are text, except around a cell in which quotes are doubled."""
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if '""' in line:
            cells = [cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell for cell in cells]
        yield number, cells


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(2**31 - 1)
    lines = read_lines(path)
    header = next(lines, "")
    if delimiter == "," and header.count(";") > header.count(","):
        delimiter = ";"  # as Excel writes where the comma is in numbers
    reader = csv.reader((line + "\n" for line in chain([header], lines)), delimiter=delimiter, strict=True)
    before = 0
    try:
        for row in reader:
            if row:  # not a blank line
                yield before + 1, row
            before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{path}, line {before + 1}: not valid CSV ({error}).") from None


def _json_lines(path: Path, names: Sequence[str], exact: bool) -> Batches:
    """Read a file with one JSON object per line: `{"en": ..., "de": ...}`, also nested in `"translation"`."""
    example = ", ".join(f'"{name}": text' for name in names)

    def rows() -> Iterator[tuple[str, ...]]:
        header, columns = list[str](), list[int]()  # of the line before
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                row = nested if isinstance(nested := row.get("translation"), dict) else row
                if list(row) != header:
                    header = list(row)
                    columns = find_columns(header, names, path, exact=exact) or []
                if not columns:
                    raise TypeError
                texts = tuple(row[header[column]] for column in columns)
                "".join(texts).encode()  # fails if one is no text, or has a lone surrogate, which JSON allows
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number}: not valid JSON ({error}): {line[:60]!r}.") from None
            except (TypeError, AttributeError):
                raise DataError(f"{path}, line {number}: needs {{{example}}}, but is {line[:60]!r}.") from None
            yield texts

    return in_batches(rows(), len(names))


def _parquet(path: Path, names: Sequence[str], exact: bool) -> Batches:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            tables = (pa.Table.from_batches([batch]) for batch in file.iter_batches(ROWS))
            yield from arrow_texts(tables, names, str(path), exact=exact)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a valid Parquet file: {str(error).rstrip('.')}.") from None


def arrow_texts(tables: Iterator[Any], names: Sequence[str], place: str, *, exact: bool = False) -> Batches:
    """Read text columns from tables, as `read_table` does; `place` is the name of the whole in error messages."""
    before = 0
    for table in tables:
        columns = _arrow_columns(table, names, place, exact)
        try:
            texts = tuple(column.to_pylist() for column in columns)
        except UnicodeDecodeError as error:
            rows = f"rows {before + 1} to {before + len(table)}"
            raise DataError(f"{place}, {rows}: not valid UTF-8 ({error.object[:60]!r}).") from None
        for row, cells in enumerate(zip(*texts, strict=True), before + 1):
            for text in cells:
                if not isinstance(text, str):
                    raise DataError(f"{place}, row {row}: every side must be text, but one is {text!r}.")
        before += len(table)
        yield tuple(map(_single_lines, texts))


def _arrow_columns(table: Any, names: Sequence[str], place: str, exact: bool) -> list[Any]:
    """The columns of these names, at the top level or as fields of a struct column `translation`."""
    import pyarrow as pa

    if "translation" in table.column_names and pa.types.is_struct(table.schema.field("translation").type):
        table = table.select(["translation"]).flatten()
        table = table.rename_columns([column.removeprefix("translation.") for column in table.column_names])
    columns = find_columns(table.column_names, names, place, exact=exact)
    if columns is None:
        missing = [name for name in names if find_columns(table.column_names, [name], place, exact=exact) is None]
        raise DataError(f"{place} has no {_columns(missing, 'or')}, only {', '.join(table.column_names)}.")
    return [table.column(column) for column in columns]


_READERS: dict[str, Callable[[Path, Sequence[str], bool], Batches]] = {
    ".tsv": partial(_delimited, delimiter="\t"),
    ".csv": partial(_delimited, delimiter=","),
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}
TABLES = tuple(_READERS)
"""The suffixes of tables."""
