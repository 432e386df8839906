"""Files that appear whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nmt.errors import DataError

_log = logging.getLogger(__name__)
_LONGEST = 50
"""Characters of a file's name in that of the new one beside it: the whole must not be longer than a file system allows."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new name beside `path` to write to, which becomes `path` if all goes well and is removed if not.

    A device, a pipe or an open descriptor (`/dev/stdout`) cannot be replaced: it is written to directly.
    """
    if not _is_replaceable(path):
        yield path
        return
    path = _followed(path)
    beside = path.with_name(f".{path.name[:_LONGEST]}.{os.getpid()}.{secrets.token_hex(4)}.new")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


@contextmanager
def completing(path: Path) -> Iterator[Path]:
    """Like `replacing`, for what takes long: where not all goes well, what there is stays in `part_of(path)`, and a warning says so."""
    if not _is_replaceable(path):
        yield path
        return
    path = _followed(path)
    part = part_of(path)
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            if part.stat().st_size:
                _log.warning("%s is not complete: what there is of it is in %s.", path, part)
            else:
                part.unlink()
        raise


def part_of(path: Path) -> Path:
    """Where a file is written that takes long to complete."""
    return path.with_name(f"{path.name}.part")


def _is_replaceable(path: Path) -> bool:
    """Whether a file can take this name: none is there, or one that may be renamed over."""
    if not path.exists():
        return True
    is_special = any(path.absolute().is_relative_to(place) for place in ("/dev", "/proc"))
    return path.is_file() and not is_special and os.access(_followed(path).parent, os.W_OK)


def _followed(path: Path) -> Path:
    """What a link points to, since it goes on pointing there; any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def keep_mode(path: Path, beside: Path) -> None:
    """Give the file that will replace another its permissions, and so refuse to replace one that is read-only."""
    if path.is_file() and beside != path:
        beside.touch(mode=0o600)
        shutil.copymode(path, beside)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file beside `path`, then put it in its place at once.

    Whatever happens meanwhile, `path` is the old file or the new one, never a part of one, and once this returns the new one
    is on the disk. What `replacing` cannot replace is written to directly.

    Raises:
        DataError: the file cannot be written.
    """
    outcome = "What was there before is unchanged."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            keep_mode(path, beside)
            write(beside)
            if beside == path:
                return
            sync(beside)
        outcome = "It is there, but might not survive a power failure."
        sync(path.parent)
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}. {outcome}") from None


def remove_unfinished(folder: Path) -> None:
    """Remove what `replacing` left in a folder when its process was killed. No other process may write there."""
    for path in folder.glob(".*.new"):
        if re.fullmatch(r"\..+\.[0-9]+(\.[0-9a-f]+)?\.new", path.name):
            with suppress(OSError):
                path.unlink()


def sync(path: Path) -> None:
    """Have the system put a file or a folder's entries on the disk now. Windows cannot open a folder."""
    if sys.platform == "win32" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
