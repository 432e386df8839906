"""One file with the token ids of a corpus, memory-mapped when read: an Arrow stream of one record batch, and its checksum.

Its columns are `source` and `target`, the ids of each pair, and `row`, the row of the pair in the unfiltered corpus. The counts of
the filters are metadata of the schema. `datasets.Dataset.from_file` reads it too.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nmt.data.flat import Lists, ListSpool, Spool
from nmt.runtime.json_files import parse_json

VERSION = 3
"""Increase it when the content or its meaning changes."""
_BLOCK = 2**18
_CHECKSUM = struct.Struct("<I")
_INTACT = 0x2144DF1C
"""The CRC-32 of whatever its own CRC-32 follows."""


@dataclass(frozen=True)
class IdTable:
    """The pairs of a corpus, or of a part of it, that pass the filters.

    Attributes:
        rows: the row of each pair in the unfiltered corpus.
        source: the source ids of each pair.
        target: the target ids of each pair.
        counts: how many pairs were kept, and how many each rule removed, as in a `FilterReport`.
    """

    rows: npt.NDArray[np.int64]
    source: Lists
    target: Lists
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of pairs before filtering."""
        return sum(self.counts.values())


def write_ids(path: Path, batches: Iterable[IdTable], dtype: npt.DTypeLike) -> None:
    """Write a file. The memory it takes does not depend on the number of pairs; until it is written, its folder holds it twice."""
    counts: Counter[str] = Counter()
    folder = path.parent
    with Spool(np.int64, folder) as rows, ListSpool(dtype, folder) as source, ListSpool(dtype, folder) as target:
        for batch in batches:
            rows.append(batch.rows)
            source.append(batch.source)
            target.append(batch.target)
            counts.update(batch.counts)
        columns = {"source": _arrow(source.mapped()), "target": _arrow(target.mapped()), "row": pa.array(rows.mapped())}
        record = pa.RecordBatch.from_pydict(columns, metadata={"counts": json.dumps(counts)})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, record.schema) as writer:
            writer.write_batch(record)
    checksum = _checksum(path)
    with path.open("ab") as file:
        file.write(_CHECKSUM.pack(checksum))


def open_ids(path: Path) -> IdTable:
    """Map a file. Raises ValueError or OSError if it is damaged."""
    if _checksum(path) != _INTACT:
        raise ValueError("wrong checksum")
    record = pa.ipc.open_stream(pa.memory_map(str(path))).read_next_batch()
    columns = (record.column(side) for side in ("source", "target"))
    source, target = (Lists(column.values.to_numpy(), column.offsets.to_numpy()) for column in columns)
    return IdTable(record.column("row").to_numpy(), source, target, parse_json(record.schema.metadata[b"counts"]))


def _arrow(lists: Lists) -> pa.LargeListArray:
    """Lists as an Arrow array, not copied."""
    return pa.LargeListArray.from_arrays(pa.array(lists.starts), pa.array(lists.values))


def _checksum(path: Path) -> int:
    """The CRC-32 of a file."""
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum
