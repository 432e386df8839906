"""Arrays and lists of numbers that grow at their end: in memory while they are small, then in memory-mapped temporary files.

They take a few megabytes however long they are. Text is lists of bytes, encoded text lists of ids. Lists are stored as all their values,
one list after another, and where each begins. A temporary file has no name: it disappears with its last mapping, even if the
process is killed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nmt.runtime.files import in_temporary_folder

IN_MEMORY = 4 * 2**20
"""Bytes beyond which an array moves to a temporary file."""


class Lists:
    """Lists of numbers, read when indexed.

    Args:
        values: all values, [values] or [values, width].
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

    def __getitem__(self, numbers: npt.ArrayLike) -> list[npt.NDArray[Any]]:
        """The lists of these numbers."""
        places = np.asarray(numbers, np.int64)
        if places.min(initial=0) < 0:  # NumPy itself refuses those beyond the end
            raise IndexError(f"list {places.min()} of {len(self)}")
        begins, ends = self.starts[places].tolist(), self.starts[places + 1].tolist()
        return [self.values[begin:end] for begin, end in zip(begins, ends, strict=True)]


class Lengths:
    """The length of every list, computed when indexed."""

    def __init__(self, lists: Lists) -> None:
        self._starts = lists.starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, numbers: slice | npt.ArrayLike) -> npt.NDArray[np.int32]:
        if isinstance(numbers, slice):
            numbers = np.arange(*numbers.indices(len(self)))
        places = np.asarray(numbers, np.int64)
        return (self._starts[places + 1] - self._starts[places]).astype(np.int32)


class Spool:
    """An array that grows at its end, in memory or in a temporary file of a folder. Its methods raise OSError.

    Use it as a context manager, which closes the file. Mappings stay.
    """

    def __init__(self, dtype: npt.DTypeLike, folder: Path | None = None) -> None:
        self.dtype, self.size = np.dtype(dtype), 0
        where = None if folder is None else str(folder)
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="nmt-", dir=where)  # noqa: SIM115 -- open as long as this

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, values: npt.ArrayLike) -> None:
        """Add values at the end."""
        array = np.asarray(values, self.dtype)
        self._file.write(array.tobytes())
        self.size += array.size

    def mapped(self) -> npt.NDArray[Any]:
        """All values so far, [size]. They can be changed."""
        if self.size * self.dtype.itemsize <= IN_MEMORY:
            self._file.seek(0)
            return np.frombuffer(bytearray(self._file.read()), self.dtype)
        self._file.flush()
        return np.asarray(np.memmap(self._file, self.dtype, "r+", shape=(self.size,)))


class ListSpool:
    """Lists that grow at their end, as a `Spool` does."""

    def __init__(self, dtype: npt.DTypeLike, folder: Path | None = None) -> None:
        self._values, self._starts = Spool(dtype, folder), Spool(np.int64, folder)
        self._starts.append([0])
        self._end, self._width = 0, ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._values.__exit__()
        self._starts.__exit__()

    def append(self, lists: Lists) -> None:
        """Add lists at the end."""
        self._values.append(lists.values)
        self._starts.append(self._end + lists.starts[1:])
        self._end, self._width = self._end + len(lists.values), lists.values.shape[1:]

    def mapped(self) -> Lists:
        """All lists so far."""
        return Lists(self._values.mapped().reshape(self._end, *self._width), self._starts.mapped())


def collect_lists(blocks: Iterable[Sequence[Lists]], sides: int, dtype: npt.DTypeLike) -> list[Lists]:
    """Collect lists of several sides, each of which has some of them in every block.

    Raises:
        DataError: the temporary files cannot be written.
    """
    with in_temporary_folder(), ExitStack() as stack:
        spools = [stack.enter_context(ListSpool(dtype)) for _ in range(sides)]
        for block in blocks:
            for spool, lists in zip(spools, block, strict=True):
                spool.append(lists)
        return [spool.mapped() for spool in spools]
