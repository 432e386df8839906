"""What text is: lines of plain and compressed files, in UTF-8, or in UTF-16 with its byte order mark.

Only `\\n` ends a line (the `\\r` of `\\r\\n` is dropped), so that no character inside a line can shift one side against the
other.
"""

import bz2
import codecs
import gzip
import io
import logging
import lzma
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, cast

from nmt.errors import DataError
from nmt.runtime.wording import counted

COMPRESSIONS = ("", ".gz", ".zst", ".xz", ".bz2")
"""The suffixes of compressed files, and none."""
DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""What readers of damaged files raise."""
FORMATS = (".tmx", ".xlf", ".xliff", ".po")
"""The suffixes of files with both sides that translate-toolkit reads."""
_CONVERTERS = {
    FORMATS: "`nmt corpora export` writes its sides",
    (".sgm", ".sgml", ".xml"): "name the test set itself, as in sacrebleu:wmt14/en-de, or write its text to a file",
    (".docx", ".odt", ".rtf", ".epub", ".html", ".htm", ".xhtml"): "`pandoc -t plain --wrap=none` writes its text",
    (".doc", ".ppt", ".pptx", ".odp", ".xls", ".xlsx", ".ods"): "save it as text",
    (".pdf",): "`pdftotext` writes its text",
    (".srt", ".vtt", ".ass"): "`sub2po` and `po2txt` of translate-toolkit[subtitles] write its text",
}
"""What makes text of files with these suffixes, which have more than a sentence per line."""
_BEGINNINGS = {
    b"PK\x03\x04": "a zip file, such as a Word document: `pandoc -t plain --wrap=none` writes its text",
    b"%PDF-": "a PDF document: `pdftotext` writes its text",
    b"\x1f\x8b": "compressed: its name must end in .gz",
}
"""How files begin that are not text, whatever their names."""
_BLOCK = 2**20
_log = logging.getLogger(__name__)


def any_compression(path: Path) -> Path | None:
    """The file of this name, or with one of the suffixes in `COMPRESSIONS`."""
    paths = (Path(f"{path}{suffix}") for suffix in COMPRESSIONS)
    return next((path for path in paths if path.is_file()), None)


def open_binary(place: str | Path) -> BinaryIO:
    """Open a file, decompressed by its suffix (.gz .zst .xz .bz2). Raises DataError if it cannot be opened."""
    path = Path(place)
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


def open_lines(place: str | Path) -> BinaryIO:
    """Open a file that holds lines of text. Raises DataError if it cannot be opened, or holds none by its suffix."""
    name = str(place).lower()
    for compression in COMPRESSIONS[1:]:
        name = name.removesuffix(compression)
    for suffixes, converter in _CONVERTERS.items():
        if name.endswith(suffixes):
            raise DataError(f"{place} is no file with one sentence per line: {converter}.")
    return open_binary(place)


def read_lines(place: str | Path) -> Iterator[str]:
    """The lines of a text file without line ends and byte order mark. Raises DataError naming file and line."""
    with open_lines(place) as stream:
        yield from lines_of(stream, str(place))


def lines_of(stream: BinaryIO, name: str, errors: Literal["strict", "replace", "ignore"] = "strict") -> Iterator[str]:
    """The lines of a stream of bytes without line ends and byte order mark, each as soon as it is complete.

    Raises DataError if it is damaged or no text, and if `errors` is `strict` for invalid UTF-8. To `replace` it by U+FFFD causes one
    warning. `name` is for messages.
    """
    try:
        first = next(stream, b"")
        for beginning, kind in _BEGINNINGS.items():
            if first.startswith(beginning):
                raise DataError(f"{name} is not text, but {kind}.")
        is_utf16 = first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        first = first.removeprefix(codecs.BOM_UTF8)
        content, warns = chain([first] if first else [], stream), errors == "replace"
        for number, line in enumerate(_recoded(content) if is_utf16 else content, 1):
            if b"\0" in line:
                code = "UTF-16BE" if number == 1 and line.index(0) % 2 == 0 else "UTF-16LE"
                raise DataError(
                    f"{name}, line {number}: text has no NUL bytes. `iconv -f {code} -t UTF-8` converts {code} without a byte order "
                    r"mark; `tr -d '\0'` removes single ones."
                )
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                problem = f"{name}, line {number}: not valid UTF-8 (byte 0x{line[error.start]:02X})"
                remedy = "`iconv -f WINDOWS-1252 -t UTF-8` converts it if it is Windows-1252"
                if errors == "strict":
                    raise DataError(f"{problem}; {remedy}.") from None
                if warns:
                    _log.warning("%s, which is read as U+FFFD; %s.", problem, remedy)
                text, warns = line.decode(errors=errors), False
            yield text.removesuffix("\n").removesuffix("\r")
    except (*DAMAGED, UnicodeError) as error:  # invalid UTF-16
        raise _damaged(name, error) from None


def _recoded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream of UTF-16 in UTF-8. Raises UnicodeError."""
    rest = ""
    for text in codecs.iterdecode(chunks, "utf-16"):
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            yield f"{line}\n".encode()
    if rest:
        yield rest.encode()


def _damaged(name: object, error: Exception) -> DataError:
    return DataError(f"{name} is damaged and cannot be read to its end: {error}.")


def unequal(names: Sequence[object], counts: Sequence[int]) -> DataError:
    """The error of two sides of a text that differ in their number of lines."""
    (first, second), (lines, other_lines) = names, counts
    return DataError(
        f"{first} has {counted(lines, 'line')}, but {second} has {other_lines:,}: line n of one must translate line n of the other."
    )
