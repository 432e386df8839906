"""Columns of text, on disk if they are large."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

from nmt.runtime.files import in_temporary_folder

if TYPE_CHECKING:  # imported where it is used, since translating reads lines but builds no column
    import pyarrow as pa

IN_MEMORY = 16 * 2**20  # bytes beyond which text moves to a temporary file


class Column(Sequence[str]):
    """A read-only column of text in Arrow memory."""

    def __init__(self, chunks: "pa.ChunkedArray") -> None:
        self._chunks = chunks

    @classmethod
    def concatenated(cls, columns: "Iterable[Column]") -> "Column":
        """The texts of several columns, one after the other, not copied."""
        import pyarrow as pa

        return cls(pa.chunked_array([chunk for column in columns for chunk in column._chunks.chunks], pa.string()))

    def __len__(self) -> int:
        return len(self._chunks)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        return str(self._chunks[index].as_py())

    def __iter__(self) -> Iterator[str]:
        for batch in self.batches():
            yield from batch

    def part(self, rows: slice) -> "Column":
        """The texts of consecutive rows, not copied."""
        start, stop, _ = rows.indices(len(self))
        return Column(self._chunks.slice(start, max(stop - start, 0)))

    def batches(self, size: int = 10_000) -> Iterator[list[str]]:
        """The texts in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self._chunks.slice(start, size).to_pylist()

    def mapped(self, change: Callable[[list[str]], list[str]]) -> "Column":
        """The texts changed batch by batch; this column itself if no text changes."""
        if all(change(batch) == batch for batch in self.batches()):
            return self
        return collect(((change(batch),) for batch in self.batches()), 1)[0]

    def rows_among(self, texts: Iterable[str]) -> list[int]:
        """The rows whose text is one of these, in order."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        values, rows, start = pa.array(list(texts), pa.string()), [], 0
        for chunk in self._chunks.chunks:
            mask = pc.is_in(chunk, value_set=values).to_numpy(zero_copy_only=False)
            rows += (start + np.flatnonzero(mask)).tolist()
            start += len(chunk)
        return rows


def collect(batches: Iterable[Sequence[list[str]]], sides: int) -> list[Column]:
    """Collect batches of rows into columns, in memory or, once they are large, in a memory-mapped file.

    Raises:
        DataError: the file cannot be written.
    """
    import pyarrow as pa

    schema = pa.schema([(str(side), pa.string()) for side in range(sides)])
    records = (pa.record_batch([pa.array(side, pa.string()) for side in batch], schema) for batch in batches)
    table = _table(records, schema)
    return [Column(table.column(side)) for side in range(sides)]


def _table(records: "Iterator[pa.RecordBatch]", schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    in_memory: list[pa.RecordBatch] = []
    size = 0
    for record in records:
        in_memory.append(record)
        size += record.nbytes
        if size > IN_MEMORY:
            return _on_disk(chain(in_memory, records), schema)
    return pa.Table.from_batches(in_memory, schema)


def _on_disk(records: "Iterator[pa.RecordBatch]", schema: "pa.Schema") -> "pa.Table":
    """Write the records to a temporary file and map it. The file disappears with the last mapping."""
    import pyarrow as pa

    with in_temporary_folder(), tempfile.TemporaryDirectory(prefix="nmt-") as folder:
        path = f"{folder}/text.arrow"
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for record in records:
                writer.write(record)
        source: Any = pa.memory_map(path)
        return pa.ipc.open_file(source).read_all()
