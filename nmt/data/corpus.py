"""Load parallel text by locator: files, tables, the catalogue, the Hugging Face hub or the embedded sample.

Only `\\n` ends a line (the `\\r` of `\\r\\n` is dropped), so that no character inside a line can shift one side against the
other. The text is not changed otherwise. Columns are Arrow arrays; large ones are memory-mapped.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from nmt.arguments import as_path
from nmt.cache import expand_home
from nmt.data import catalogue
from nmt.data.catalogue import COMPRESSIONS, any_compression
from nmt.data.columns import Column, collect
from nmt.errors import DataError
from nmt.wording import counted

LANGUAGES = frozenset(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et
    eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk
    kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny
    oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk
    tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    """.split()
)
"""All codes of ISO 639-1."""
_BLOCK = 2**20
_ROWS = 10_000
_Batches = Iterator[tuple[list[str], ...]]
"""Batches of rows; each is a tuple with one list per column."""


@dataclass(frozen=True)
class ParallelCorpus:
    """Lines of two languages; row n of one translates row n of the other."""

    source: Column
    target: Column
    name: str

    def __len__(self) -> int:
        return len(self.source)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs in order."""
        return zip(self.source, self.target, strict=True)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all text, independent of the files it came from."""
        digest = blake2b(digest_size=16)
        for side in (self.source, self.target):
            for batch in side.batches():
                digest.update(json.dumps(batch).encode())
        return digest.hexdigest()


def load_corpus(locator: str | Path, *, source: str, target: str) -> ParallelCorpus:
    """Load a parallel corpus.

    Args:
        locator: `dir/train.{en,de}` or `dir/train` (any compression), a table (`.tsv .csv .jsonl .parquet`),
            `hf:owner/name[/config]:split`, a catalogue name `multi30k/train`, or `sample:train`. The names in braces are
            source and target in this order, unless they are the two language codes, which may be in any order. Codes of other
            languages are an error.
        source: language code of the source side.
        target: language code of the target side.

    Raises:
        DataError: there is no such corpus, or its text is unusable. The message names file and line.
    """
    locator = locator if isinstance(locator, str) else str(as_path(locator, "The corpus"))
    if locator.startswith("sample:"):
        corpus = _from_sample(locator, source, target)
    elif locator.startswith("hf:"):
        corpus = _from_hub(locator, source, target)
    elif kind := _table_kind(locator):
        corpus = _of_batches(_READERS[kind](_existing(locator), (source, target)), locator)
    else:
        corpus = _from_files(*_find_files(locator, source, target), locator)
    if not len(corpus):
        raise DataError(f"The corpus {locator} is empty: it has no line.")
    return corpus


# --- lines of files ---------------------------------------------------------------------------------------------


def open_binary(path: str | Path) -> BinaryIO:
    """Open a file, decompressed by its suffix (.gz .zst .xz .bz2). Raises DataError if it cannot be opened."""
    try:
        match Path(path).suffix:
            case ".gz":
                return cast(BinaryIO, gzip.open(path))
            case ".bz2":
                return cast(BinaryIO, bz2.open(path))
            case ".xz":
                return cast(BinaryIO, lzma.open(path))
            case ".zst":
                import pyarrow  # not at the top: only this format needs it

                return cast(BinaryIO, io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd")))
            case _:
                return Path(path).open("rb")
    except OSError as error:
        raise DataError(f"Cannot open {path}: {error.strerror or error}.") from None


def blocks(path: str | Path) -> Iterator[bytes]:
    """The decompressed bytes of a file in blocks. Raises DataError if it cannot be opened or is damaged."""
    with open_binary(path) as stream:
        yield from _blocks(stream, str(path))


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 file without line ends and byte order mark. Raises DataError naming file and line."""
    with open_binary(path) as stream:
        yield from lines_of(stream, str(path))


def lines_of(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a stream of UTF-8 bytes, each as soon as it is complete; `name` is for error messages."""
    rest, before = b"", 0
    for block in _blocks(stream, name):
        end = block.rfind(b"\n") + 1
        if not end:
            rest += block
            continue
        whole, rest = rest + block[:end], block[end:]
        lines = _decode(whole, name, before).split("\n")
        lines.pop()  # the empty text after the last line end
        before += len(lines)
        yield from (line.removesuffix("\r") for line in lines)
    if last := _decode(rest, name, before):
        yield last.removesuffix("\r")


def _blocks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Read blocks as they arrive, without waiting for full ones. Raises DataError if the stream is damaged."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    try:
        while block := read(_BLOCK):
            yield block
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise DataError(f"{name} is damaged and cannot be read to its end: {error}.") from None


def _decode(block: bytes, name: str, before: int) -> str:
    """Decode whole lines; `before` is the number of lines before them. Removes the byte order mark of the first."""
    try:
        text = block.decode("utf-8")
        return text if before else text.removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = before + block[: error.start].count(b"\n") + 1
        raise DataError(f"{name}, line {line}: not valid UTF-8 (byte 0x{block[error.start]:02X}).") from None


# --- two files --------------------------------------------------------------------------------------------------


def _from_files(source: Path, target: Path, name: str) -> ParallelCorpus:
    sides = [collect(_batched(read_lines(path)), 1)[0] for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{source} has {counted(len(sides[0]), 'line')}, but {target} has {len(sides[1]):,}: "
            "line n of one must translate line n of the other."
        )
    return ParallelCorpus(sides[0], sides[1], name)


def _batched(lines: Iterator[str]) -> Iterator[tuple[list[str]]]:
    while batch := list(islice(lines, _ROWS)):
        yield (batch,)


def _find_files(locator: str, source: str, target: str) -> tuple[Path, Path]:
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
        return catalogue.find(*place, source), catalogue.find(*place, target)
    missing = " and no file ".join(name for name, path in zip(names, paths, strict=True) if path is None)
    problem = f"There is no file {missing} (also with {' '.join(COMPRESSIONS[1:])})"
    if is_name and Path(locator).is_file():
        example = f"dir/train.{{{source},{target}}}"
        raise DataError(
            f"{problem}: {locator} is one file; name two as in {example}, or a table ({' '.join(_READERS)})."
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
        if _language(name) in LANGUAGES and _language(name) != _language(code):
            raise DataError(
                f"{locator} names {' and '.join(braces.groups())}, but the languages are {source} and {target}: "
                f"name files of these, as in dir/train.{{{source},{target}}}, or set data.source and data.target to those."
            )
    head, tail = locator[: braces.start()], locator[braces.end() :]
    return head + first + tail, head + second + tail


def _fits(name: str, code: str) -> bool:
    """Whether a name in braces is a language code or begins with one, as `de.tok` does with `de`."""
    return name == code or name.startswith((f"{code}-", f"{code}_", f"{code}."))


def _language(name: str) -> str:
    """The first part of a name, which may be a language code: `de` of `de`, `de-AT` and `de.tok`."""
    return re.split(r"[-_.]", name, maxsplit=1)[0].lower()


# --- tables -----------------------------------------------------------------------------------------------------


def is_table(path: str | Path) -> bool:
    """Whether the suffix of a file is that of a table."""
    return _table_kind(str(path)) is not None


def read_column(path: Path, language: str) -> Column:
    """Read the column of one language from a table. Raises DataError if there is none, or it is not text."""
    batches = _READERS[_table_kind(str(path)) or ".tsv"](_existing(str(path)), (language,))
    [column] = collect(([_one_line(texts) for texts in batch] for batch in batches), 1)
    return column


def _table_kind(locator: str) -> str | None:
    name = next((locator.removesuffix(end) for end in COMPRESSIONS[1:] if locator.endswith(end)), locator)
    return next((kind for kind in _READERS if name.endswith(kind) and "{" not in locator), None)


def _existing(locator: str) -> Path:
    try:
        path = Path(locator).expanduser()
        if path.is_file():
            return path
    except (OSError, ValueError, RuntimeError):  # an invalid name, or an unknown home folder
        pass
    raise DataError(f"There is no file {locator}.")


def _of_batches(batches: _Batches, name: str) -> ParallelCorpus:
    source, target = collect((tuple(_one_line(side) for side in batch) for batch in batches), 2)
    return ParallelCorpus(source, target, name)


def _one_line(texts: list[str]) -> list[str]:
    """Replace line ends inside texts by a space, so that each text is one line."""
    return [re.sub(r"[\r\n]+", " ", text) if "\n" in text else text for text in texts]


def _delimited(path: Path, names: Sequence[str], delimiter: str) -> _Batches:
    """Read rows of a csv file (quotes as in RFC 4180) or a tsv file (no quotes, header optional)."""
    rows = _csv_rows(path) if delimiter == "," else enumerate((line.split("\t") for line in read_lines(path)), 1)
    first = next(rows, None)
    if first is None:
        return
    header = first[1]
    if set(names) <= set(header):
        columns = [header.index(name) for name in names]
    elif delimiter == "\t" and len(names) == 2 and _is_row(header, names):
        columns, rows = [0, 1], chain([first], rows)
    else:
        raise DataError(f"{path}, line 1: needs the {_columns(names)}, but has {', '.join(header)}.")
    yield from _unzipped(_cells(path, rows, len(header), columns), len(names))


def _is_row(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the first line of a table is text rather than a header, since it names no language."""
    return len(cells) >= 2 and not set(names) & set(cells) and not set(cells[:2]) <= LANGUAGES


def _columns(names: Sequence[str], conjunction: str = "and") -> str:
    return f"column{'s' * (len(names) > 1)} {f' {conjunction} '.join(names)}"


def _cells(
    path: Path, rows: Iterator[tuple[int, list[str]]], width: int, columns: Sequence[int]
) -> Iterator[tuple[str, ...]]:
    for line, row in rows:
        if len(row) != width:
            raise DataError(f"{path}, line {line}: the number of columns is {len(row)}, but {width} in the first line.")
        yield tuple(row[column] for column in columns)


def _unzipped(rows: Iterator[tuple[str, ...]], width: int) -> _Batches:
    while batch := list(islice(rows, _ROWS)):
        yield tuple([row[column] for row in batch] for column in range(width))


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((line + "\n" for line in read_lines(path)), strict=True)
    before = 0
    try:
        for row in reader:
            if row:  # not a blank line
                yield before + 1, row
            before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{path}, line {before + 1}: not valid CSV ({error}).") from None


def _json_lines(path: Path, names: Sequence[str]) -> _Batches:
    """Read a file with one JSON object per line: `{"en": ..., "de": ...}`, also nested in `"translation"`."""
    example = ", ".join(f'"{name}": ...' for name in names)

    def rows() -> Iterator[tuple[str, ...]]:
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
                row = row.get("translation", row)
                texts = tuple(row[name] for name in names)
            except (ValueError, RecursionError):
                raise DataError(f"{where}: not valid JSON: {line[:60]!r}.") from None
            except (KeyError, TypeError, AttributeError):
                raise DataError(f"{where}: needs {{{example}}}, but is {line[:60]!r}.") from None
            _check_text(texts, where)
            if "\\u" in line:
                _refuse_surrogates(texts, where)
            yield texts

    return _unzipped(rows(), len(names))


def _check_text(texts: Sequence[Any], where: str) -> None:
    """Raise DataError if a cell is not text."""
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"{where}: every side must be text, but one is {text!r}.")


def _refuse_surrogates(texts: Sequence[str], where: str) -> None:
    """Raise DataError if a text has a lone surrogate (`\\ud83d`), which JSON allows but UTF-8 does not."""
    for text in texts:
        if match := re.search(r"[\ud800-\udfff]", text):
            raise DataError(f"{where}: character {match.start() + 1} of {text[:60]!r} is a lone surrogate.")


def _parquet(path: Path, names: Sequence[str]) -> _Batches:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            tables = (pa.Table.from_batches([batch]) for batch in file.iter_batches(_ROWS))
            yield from _arrow_texts(tables, names, str(path))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a valid Parquet file: {str(error).rstrip('.')}.") from None


def _arrow_texts(tables: Iterator[Any], names: Sequence[str], place: str) -> _Batches:
    """Read text columns from tables; `place` is the name of the whole in error messages."""
    before = 0
    for table in tables:
        columns = _arrow_columns(table, names, place)
        try:
            texts = tuple(column.to_pylist() for column in columns)
        except UnicodeDecodeError as error:
            raw = zip(*(column.cast("binary").to_pylist() for column in columns), strict=True)
            row = next(row for row, cells in zip(count(before + 1), raw, strict=False) if error.object in cells)
            raise DataError(f"{place}, row {row}: not valid UTF-8 ({error.object[:60]!r}).") from None
        for row, cells in zip(count(before + 1), zip(*texts, strict=True), strict=False):
            _check_text(cells, f"{place}, row {row}")
        before += len(table)
        yield texts


def _arrow_columns(table: Any, names: Sequence[str], place: str) -> list[Any]:
    """The columns of these names, at the top level or as fields of a struct column `translation`."""
    import pyarrow as pa

    if "translation" in table.column_names and pa.types.is_struct(table.schema.field("translation").type):
        table = table.select(["translation"]).flatten()
        table = table.rename_columns([column.removeprefix("translation.") for column in table.column_names])
    if missing := set(names) - set(table.column_names):
        columns = ", ".join(table.column_names)
        raise DataError(f"{place} has no {_columns(sorted(missing), 'or')}, only {columns}.")
    return [table.column(name) for name in names]


_READERS: dict[str, Callable[[Path, Sequence[str]], _Batches]] = {
    ".tsv": partial(_delimited, delimiter="\t"),
    ".csv": partial(_delimited, delimiter=","),
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}


# --- the hub and the sample -------------------------------------------------------------------------------------


def _from_hub(locator: str, source: str, target: str) -> ParallelCorpus:
    """Load `hf:owner/name[/config]:split`, or a local folder that `datasets` can read (`hf:./folder:split`)."""
    parts = re.fullmatch(r"hf:(.+?):([\w.+-]+(?:\[[^\]]*\])?)", locator)
    if not parts:
        raise DataError(f"'{locator}' names no dataset: write hf:owner/name:split or hf:owner/name/config:split.")
    dataset = _load_dataset(parts[1], parts[2], locator)
    tables = (dataset.with_format("arrow")[start : start + _ROWS] for start in range(0, len(dataset), _ROWS))
    return _of_batches(_arrow_texts(tables, (source, target), locator), locator)


def _load_dataset(path: str, split: str, locator: str) -> Any:
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
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as error:  # noqa: BLE001 -- errors of hub, file system and builders share no base class
        raise DataError(f"Cannot load {locator}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Why `datasets` failed, with advice if it was the connection."""
    first = error.__cause__ or error if type(error).__name__ == "DatasetGenerationError" else error
    text = " ".join(str(first).split()).rstrip(".") or type(first).__name__
    if not isinstance(error, OSError) or isinstance(error, FileNotFoundError):
        return f"{text}."
    return (
        f"{text}; without a connection, load it once on a connected machine and copy its cache (HF_HOME), "
        "or export it to files and name those."
    )


def _from_sample(locator: str, source: str, target: str) -> ParallelCorpus:
    from nmt.data import sample  # not at the top: it generates its sentences

    split = locator.removeprefix("sample:")
    if split not in sample.SPLITS:
        raise DataError(f"The sample has no split '{split}', only {', '.join(sample.SPLITS)}.")
    if {source, target} != {"en", "de"}:
        raise DataError(f"The sample is in en and de, not in {source} and {target}.")
    examples = sample.examples(split)
    pairs = ((item.source, item.target) if source == "en" else (item.target, item.source) for item in examples)
    return _of_batches(_unzipped(pairs, 2), locator)
