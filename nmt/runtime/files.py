"""Atomic file writing: write to a new file in the same folder, then rename it."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nmt.errors import DataError, UsageError

_log = logging.getLogger(__name__)
_LONGEST = 50
"""How many characters of a file's name the temporary name repeats; file systems limit the length of names."""


@contextmanager
def replacing(path: Path, *, keep_part: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`. On success it is renamed to `path`, on an exception it is removed.

    With `keep_part`, for long jobs, what was written before an exception stays as `FILE.part`. The new file has the permissions of the
    old one. A device, a pipe or an open descriptor (`/dev/stdout`) cannot be replaced, so it is yielded itself.
    """
    is_special = any(path.absolute().is_relative_to(folder) for folder in ("/dev", "/proc"))
    if is_special or (path.exists() and not path.is_file()):
        yield path
        return
    if path.is_symlink():  # which stays
        path = path.resolve()
    unfinished = f".{path.name[:_LONGEST]}.{os.getpid()}.{secrets.token_hex(4)}.new"
    beside = path.with_name(f"{path.name}.part" if keep_part else unfinished)
    try:
        if path.is_file():
            beside.touch(mode=0o600)
            shutil.copymode(path, beside)
        yield beside
        os.replace(beside, path)
    except BaseException:
        if keep_part:
            _log.warning("%s is not complete: what there is of it is in %s.", path, beside)
        else:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
        raise


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


def sync(path: Path) -> None:
    """Flush a file, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
