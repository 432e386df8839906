"""The folder for what can be made again."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """`$NMT_CACHE`, or `nmt` in the user's cache folder (`$XDG_CACHE_HOME` or `~/.cache`); it need not exist."""
    if chosen := os.environ.get("NMT_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nmt"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new name beside `path` to write to, which becomes `path` if all goes well and is removed if not."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
