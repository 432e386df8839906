"""Arrays and lists of numbers that grow at their end: in memory while they are small, then in memory-mapped temporary files.

They take a few megabytes however long they are. Text is lists of bytes, encoded text lists of ids. A temporary file has no name: it
disappears with its last mapping, even if the process is killed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from nmt.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_MEMORY = 4 * 2**20
"""Bytes beyond which an array moves to a temporary file."""
_BLOCK = 2**18
"""Lengths that are computed at a time."""


class Lists:
    """Lists of numbers, stored one after another and read when indexed.

    Args:
        values: all values, [values].
        starts: where each list begins, and the end of the last one, [lists + 1].
    """

    def __init__(self, values: npt.NDArray[Any], starts: npt.NDArray[np.int64]) -> None:
        self.values, self.starts = values, starts

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]], dtype: npt.DTypeLike) -> Self:
        """Store lists one after another."""
        starts = np.zeros(len(lists) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=starts[1:])
        return cls(np.fromiter(chain.from_iterable(lists), dtype, int(starts[-1])), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: npt.ArrayLike) -> list[npt.NDArray[Any]]:
        """The lists of these rows."""
        rows = np.asarray(rows, np.int64)
        if rows.min(initial=0) < 0:  # NumPy itself refuses rows beyond the end
            raise IndexError(f"list {rows.min()} of {len(self)}")
        begins, ends = self.starts[rows].tolist(), self.starts[rows + 1].tolist()
        return [self.values[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def lengths(self) -> npt.NDArray[np.int32]:
        """The length of every list."""
        starts = (self.starts[first : first + _BLOCK + 1] for first in range(0, len(self), _BLOCK))
        return collect_array(map(np.diff, starts), np.int32)


class ArrayFile:
    """An array that grows at its end. It is a context manager, which closes the file. Mappings stay."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype, self._size = np.dtype(dtype), 0
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="nmt-")  # noqa: SIM115 -- open as long as this

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, values: npt.ArrayLike) -> None:
        """Add values at the end."""
        self._size += self._file.write(np.ascontiguousarray(values, self._dtype).data)

    def array(self) -> npt.NDArray[Any]:
        """All values so far. They can be changed."""
        if self._size <= IN_MEMORY:
            self._file.seek(0)
            return np.frombuffer(bytearray(self._file.read()), self._dtype)
        self._file.flush()
        return np.asarray(np.memmap(self._file, self._dtype, "r+", shape=(self._size // self._dtype.itemsize,)))


def collect_array(blocks: Iterable[npt.ArrayLike], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Join arrays. Raises DataError if the temporary file cannot be written."""
    with _in_temporary_files(), ArrayFile(dtype) as file:
        for block in blocks:
            file.append(block)
        return file.array()


def collect_lists(blocks: Iterable[Sequence[Lists]], sides: int, dtype: npt.DTypeLike) -> list[Lists]:
    """Join lists of several sides, each of which has some of them in every block.

    Raises:
        DataError: the temporary files cannot be written.
    """
    ends = [0] * sides
    with _in_temporary_files(), ExitStack() as stack:
        values, starts = ([stack.enter_context(ArrayFile(kind)) for _ in range(sides)] for kind in (dtype, np.int64))
        for file in starts:
            file.append([0])
        for block in blocks:
            for side, lists in enumerate(block):
                values[side].append(lists.values)
                starts[side].append(ends[side] + lists.starts[1:])
                ends[side] += len(lists.values)
        return [Lists(values[side].array(), starts[side].array()) for side in range(sides)]


@contextmanager
def _in_temporary_files() -> Iterator[None]:
    """A context in which temporary files are written. Raises DataError where they cannot be."""
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir()
        raise DataError(f"Cannot keep a large corpus in {folder} ({error}): set TMPDIR to another folder.") from None
