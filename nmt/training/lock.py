"""One process at a time in a run folder."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nmt.errors import DataError, UsageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
_log = logging.getLogger(__name__)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep a folder, which is made if need be, to this process.

    The lock is one that the system takes away from a process that ends in whatever way; the file that carries it says who
    holds it and is removed at the end. So is the folder, if it was made here and has nothing in it.

    Raises:
        UsageError: another process is at work in the folder.
        DataError: the folder cannot be written to.
    """
    need_locks()
    is_new = not folder.exists()
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _take(path)
    except OSError as error:
        raise DataError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    try:
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()  # while it is held: who opened it meanwhile sees that it is no longer the one in the folder
    finally:
        os.close(descriptor)
        if is_new:
            with suppress(OSError):
                folder.rmdir()


def _take(path: Path) -> int:
    """The descriptor that holds the lock of the file at `path`."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor, path)
            if _is_still(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    try:
        lock_file(descriptor, path.parent)
    except BlockingIOError:
        holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
        raise UsageError(
            f"Another training, process {holder or 'unknown'}, is at work in {path.parent}: "
            "wait for it or stop it, or choose another folder with --out."
        ) from None


def need_locks() -> None:
    """Raises UsageError where the system has no locks of files that end with the process."""
    if fcntl is None:
        raise UsageError("Training needs file locks that Windows does not have: run it in WSL, on Linux or on macOS.")


def lock_file(descriptor: int, folder: Path) -> None:
    """Lock an open file of a folder for this process and those that inherit it. Raises BlockingIOError if another one has."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:  # some network file systems have no locks
        _log.warning("%s cannot be locked (%s): start no second training in it.", folder, error.strerror)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the file that was locked is the one in the folder, not one that its last holder has removed."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
