"""Columns of text, on disk if they are large."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from nmt.data.arrays import Lists, collect_lists

if TYPE_CHECKING:  # imported where it is used, since translating reads lines but builds no column
    import pyarrow as pa


class Column(Sequence[str]):
    """A read-only column of text in Arrow memory."""

    def __init__(self, chunks: "pa.ChunkedArray") -> None:
        self._chunks = chunks

    @classmethod
    def concatenated(cls, columns: "Iterable[Column]") -> "Column":
        """The texts of several columns, one after the other, not copied."""
        import pyarrow as pa

        chunks = [chunk for column in columns for chunk in column._chunks.chunks]
        return cls(pa.chunked_array(chunks, pa.large_string()))

    def __len__(self) -> int:
        return len(self._chunks)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        texts: str | list[str] = (
            self._chunks[index].to_pylist() if isinstance(index, slice) else self._chunks[index].as_py()
        )
        return texts

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

    def take(self, rows: Sequence[int] | npt.NDArray[np.integer]) -> list[str]:
        """The texts of these rows."""
        import pyarrow as pa

        texts: list[str] = self._chunks.take(pa.array(rows, pa.int64())).to_pylist()
        return texts

    def among(self, texts: Iterable[str]) -> set[str]:
        """Which of these texts it has."""
        import pyarrow as pa
        import pyarrow.compute as pc

        is_among = pc.is_in(self._chunks, value_set=pa.array(list(texts), pa.large_string()))
        return set(self._chunks.filter(is_among).unique().to_pylist())


def collect(batches: Iterable[Sequence[list[str]]], sides: int) -> list[Column]:
    """Collect batches of rows into columns.

    Raises:
        DataError: a temporary file cannot be written.
    """
    import pyarrow as pa

    def as_bytes(texts: list[str]) -> Lists:
        _, offsets, values = pa.array(texts, pa.large_string()).buffers()
        return Lists(np.frombuffer(values or b"", np.uint8), np.frombuffer(offsets, np.int64))

    def column(lists: Lists) -> Column:
        starts, values = map(pa.py_buffer, (lists.starts, lists.values))
        return Column(pa.chunked_array([pa.LargeStringArray.from_buffers(len(lists), starts, values)]))

    blocks = (list(map(as_bytes, batch)) for batch in batches)
    return list(map(column, collect_lists(blocks, sides, np.uint8)))
