"""Read the lines of plain and compressed files.

Only `\\n` ends a line (the `\\r` of `\\r\\n` is dropped), so that no character inside a line can shift one side against the
other.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
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
                return cast(BinaryIO, gzip.open(path))
            case ".bz2":
                return cast(BinaryIO, bz2.open(path))
            case ".xz":
                return cast(BinaryIO, lzma.open(path))
            case ".zst":
                import pyarrow  # not at the top: only this format needs it

                return cast(BinaryIO, io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd")))
            case _:
                return path.open("rb")
    except OSError as error:
        raise DataError(f"Cannot open {place}: {error.strerror or error}.") from None


def blocks(place: str | Path) -> Iterator[bytes]:
    """The decompressed bytes of a file in blocks. Raises DataError if it cannot be opened or is damaged."""
    with open_binary(place) as stream:
        yield from _blocks(stream, str(place))


def read_lines(place: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 file without line ends and byte order mark. Raises DataError naming file and line."""
    with open_binary(place) as stream:
        yield from lines_of(stream, str(place))


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
    """Blocks as they arrive. Raises DataError if the stream is damaged."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    try:
        while block := read(_BLOCK):
            yield block
    except DAMAGED as error:
        raise DataError(f"{name} is damaged and cannot be read to its end: {error}.") from None


def _decode(block: bytes, name: str, before: int) -> str:
    """Decode whole lines; `before` is the number of lines before them. Removes the byte order mark of the first."""
    try:
        text = block.decode("utf-8")
        return text if before else text.removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = before + block[: error.start].count(b"\n") + 1
        raise DataError(f"{name}, line {line}: not valid UTF-8 (byte 0x{block[error.start]:02X}).") from None
