"""Arrays and lists of numbers in flat files that are memory-mapped, so that they take no memory however many there are.

Lists are stored as all their values, one list after another, and where each begins. A temporary file has no name: it disappears
with its last mapping, even if the process is killed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from nmt.runtime.files import in_temporary_folder

Ids = npt.NDArray[np.integer[Any]]


class Lists:
    """Lists of numbers, read when indexed.

    Args:
        values: all values, [values] or [values, width].
        starts: where each list begins, and the end of the last one, [lists + 1].
    """

    def __init__(self, values: Ids, starts: npt.NDArray[np.int64]) -> None:
        self.values, self.starts = values, starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> Ids:
        if not 0 <= number < len(self):
            raise IndexError(f"list {number} of {len(self)}")
        return self.values[self.starts[number] : self.starts[number + 1]]


class Lengths:
    """The length of every `step`-th list from `first` on, computed when indexed."""

    def __init__(self, starts: npt.NDArray[np.int64], first: int = 0, step: int = 1) -> None:
        self._starts, self._first, self._step = starts, first, step

    def __len__(self) -> int:
        return (len(self._starts) - 1) // self._step

    def __getitem__(self, numbers: slice | npt.ArrayLike) -> npt.NDArray[np.int32]:
        if isinstance(numbers, slice):
            numbers = np.arange(*numbers.indices(len(self)))
        places = np.asarray(numbers, np.int64) * self._step + self._first
        return (self._starts[places + 1] - self._starts[places]).astype(np.int32)


class Spool:
    """An array that grows at its end, in a temporary file of a folder. Its methods raise OSError.

    Use it as a context manager, which closes the file. Mappings stay.
    """

    def __init__(self, dtype: npt.DTypeLike, folder: Path | None = None) -> None:
        self.dtype, self.size = np.dtype(dtype), 0
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="nmt-", dir=folder)  # noqa: SIM115 -- open as long as this

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, values: npt.ArrayLike) -> None:
        """Add values at the end."""
        array = np.asarray(values, self.dtype)
        self._file.write(array.tobytes())
        self.size += array.size

    def blocks(self) -> Iterator[bytes]:
        """The bytes of all values."""
        self._file.seek(0)
        while block := self._file.read(2**20):
            yield block

    def mapped(self, *, writable: bool = False) -> npt.NDArray[Any]:
        """All values so far, [size]. Changes of a writable mapping go to the file."""
        self._file.flush()
        return map_array(self._file, self.dtype, self.size, writable=writable)


def collect_lists(blocks: Iterable[tuple[Ids, npt.NDArray[np.int64]]], dtype: npt.DTypeLike) -> Lists:
    """Collect lists in temporary files.

    Args:
        blocks: the values of some lists one after another, [values] or [values, width], and the length of each list.
        dtype: type of the stored values.

    Raises:
        DataError: the files cannot be written.
    """
    end, width = 0, ()
    with in_temporary_folder(), Spool(dtype) as spool, Spool(np.int64) as starts:
        starts.append([0])
        for values, lengths in blocks:
            spool.append(values)
            starts.append(end + np.cumsum(lengths))
            end, width = end + len(values), values.shape[1:]
        return Lists(spool.mapped().reshape(end, *width), starts.mapped())


def map_array(
    file: Any, dtype: npt.DTypeLike, size: int, *, offset: int = 0, writable: bool = False
) -> npt.NDArray[Any]:
    """Map numbers of a file, or of a path."""
    if not size:  # nothing cannot be mapped
        return np.empty(0, dtype)
    return np.asarray(np.memmap(file, dtype, "r+" if writable else "r", offset, (size,)))


def flatten(lists: Sequence[Sequence[int]], dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The values of lists one after another, and the length of each list."""
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    return np.fromiter(chain.from_iterable(lists), dtype, int(lengths.sum())), lengths
