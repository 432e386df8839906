"""One file with the token ids of a corpus, memory-mapped when read.

values    the ids of source and target of each pair in turn, one after another
starts    where each side of each pair begins among them, int64 [2 pairs + 1]
rows      row of each pair in the unfiltered corpus, int64 [pairs]
header    JSON: version, type of the ids, numbers of them and of pairs, checksum of all before, counts of the filters
8 bytes   length of the header
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from nmt.data.flat import Lists, Spool, map_array
from nmt.runtime.json_files import parse_json

VERSION = 2
"""Increase it when the layout or its meaning changes. Version 1 was an Arrow file."""
_BLOCK = 2**18
_LENGTH = struct.Struct("<q")
_LONGEST_HEADER = 2**20


@dataclass(frozen=True)
class EncodedBatch:
    """The pairs of some rows that pass the filters.

    Attributes:
        rows: their rows.
        values: the ids of source and target of each pair in turn.
        lengths: of source and target of each pair in turn.
        counts: how many pairs were kept, and how many each rule removed, without rules that removed none.
    """

    rows: npt.NDArray[np.int64]
    values: npt.NDArray[np.integer]
    lengths: npt.NDArray[np.int64]
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of pairs before filtering."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class _Header:
    version: int
    dtype: str
    values: int
    pairs: int
    tokens: tuple[int, int]
    checksum: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class IdFile:
    """The content of a file.

    Attributes:
        lists: the source of pair n is list 2 n, its target list 2 n + 1.
        rows: row of each pair in the unfiltered corpus.
        tokens: number of source and of target ids.
        counts: how many pairs were kept, and how many each rule removed.
    """

    lists: Lists
    rows: npt.NDArray[np.int64]
    tokens: tuple[int, int]
    counts: Mapping[str, int]


def write_ids(path: Path, batches: Iterable[EncodedBatch], dtype: npt.DTypeLike) -> None:
    """Write a file. The memory it takes does not depend on the number of pairs."""
    end, tokens, counts = 0, np.zeros(2, np.int64), dict[str, int]()
    with Spool(np.int64, path.parent) as starts, Spool(np.int64, path.parent) as rows, path.open("wb") as file:
        starts.append([0])
        sink = _Checksummed(file)
        for batch in batches:
            sink.write(batch.values.astype(dtype).tobytes())
            starts.append(end + np.cumsum(batch.lengths))
            rows.append(batch.rows)
            end += len(batch.values)
            tokens += batch.lengths.reshape(-1, 2).sum(axis=0)
            counts = {name: counts.get(name, 0) + batch.counts.get(name, 0) for name in (*counts, *batch.counts)}
        sink.write(bytes(-file.tell() % 8))
        for block in chain(starts.blocks(), rows.blocks()):
            sink.write(block)
        source, target = tokens.tolist()
        header = _Header(VERSION, np.dtype(dtype).name, end, rows.size, (source, target), sink.checksum, counts)
        text = json.dumps(asdict(header)).encode()
        file.write(text + _LENGTH.pack(len(text)))


def open_ids(path: Path) -> IdFile:
    """Map a file. Raises ValueError, KeyError, TypeError or OSError if it is damaged or of another version."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - _LENGTH.size, 0))
        [length] = _LENGTH.unpack(file.read().rjust(_LENGTH.size, b"\0"))
        end = size - _LENGTH.size - length
        if not 0 <= end < size or length > _LONGEST_HEADER:
            raise ValueError("no header")
        file.seek(end)
        header = _Header(**parse_json(file.read(length)))
        if header.version != VERSION:
            raise ValueError("another version")
        if header.checksum != _checksum_of(file, end):
            raise ValueError("wrong checksum")
    dtype = np.dtype(header.dtype)
    starts_at = header.values * dtype.itemsize
    starts_at += -starts_at % 8
    rows_at = starts_at + 8 * (2 * header.pairs + 1)
    if rows_at + 8 * header.pairs != end:
        raise ValueError("another length")
    values = map_array(path, dtype, header.values)
    starts = map_array(path, np.int64, 2 * header.pairs + 1, offset=starts_at)
    rows = map_array(path, np.int64, header.pairs, offset=rows_at)
    source, target = header.tokens
    return IdFile(Lists(values, starts), rows, (source, target), header.counts)


class _Checksummed:
    """Writes to a file and computes the checksum of what is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.checksum = file, 0

    def write(self, content: bytes) -> None:
        self.checksum = zlib.crc32(content, self.checksum)
        self._file.write(content)


def _checksum_of(file: IO[bytes], end: int) -> int:
    checksum = 0
    for block in _blocks(file, end):
        checksum = zlib.crc32(block, checksum)
    return checksum


def _blocks(file: IO[bytes], end: int) -> Iterator[bytes]:
    """The bytes of a file up to a place."""
    file.seek(0)
    while block := file.read(min(_BLOCK, end - file.tell())):
        yield block
