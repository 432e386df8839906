"""Download models from the Hugging Face hub, and say what went wrong there in one sentence."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import DataError, NmtError, UsageError
from nmt.runtime.progress import is_watched
from nmt.runtime.wording import reason

logger = logging.getLogger(__name__)

PREFIX = "hf:"
_NAME = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:@(.+))?")
_HTTP = ("httpx", "httpx2", "requests", "urllib3")
"""Packages through which versions of huggingface_hub connect."""
_WITHOUT_CONNECTION = (
    "without one, load it once on a connected machine and copy its cache (HF_HOME), or use a zip of `nmt export`"
)
_STORAGE_REFUSAL = re.compile(r"\b403\b.{0,3}Forbidden|\bHTTP.{0,20}\b403\b")
_MAY_NOT_READ = "you may not read it; check that your token may, at https://huggingface.co/settings/tokens"
_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


@dataclass(frozen=True)
class HubName:
    """A model on the hub; without a revision the newest version is meant."""

    repository: str
    revision: str | None = None

    @classmethod
    def parse(cls, name: str) -> HubName:
        """Read `hf:owner/name` or `hf:owner/name@revision`. Raises UsageError if it is neither."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise UsageError(f"'{name}' names no model of the hub: write hf:owner/name or hf:owner/name@revision.")
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}" + (f"@{self.revision}" if self.revision else "")


def download_model(name: HubName, files: Sequence[str]) -> Path:
    """The folder with those of the files that a model on the hub has; what is in the hub's cache is not downloaded again.

    Without a connection it is the version that was downloaded last. Raises DataError.
    """
    hub = hub_package()
    with calling_hub(hub, f"Cannot load {name}", offline=_WITHOUT_CONNECTION, denied=_MAY_NOT_READ):
        return Path(hub.snapshot_download(name.repository, revision=name.revision, allow_patterns=list(files)))


def hub_package() -> Any:
    """The package huggingface_hub with the modules that are used here."""
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


class _SayingWaits(logging.Filter):
    """Drops what huggingface_hub logs of its attempts, but says that it waits where the hub limits its requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "HTTP Error 429" in record.getMessage():
            logger.warning("The hub limits how often it is asked (HTTP 429): waiting before the next try.")
        return False


@contextmanager
def _saying_waits() -> Iterator[None]:
    requests, own = logging.getLogger("huggingface_hub.utils._http"), _SayingWaits()
    level = requests.level
    requests.addFilter(own)
    requests.setLevel(logging.WARNING)
    try:
        yield
    finally:
        requests.removeFilter(own)
        requests.setLevel(level)


@contextmanager
def calling_hub(hub: Any, failure: str, *, offline: str, denied: str) -> Iterator[None]:
    """A context that calls the hub: its bars are shown on terminals alone, of its warnings only that it waits.

    Raises DataError for whatever goes wrong; it begins with `failure` and ends with `offline` if it was the connection, with
    `denied` if the hub answers 403.
    """
    package = logging.getLogger("huggingface_hub")
    level = package.level
    package.setLevel(logging.ERROR)  # it warns of each attempt; the last error says why
    hides_bars = not is_watched(quiet=False) and not hub.utils.are_progress_bars_disabled()
    if hides_bars:
        hub.utils.disable_progress_bars()
    try:
        with _saying_waits(), warnings.catch_warnings(action="ignore"):
            yield
    except NmtError:
        raise
    except Exception as error:  # noqa: BLE001 -- errors of hub, connection and file system share no base class
        raise DataError(f"{failure}: {_reason(error, hub, offline, denied)}.") from None
    finally:
        package.setLevel(level)
        if hides_bars:
            hub.utils.enable_progress_bars()


def _reason(error: Exception, hub: Any, offline: str, denied: str) -> str:
    """Why a call of the hub failed, and what to do."""
    causes, errors = list(_causes(error)), hub.errors

    def has(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if has(errors.GatedRepoError):
        return f"its owner decides who may read it; ask for access on its page, and {_LOG_IN}"
    if has(errors.RepositoryNotFoundError):
        return f"there is no such model, or you may not read it; check the name, or {_LOG_IN}"
    if has(errors.RevisionNotFoundError):
        return "there is no such revision; name a branch, a tag or a commit"
    refusal = next((cause for cause in causes if getattr(cause, "response", None) is not None), None)
    if refusal is not None:
        return _refusal(refusal, denied)
    if any(_STORAGE_REFUSAL.search(str(cause)) for cause in causes):  # of Xet, whose errors have no response
        return "the storage of the hub refuses it (HTTP 403); try again, or ask whoever runs your network to let it through"
    if has(errors.LocalEntryNotFoundError, ConnectionError) or any(map(_is_connection, causes)):
        return f"there is no connection to {hub.constants.ENDPOINT}, or it broke; {offline}"
    return _sentence(causes[-1])


def _refusal(error: Any, denied: str) -> str:
    """What the status of a response means."""
    status = error.response.status_code
    match status:
        case 401:
            return f"the hub does not know your token; {_LOG_IN}"
        case 403:
            return denied
        case 409 | 412:
            return "it was changed at the same time; try again"
        case _ if status >= 500:
            return f"the hub has a problem (HTTP {status}); try again later"
        case _:
            return f"the hub answers HTTP {status} ({getattr(error, 'server_message', None) or _sentence(error)})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, the one that it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _is_connection(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _HTTP


def _sentence(error: BaseException) -> str:
    """The message of an error in one line without a full stop; an error of the system without its number."""
    place = f" {name}" if isinstance(name := getattr(error, "filename", None), str) else ""
    return f"{reason(error)}{place}"
