"""Text input and output, line by line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from nmt.data.lines import lines_of, open_lines, unequal
from nmt.errors import DataError, UsageError
from nmt.runtime.files import replacing

if TYPE_CHECKING:
    from nmt.recipe import Direction

STANDARD = Path("-")
"""Standard input or output."""


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
    """Open stdin or a file, decompressed by its suffix.

    Raises DataError if it cannot be opened, or holds no lines of text by its suffix, and UsageError if it is a table.
    """
    from nmt.data.tables import is_table

    if path == STANDARD:
        if sys.stdin is None:
            raise DataError("Standard input is closed: name a file to read.")
        yield sys.stdin.buffer
        return
    if is_table(path):
        raise UsageError(
            f"{path} is no file with one sentence per line, which is needed here: write one with `nmt corpora export`."
        )
    with open_lines(path) as stream:
        yield stream


def read_side(path: Path) -> list[str]:
    """Read the lines of stdin or a file, which must be valid text. Raises DataError or UsageError."""
    with open_input(path) as stream:
        return list(lines_of(stream, input_name(path)))


@contextmanager
def open_texts(path: Path, direction: Direction) -> Iterator[Iterable[str]]:
    """Open the lines of stdin or a file as they arrive, or the source side of a table or of `sacrebleu:wmt14/en-de`."""
    from nmt.data.external import sacrebleu_files
    from nmt.data.tables import is_table, read_column

    if is_table(path):
        yield read_column(path, direction[0])
        return
    if str(path).startswith("sacrebleu:"):
        path = sacrebleu_files(str(path), *direction)[0]
    with open_input(path) as stream:
        lines = lines_of(stream, input_name(path), "replace")
        yield chain(list(islice(lines, 1)), lines)  # a file that is no text is refused before an output is opened


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
            replacing(path, keep_part=keep_part) as new,
            new.open("wb") as raw,
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
            packed = gzip.GzipFile(
                filename="", fileobj=raw, mode="wb", mtime=0
            )  # the same content gives the same bytes
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


def count_lines(path: Path) -> int | None:
    """The number of lines of a file; None for a table, and for a stream that can be read only once. Raises DataError."""
    from nmt.data.tables import is_table

    if not path.is_file() or is_table(path):
        return None
    with open_input(path) as stream:
        return sum(1 for _ in lines_of(stream, str(path), "ignore"))


def count_pairs(source: Path, target: Path) -> int | None:
    """Count the pairs of two files; None if one can be read only once. Raises DataError if they differ in length."""
    lines, translations = count_lines(source), count_lines(target)
    if lines is not None and translations is not None and lines != translations:
        raise unequal((source, target), (lines, translations))
    return lines


def read_joined(path: Path) -> Iterator[tuple[str, str]]:
    """Read pairs from lines `source ||| target`, as fast_align and eflomal do. Raises DataError or UsageError."""
    with open_input(path) as stream:
        for number, line in enumerate(lines_of(stream, input_name(path)), start=1):
            source, separator, target = f" {line} ".partition(" ||| ")
            if not separator or "|||" in target.split():
                raise DataError(
                    f"{input_name(path)}, line {number}: there must be one ` ||| ` between source and target."
                )
            yield source.strip(), target.strip()


def read_parallel(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Read pairs of lines from two files, one of which may be stdin. Raises DataError if they differ in length, or UsageError."""
    if source == target == STANDARD:
        raise UsageError("Standard input holds one side of the text: name a file for the other.")
    counts = [0, 0]
    with open_input(source) as sources, open_input(target) as targets:
        sides = lines_of(sources, input_name(source)), lines_of(targets, input_name(target))
        for number, pair in enumerate(zip_longest(*sides), start=1):
            counts = [count if line is None else number for count, line in zip(counts, pair, strict=True)]
            if number == 1 and any(" ||| " in (line or "") for line in pair):
                raise DataError(
                    "The text has lines `source ||| target`: `nmt links FILE` reads them; here give a file of each side."
                )
            if None not in pair:
                yield pair
    if counts[0] != counts[1]:
        raise unequal((input_name(source), input_name(target)), counts)
