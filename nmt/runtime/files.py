"""Atomic file writing: write to a new file in the same folder, then rename it."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from nmt.errors import DataError, UsageError

_log = logging.getLogger(__name__)
_LONGEST = 50
"""How many characters of a file's name the temporary name repeats; file systems limit the length of names."""

_POINTER = b"version https://git-lfs.github.com/spec/"
_LARGEST_POINTER = 1024


def refuse_pointer(path: Path) -> None:
    """Raise DataError if a file is a pointer of git-lfs, which stands where the file itself was not fetched."""
    if path.is_file() and path.stat().st_size <= _LARGEST_POINTER and path.read_bytes().startswith(_POINTER):
        raise DataError(f"{path} is only a pointer of git-lfs: fetch the file itself with `git lfs pull`.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`. On success it is renamed to `path`, on an exception it is removed.

    The new file has the permissions of the old one. A device, a pipe or an open descriptor (`/dev/stdout`) cannot be replaced, so it
    is yielded itself.
    """
    if not _is_replaceable(path):
        yield path
        return
    if path.is_symlink():  # which stays
        path = path.resolve()
    beside = path.with_name(f".{path.name[:_LONGEST]}.{os.getpid()}.{secrets.token_hex(4)}.new")
    try:
        _keep_mode(path, beside)
        yield beside
        os.replace(beside, path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


@contextmanager
def completing(path: Path) -> Iterator[Path]:
    """Like `replacing`, for long jobs: on an exception the unfinished file stays as `FILE.part`, with a warning.

    If there is such a file, it is `FILE.part2` and so on.
    """
    if not _is_replaceable(path):
        yield path
        return
    if path.is_symlink():
        path = path.resolve()
    names = (f"{path.name}.part{number}" for number in chain([""], count(2)))
    part = next(free for free in map(path.with_name, names) if not os.path.lexists(free))
    try:
        _keep_mode(path, part)
        yield part
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            if part.stat().st_size:
                _log.warning("%s is not complete: what there is of it is in %s.", path, part)
            else:
                part.unlink()
        raise


def _is_replaceable(path: Path) -> bool:
    """Whether a new file can be renamed to this path: it does not exist, or is a regular file."""
    is_special = any(path.absolute().is_relative_to(folder) for folder in ("/dev", "/proc"))
    return not path.exists() or (path.is_file() and not is_special)


def _keep_mode(path: Path, beside: Path) -> None:
    if path.is_file():
        beside.touch(mode=0o600)
        shutil.copymode(path, beside)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically: at any time `path` is the complete old file or the complete new one.

    When this returns, the new file is on the disk. Devices and pipes are written to directly.

    Args:
        path: the file; missing parent folders are made.
        write: writes the content to the path it is given.

    Raises:
        DataError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            write(beside)
            if beside == path:
                return
            sync(beside)
        sync(path.parent)
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from None


def write_content(path: Path, content: str | bytes) -> None:
    """Write a text, as UTF-8, or bytes atomically. Raises DataError."""
    data = content.encode() if isinstance(content, str) else content
    write_atomically(path, lambda beside: beside.write_bytes(data))


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """A context in which no other process has the lock of a file, which is made if necessary and stays.

    The operating system releases the lock when the process ends, however it ends.

    Raises:
        UsageError: another process has it; `busy` is the message.
        DataError: the file cannot be written.
    """
    from filelock import FileLock, Timeout  # not at the top: with asyncio, it would slow every command down

    lock = FileLock(path, blocking=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise UsageError(busy) from None
    except OSError as error:
        raise DataError(f"Cannot write to {path.parent}: {error.strerror or error}.") from None
    try:
        yield
    finally:
        lock.release()


def remove_unfinished(folder: Path) -> None:
    """Remove temporary files that a killed process left in a folder. No other process may be writing there."""
    for path in folder.glob(".*.new"):
        if re.fullmatch(r"\..+\.[0-9]+(\.[0-9a-f]+)?\.new", path.name):
            with suppress(OSError):
                path.unlink()


def discard(descriptor: int) -> None:
    """Have whatever is written to an open file from now on go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def sync(path: Path) -> None:
    """Flush a file, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
