"""The cache folder and the user's home folder."""

import os
import stat
import sys
import tempfile
from pathlib import Path

from nmt.errors import DataError


def cache_folder() -> Path:
    """The cache folder of `nmt`: `$NMT_CACHE`, or `nmt` under `$XDG_CACHE_HOME` or `~/.cache`. It need not exist."""
    if folder := os.environ.get("NMT_CACHE"):
        return expand_home(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache") / "nmt"


def home_folder() -> Path:
    """The user's home folder, or a private temporary folder if there is none.

    There is none in a container whose user has no password entry. Raises DataError if the private folder cannot be used.
    """
    try:
        return Path.home()
    except RuntimeError:
        return _temporary_home()


def _temporary_home() -> Path:
    try:
        folder = Path(tempfile.gettempdir()) / f"nmt-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        usable = not folder.is_symlink() and is_private(folder)
    except OSError as error:
        raise DataError(f"There is no home folder: set HOME to a folder of your own ({error}).") from None
    if not usable:
        raise DataError(f"There is no home folder, and others can write to {folder}: set HOME to a folder of your own.")
    return folder


def expand_home(path: str | Path) -> Path:
    """Replace a leading `~` or `~user`. Raises DataError if that home folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise DataError(f"{path} starts with a home folder that does not exist: write out the whole path.") from None


def is_private(path: Path) -> bool:
    """Whether only this user can write to the path. Always true on Windows, which does not use owner and mode."""
    status = path.stat()
    return sys.platform == "win32" or (status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o022)
