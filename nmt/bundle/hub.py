"""Download models from the Hugging Face hub."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import DataError, NmtError, UsageError
from nmt.runtime.progress import is_watched
from nmt.runtime.wording import reason

PREFIX = "hf:"


@dataclass(frozen=True)
class HubName:
    """A model on the hub; without a revision the newest version is meant."""

    repository: str
    revision: str | None = None

    @classmethod
    def parse(cls, name: str) -> HubName:
        """Read `hf:owner/name` or `hf:owner/name@revision`. Raises UsageError if it is neither."""
        match = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)(?:@(.+))?", name)
        if match is None:
            raise UsageError(f"'{name}' names no model of the hub: write hf:owner/name or hf:owner/name@revision.")
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}" + (f"@{self.revision}" if self.revision else "")


def download_model(name: HubName, files: Sequence[str]) -> Path:
    """The folder with those of the files that a model on the hub has; what is in the hub's cache is not downloaded again.

    Without a connection it is the version that was downloaded last. Raises DataError.
    """
    with calling_hub(f"Cannot load {name}"):
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name.repository, revision=name.revision, allow_patterns=list(files)))


@contextmanager
def calling_hub(failure: str) -> Iterator[None]:
    """A context that calls the hub. Raises DataError with `failure` and the message of an error in one line."""
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not is_watched(quiet=False):
        disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of each attempt; the last error says why
    try:
        yield
    except NmtError:
        raise
    except Exception as error:  # noqa: BLE001 -- errors of hub, connection and file system share no base class
        cause = error.__cause__ if type(error) is RuntimeError else None  # of uploads, which says no more than that
        raise DataError(f"{failure}: {reason(cause or error)}.") from None
