"""Text input and output, line by line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import logging
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from nmt.data.lines import lines_of, open_binary, read_lines
from nmt.errors import DataError, UsageError
from nmt.runtime.files import replacing
from nmt.runtime.wording import counted

if TYPE_CHECKING:
    from nmt.recipe import Direction

logger = logging.getLogger(__name__)

STANDARD = Path("-")
"""Standard input or output."""
_NAMED = 3
"""Most lines with invalid UTF-8 that get a warning of their own."""


def input_name(path: Path) -> str:
    """How messages name an input."""
    return "stdin" if path == STANDARD else str(path)


def is_terminal(path: Path) -> bool:
    """Whether the input is typed at a terminal."""
    return path == STANDARD and sys.stdin is not None and sys.stdin.isatty()


def is_conversation(source: Path, output: Path) -> bool:
    """Whether lines are typed at a terminal, and their translations are shown there."""
    return is_terminal(source) and output == STANDARD and sys.stdout is not None and sys.stdout.isatty()


def typed_lines(prompt: str) -> Iterator[str]:
    """Lines that are typed after a prompt, until Ctrl-D."""
    with suppress(ImportError):
        import readline  # noqa: F401 -- with it `input` edits lines and keeps a history
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    while True:
        try:
            line = input(prompt)
        except EOFError:
            print(file=sys.stderr)
            return
        yield line


def check_not_input(output: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raise UsageError if the output file is one of the inputs. None and stdin or stdout are none of them."""
    if output is None or output == STANDARD:
        return
    for path in inputs:
        if path not in (None, STANDARD) and output.exists() and path.exists() and output.samefile(path):
            raise UsageError(f"{output} is the input itself: write to another file.")


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """Open stdin or a file, decompressed by its suffix. Raises DataError if it cannot be opened."""
    if path == STANDARD:
        if sys.stdin is None:
            raise DataError("Standard input is closed: name a file to read.")
        yield sys.stdin.buffer
        return
    _refuse_pairs(path)
    with open_binary(path) as stream:
        yield stream


def input_file(path: Path, direction: Direction) -> Path:
    """The file to read: the source side of a test set such as `sacrebleu:wmt14/en-de`, else the path itself."""
    if not str(path).startswith("sacrebleu:"):
        return path
    from nmt.data.external import sacrebleu_files

    return sacrebleu_files(str(path), *direction)[0]


@contextmanager
def open_texts(path: Path, language: str) -> Iterator[Iterable[str]]:
    """Open the lines of stdin or a file as they arrive, or the column of a language in a table. Raises DataError."""
    from nmt.data.tables import is_table, read_column

    if is_table(path):
        yield read_column(path, language)
        return
    with open_input(path) as stream:
        yield text_lines(stream, path)


def _refuse_pairs(path: Path) -> None:
    """Raise UsageError if a file holds both sides of a text, by its suffix."""
    from nmt.data.formats import holds_pairs
    from nmt.data.tables import is_table

    if is_table(path):
        raise UsageError(
            f"{path} is a table, but a file with one sentence per line is needed here: write the column to a file of its own, "
            "or rename it if it has none."
        )
    if holds_pairs(path):
        raise UsageError(
            f"{path} holds both sides of a text, but a file with one sentence per line is needed here: write two such files "
            "with `nmt corpora export`."
        )


@contextmanager
def open_output(path: Path, *, keep_part: bool = False) -> Iterator[BinaryIO]:
    """Open stdout or a file for writing, compressed by its suffix. Raises DataError, for instance on a full disk.

    A file gets its name once it is complete. With `keep_part`, an incomplete one stays as `FILE.part`, with a warning.
    """
    if path == STANDARD:
        if sys.stdout is None:
            raise DataError("Standard output is closed: name a file to write.")
        yield sys.stdout.buffer
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing(path, keep_part=keep_part) as temporary,
            temporary.open("wb") as raw,
            _compressed(raw, path.suffix) as stream,
        ):
            yield stream
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from None


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to stdout or a file; a lone surrogate becomes `?`. Raises DataError."""
    with open_output(path) as stream:
        stream.writelines(line.encode("utf-8", "replace") + b"\n" for line in lines)


@contextmanager
def _compressed(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """A stream that compresses by suffix, buffered so that it writes whole blocks however often it is flushed."""
    packed: Any
    match suffix:
        case ".gz":
            packed = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0)  # reproducible
        case ".bz2":
            packed = bz2.BZ2File(raw, "wb")
        case ".xz":
            packed = lzma.LZMAFile(raw, "wb")  # noqa: SIM115 -- closed below
        case ".zst":
            import pyarrow  # not at the top: only .zst needs it

            packed = pyarrow.CompressedOutputStream(raw, "zstd")
        case _:
            yield raw
            return
    with packed, io.BufferedWriter(packed) as stream:
        yield cast(BinaryIO, stream)


def text_lines(stream: BinaryIO, path: Path) -> Iterator[str]:
    """The lines of a stream; only `\\n` ends a line. Invalid UTF-8 becomes U+FFFD, with a warning. Raises DataError."""
    name = input_name(path)
    bad = 0
    for number, line in enumerate(_intact(stream, name), start=1):
        content = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).removesuffix(b"\n")
        try:
            yield content.decode()
        except UnicodeDecodeError as error:
            bad += 1
            if bad <= _NAMED:
                byte = f"0x{content[error.start]:02X}"
                logger.warning("%s, line %d: not valid UTF-8 (byte %s), which is read as U+FFFD.", name, number, byte)
            yield content.decode(errors="replace")
    if bad > _NAMED:
        logger.warning("%s: %d lines in all were not valid UTF-8.", name, bad)


def count_lines(path: Path) -> int | None:
    """The number of lines of a file; None for a table, and for a stream that can be read only once."""
    from nmt.data.tables import is_table

    if not path.is_file() or is_table(path):
        return None
    with open_input(path) as stream:
        return sum(1 for _ in stream)


def _intact(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Pass the lines on. Raises DataError if their stream is damaged."""
    try:
        yield from lines
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{name} is damaged and cannot be read to its end: {error}.") from None


def read_parallel(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Read pairs of lines from two files, one of which may be stdin.

    Raises:
        DataError: they differ in length, or one cannot be read.
        UsageError: both are stdin, or one holds both sides.
    """
    _check_sides(source, target)
    counts = [0, 0]
    for pair in zip_longest(_side_lines(source), _side_lines(target)):
        for side, line in enumerate(pair):
            if line is not None:
                counts[side] += 1
        if counts[0] == counts[1]:
            yield pair
    _check_counts((source, target), counts)


def _check_sides(source: Path, target: Path) -> None:
    """Raise UsageError unless each file holds one side of a text: both are not stdin, and neither holds pairs."""
    if source == target == STANDARD:
        raise UsageError("Standard input holds one side of the text: name a file for the other.")
    _refuse_pairs(source)
    _refuse_pairs(target)


def _side_lines(path: Path) -> Iterator[str]:
    """The lines of stdin or a file. Raises DataError."""
    with open_input(path) as stream:
        yield from lines_of(stream, input_name(path))


def count_pairs(source: Path, target: Path) -> int | None:
    """Count the pairs of two files; None if one can be read only once. Raises DataError like `read_parallel`."""
    _check_sides(source, target)
    paths = source, target
    if any(path == STANDARD or (path.exists() and not path.is_file()) for path in paths):
        return None
    counts = [sum(1 for _ in read_lines(path)) for path in paths]
    _check_counts(paths, counts)
    return counts[0]


def _check_counts(paths: Sequence[Path], counts: Sequence[int]) -> None:
    if counts[0] != counts[1]:
        raise DataError(
            f"{input_name(paths[0])} has {counted(counts[0], 'line')}, but {input_name(paths[1])} has {counts[1]:,}: "
            "line n of one must translate line n of the other."
        )
