"""Lock a run folder, so that only one process at a time writes to it."""

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
def lock_folder(folder: Path) -> Iterator[None]:
    """A context in which this process alone writes to a folder, which is created if necessary.

    The operating system releases the lock when the process ends, however it ends. The lock file names the holder. It is
    removed at the end, and so is the folder if it was created here and is still empty.

    Raises:
        UsageError: another process has the lock.
        DataError: the folder cannot be written.
    """
    need_locks()
    is_new = not folder.exists()
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _open_locked(path)
    except OSError as error:
        raise DataError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    try:
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()  # before the lock is released: `_is_current` then rejects the file for those who wait
    finally:
        os.close(descriptor)
        if is_new:
            with suppress(OSError):
                folder.rmdir()


def _open_locked(path: Path) -> int:
    """A descriptor of the lock file that holds the lock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor, path)
            if _is_current(path, descriptor):
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
    """Raise UsageError if the operating system lacks file locks that end with the process."""
    if fcntl is None:
        raise UsageError("Training needs file locks that Windows does not have: run it in WSL, on Linux or on macOS.")


def lock_file(descriptor: int, folder: Path) -> None:
    """Lock an open file of a folder for this process and those that inherit the descriptor.

    Raises:
        BlockingIOError: another process has the lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:  # some network file systems have no locks
        _log.warning("%s cannot be locked (%s): start no second training in it.", folder, error.strerror)


def _is_current(path: Path, descriptor: int) -> bool:
    """Whether the locked file is still the one in the folder; its last holder may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
