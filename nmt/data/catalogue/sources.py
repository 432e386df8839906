"""Get the text of a corpus from a source: downloaded files and archives, the hub, sacreBLEU."""

import lzma
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from gzip import BadGzipFile
from pathlib import Path
from typing import IO, cast

from nmt.data.catalogue.download import DownloadError, Progress, download
from nmt.data.catalogue.schema import Source, TextFormat
from nmt.data.hub_datasets import read_hub
from nmt.data.lines import open_binary
from nmt.data.sacrebleu_sets import PREFIX, sacrebleu_files
from nmt.data.tables import Batches, is_table, read_table
from nmt.errors import DataError

_BLOCK = 2**20
_METADATA = re.compile(rb"\s*</?(?:url|keywords|speaker|talkid|title|description|reviewer|translator|doc)\b")


class SourceError(Exception):
    """A source does not give the text; the message is the reason."""


@contextmanager
def open_source(
    sources: Collection[Source], folder: Path, progress: Progress | None
) -> Iterator[Mapping[tuple[str, str], Path]]:
    """Download what sources of the same origin need, and unpack the members of archives.

    The yielded mapping has the file of each address and member. Complete downloads are removed in the end, whether their
    text was right or not; incomplete ones stay in `folder`, to be continued.

    Raises:
        SourceError: a file does not arrive, or an archive is damaged.
        OSError: the folder cannot be written to.
    """
    parts = list(dict.fromkeys(part for source in sources for part in source.parts))
    try:
        downloads = {url: download(url, folder, progress) for url in dict.fromkeys(url for url, _ in parts)}
    except DownloadError as error:
        raise SourceError(str(error)) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as unpacked:
            paths: dict[tuple[str, str], Path] = {(url, ""): path for url, path in downloads.items()}
            for number, (url, path) in enumerate(downloads.items()):
                members = [member for address, member in parts if address == url and member]
                files = unpack(path, members, Path(unpacked) / str(number)) if members else {}
                paths |= {(url, member): file for member, file in files.items()}
            yield paths
    finally:
        for path in downloads.values():
            path.unlink(missing_ok=True)


def read_text(source: Source, paths: Mapping[tuple[str, str], Path], languages: tuple[str, str]) -> Iterator[bytes]:
    """The text of a source in blocks. `paths` is from `open_source`; `languages` are its own and another one of the corpus.

    Raises SourceError if the text is damaged or missing.
    """
    try:
        if source.locator.startswith(PREFIX):
            yield from _file_blocks(sacrebleu_files(source.locator, *languages)[0])
        elif source.locator:
            yield from _column_blocks(read_hub(source.locator, (source.column,), advice=False))
        for part in source.parts:
            path = paths.get(part)
            if path is None:
                raise SourceError(f"the archive has no file {part[1]}")
            if is_table(path):
                yield from _column_blocks(read_table(str(path), (source.column,)))
            else:
                yield from _formatted(_file_blocks(path), source.format)
    except DataError as error:
        raise SourceError(str(error).rstrip(".")) from None


def _column_blocks(batches: Batches) -> Iterator[bytes]:
    for (texts,) in batches:
        yield "".join(f"{text}\n" for text in texts).encode()


def _file_blocks(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a file in blocks."""
    try:
        with open_binary(path) as stream:
            while block := stream.read(_BLOCK):
                yield block
    except BadGzipFile as error:
        raise SourceError(f"it is not a gzip file ({error})") from None
    except EOFError:
        raise SourceError("it ends too early") from None
    except (zlib.error, lzma.LZMAError, OSError) as error:
        raise SourceError(f"it is damaged ({error})") from None


def _formatted(blocks: Iterator[bytes], form: TextFormat) -> Iterator[bytes]:
    if form == "text":
        yield from blocks
        return
    text = b"".join(blocks)  # the largest, IWSLT's training text, has 25 MB
    if form == "talks":
        lines = [line.strip() for line in text.removesuffix(b"\n").split(b"\n") if not _METADATA.match(line)]
    else:
        lines = [b" ".join(segment.split()) for segment in re.findall(rb"<seg\b[^>]*>(.*?)</seg>", text, re.DOTALL)]
    yield b"".join(line + b"\n" for line in lines)


def unpack(archive: Path, members: Collection[str], folder: Path) -> dict[str, Path]:
    """Write those members that a zip or tar archive has to numbered files, whatever paths their names have.

    A member may be a pattern such as `*.de`, of which the first match counts. Raises SourceError if the archive is damaged.
    """
    folder.mkdir()
    files: dict[str, Path] = {}
    try:
        for name, stream in _members(archive):
            member = next((item for item in members if item == name or fnmatchcase(name, item)), None)
            if member is None or member in files:
                continue
            files[member] = folder / f"{len(files)}{Path(name).suffix}"
            with stream() as source, files[member].open("wb") as sink:
                shutil.copyfileobj(source, sink, _BLOCK)
            if len(files) == len(set(members)):
                break
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, BadGzipFile) as error:
        raise SourceError(f"the archive is damaged ({error})") from None
    except RuntimeError as error:  # how zipfile says that a password is needed
        raise SourceError(f"the archive cannot be read ({error})") from None
    return files


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """The name of each file of an archive, in its order, and a function that opens it."""
    if archive.name.endswith(".zip") or zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle:
            for info in bundle.infolist():
                yield info.filename.removeprefix("./"), partial(bundle.open, info)
        return
    with tarfile.open(archive, "r|*") as pack:
        for entry in pack:
            if entry.isfile():
                yield entry.name.removeprefix("./"), cast(Callable[[], IO[bytes]], partial(pack.extractfile, entry))
