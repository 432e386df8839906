"""The cache folder."""

import os
from pathlib import Path

from nmt.errors import DataError


def cache_folder() -> Path:
    """The cache folder of `nmt`: `$NMT_CACHE`, or `nmt` under `$XDG_CACHE_HOME` or `~/.cache`. It need not exist."""
    if folder := os.environ.get("NMT_CACHE"):
        return expand_home(folder)
    return expand_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "nmt"


def expand_home(path: str | Path) -> Path:
    """Replace a leading `~` or `~user`. Raises DataError if that home folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise DataError(f"{path} starts with a home folder that does not exist: write out the whole path.") from None
