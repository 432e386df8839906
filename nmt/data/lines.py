"""Read the lines of plain and compressed files.

Only `\\n` ends a line (the `\\r` of `\\r\\n` is dropped), so that no character inside a line can shift one side against the
other.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from nmt.errors import DataError

COMPRESSIONS = ("", ".gz", ".zst", ".xz", ".bz2")
"""The suffixes of compressed files, and none."""
DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""What readers of damaged files raise."""
_BLOCK = 2**20


def any_compression(path: Path) -> Path | None:
    """The file of this name, or with one of the suffixes in `COMPRESSIONS`."""
    paths = (Path(f"{path}{suffix}") for suffix in COMPRESSIONS)
    return next((path for path in paths if path.is_file()), None)


def open_binary(place: str | Path) -> BinaryIO:
    """Open a file, decompressed by its suffix (.gz .zst .xz .bz2). Raises DataError if it cannot be opened, or is SGML."""
    path = Path(place)
    if {".sgm", ".sgml"} & {*path.suffixes[-2:]}:
        raise DataError(
            f"{path} is SGML: name the test set itself, as in sacrebleu:wmt14/en-de, or write its text to files."
        )
    try:
        match path.suffix:
            case ".gz":
                return cast(BinaryIO, io.BufferedReader(gzip.open(path), _BLOCK))
            case ".bz2":
                return cast(BinaryIO, io.BufferedReader(bz2.open(path), _BLOCK))
            case ".xz":
                return cast(BinaryIO, io.BufferedReader(lzma.open(path), _BLOCK))
            case ".zst":
                import pyarrow  # not at the top: only this format needs it

                return cast(BinaryIO, io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd"), _BLOCK))
            case _:
                return path.open("rb")
    except OSError as error:
        raise DataError(f"Cannot open {place}: {error.strerror or error}.") from None


def blocks(place: str | Path) -> Iterator[bytes]:
    """The decompressed bytes of a file in blocks. Raises DataError if it cannot be opened or is damaged."""
    with open_binary(place) as stream:
        try:
            while block := stream.read(_BLOCK):
                yield block
        except DAMAGED as error:
            raise _damaged(place, error) from None


def read_lines(place: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 file without line ends and byte order mark. Raises DataError naming file and line."""
    with open_binary(place) as stream:
        yield from lines_of(stream, str(place))


def lines_of(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a stream of UTF-8 bytes, each as soon as it is complete; `name` is for error messages."""
    number = 1
    try:
        if first := next(stream, b"").decode("utf-8-sig"):
            yield first.removesuffix("\n").removesuffix("\r")
        for number, line in enumerate(stream, 2):  # noqa: B007 -- the error names it
            yield line.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"0x{error.object[error.start]:02X}"
        raise DataError(f"{name}, line {number}: not valid UTF-8 (byte {byte}).") from None
    except DAMAGED as error:
        raise _damaged(name, error) from None


def _damaged(name: object, error: Exception) -> DataError:
    return DataError(f"{name} is damaged and cannot be read to its end: {error}.")
