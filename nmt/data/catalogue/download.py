"""Download files over HTTP. An interrupted download continues where it stopped, also in another process.

pooch begins a broken download anew; huggingface_hub continues it without asking whether the file is still the same.
"""

import hashlib
import json
import logging
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from nmt.errors import DataError
from nmt.runtime.files import write_content
from nmt.runtime.json_files import read_json
from nmt.runtime.wording import reason

Progress = Callable[[str, int, int | None], None]
"""Called with the URL, the bytes received and the total number of bytes, if known."""
ATTEMPTS = 4
"""How often in a row a connection may break without a new byte."""
WAIT = 1.0
"""Seconds before the second attempt; they double with each further one."""
_BLOCK = 2**16
_SECONDS = 60
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_log = logging.getLogger(__name__)


class DownloadError(Exception):
    """A download failed; the message is the reason."""


class _BrokenError(Exception):
    """The connection broke or the server is overloaded: another attempt may succeed. The message is the reason."""


@dataclass(frozen=True)
class _Version:
    """What tells one version of a file on a server from another."""

    etag: str | None
    modified: str | None
    total: int | None

    @property
    def condition(self) -> dict[str, str]:
        """The header that asks for the rest only if the file is still this version (RFC 9110, 13.1.5)."""
        strong = self.etag if self.etag and not self.etag.startswith("W/") else None
        return {"If-Range": validator} if (validator := strong or self.modified) else {}

    def fits(self, part: "_Version") -> bool:
        """Whether the response with a part may be of this version. It need not repeat everything."""
        pairs = zip(astuple(self), astuple(part), strict=True)
        return all(new is None or new == old for old, new in pairs)


def download(url: str, folder: Path, progress: Progress | None = None) -> Path:
    """Download a file to a folder; returns its path. A complete file of an earlier call is not fetched again.

    What has arrived is kept as `NAME.part`. The next attempt asks for the rest, and starts anew if the server has another
    version by now or cannot send parts. A broken connection is tried again, `ATTEMPTS` times in a row without a new byte.

    Raises:
        DownloadError: the file is not there, or does not arrive.
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{PurePosixPath(urlsplit(url).path).name[-80:]}"
    if path.is_file():
        return path
    part = path.with_name(f"{path.name}.part")
    failures, most = 0, _size(part)
    while True:
        try:
            _receive(url, part, progress)
            break
        except _BrokenError as error:
            failures = 1 if _size(part) > most else failures + 1
            most = max(most, _size(part))
            if failures >= ATTEMPTS:
                raise DownloadError(f"{error} ({ATTEMPTS} attempts)") from None
            _log.info("%s: %s; trying again", url, error)
            time.sleep(WAIT * 2 ** (failures - 1))
    os.replace(part, path)
    _forget(part)
    return path


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _receive(url: str, part: Path, progress: Progress | None) -> None:
    """Receive the file, or the rest of it. Raises _BrokenError if less than all of it came."""
    before = _read_version(part)
    have = _size(part) if before else 0
    if before and before.total and have == before.total:
        return
    headers = {"User-Agent": "nmt", "Accept-Encoding": "identity"}
    if before and have:
        headers |= {"Range": f"bytes={have}-"} | before.condition
    with _open(url, headers, part) as response:
        version = _version(response)
        if response.status == 206 and not (before and before.fits(version) and _start(response) == have):
            _forget(part)
            raise _BrokenError("the file has changed on the server")
        if response.status == 200:
            have = 0
            _start_part(part, version)
        with part.open("ab" if have else "wb") as sink:
            for block in _blocks_of(response):
                sink.write(block)
                have += len(block)
                if progress:
                    progress(url, have, version.total)
    if version.total is not None and have != version.total:
        if have > version.total:
            _forget(part)
        raise _BrokenError(f"only {have:,} of {version.total:,} bytes came")


def _open(url: str, headers: dict[str, str], part: Path) -> HTTPResponse:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 -- entries have only http and https
    try:
        response: HTTPResponse = urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and "Range" in headers:  # what is here is longer than the file
            _forget(part)
            raise _BrokenError("the file has changed on the server") from None
        kind = _BrokenError if error.code in _TRANSIENT else DownloadError
        raise kind(f"HTTP {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise _failure(error) from None
    if response.headers.get_content_type() == "text/html" and not url.endswith((".html", ".htm")):
        response.close()
        raise DownloadError("the server sent a web page instead of the file")
    return response


def _blocks_of(response: HTTPResponse) -> Iterator[bytes]:
    try:
        while block := response.read(_BLOCK):
            yield block
    except (OSError, HTTPException) as error:
        raise _BrokenError(reason(error)) from None


def _failure(error: Exception) -> Exception:
    """The error for a connection that failed: whether another attempt is worth it depends on the reason."""
    cause = getattr(error, "reason", error)
    hopeless = isinstance(cause, (socket.gaierror, ssl.SSLCertVerificationError, ConnectionRefusedError))
    return (DownloadError if hopeless else _BrokenError)(reason(error))


def _version(response: HTTPResponse) -> _Version:
    """The version that a response names. The total of a part is in its Content-Range."""
    length = response.headers.get("Content-Length")
    if response.status == 206:
        length = (response.headers.get("Content-Range") or "").rpartition("/")[2]
    total = int(length) if length and length.isdecimal() else None
    return _Version(response.headers.get("ETag"), response.headers.get("Last-Modified"), total)


def _start(response: HTTPResponse) -> int | None:
    """The position at which a partial response starts."""
    start = (response.headers.get("Content-Range") or "").removeprefix("bytes ").partition("-")[0]
    return int(start) if start.isdecimal() else None


def _version_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _start_part(part: Path, version: _Version) -> None:
    """Empty the part and note which version it will be of."""
    part.unlink(missing_ok=True)
    write_content(_version_path(part), json.dumps(asdict(version)))


def _read_version(part: Path) -> _Version | None:
    with suppress(DataError, TypeError):
        return _Version(**read_json(_version_path(part)))
    return None


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_path(part).unlink(missing_ok=True)
