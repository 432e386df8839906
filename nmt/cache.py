"""The user's home, and the folder for what can be made again."""

import os
import stat
import sys
import tempfile
from pathlib import Path

from nmt.errors import DataError


def cache_folder() -> Path:
    """`$NMT_CACHE`, or `nmt` in the user's cache folder (`$XDG_CACHE_HOME` or `~/.cache`); it need not exist."""
    if folder := os.environ.get("NMT_CACHE"):
        return expand_home(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache") / "nmt"


def home_folder() -> Path:
    """The user's home folder, or a private folder in the temporary one where the system knows of none.

    It knows of none in a container whose user has no password entry. Raises DataError if the private folder cannot be used.
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
    """The path with its `~` replaced. Raises DataError if nobody knows what that stands for."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise DataError(f"{path} starts with a home folder that does not exist: write out the whole path.") from None


def is_private(path: Path) -> bool:
    """Whether no other user can have written to it. Windows keeps users apart by other means than owner and mode."""
    status = path.stat()
    return sys.platform == "win32" or (status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o022)
