"""A server on this machine that misbehaves as servers do, and a catalogue of one corpus that it serves."""

import io
import json
import socket
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml


@dataclass
class Server:
    """What a server has, and how it behaves at each address."""

    address: str = ""
    contents: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, list[int]] = field(default_factory=dict)
    """After how many bytes each of the next connections breaks."""
    broken: dict[str, list[int]] = field(default_factory=dict)
    """The status of each of the next answers, instead of the content."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of all answers, such as ETag."""
    ranges: bool = True
    """Whether the server sends parts of files."""
    promised: dict[str, int] = field(default_factory=dict)
    """A Content-Length other than the right one."""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    """Address and Range of each request."""
    conditions: list[str | None] = field(default_factory=list)
    """If-Range of each request."""


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, server_state: Server, *rest: Any) -> None:
        self.state = server_state
        super().__init__(*rest)

    def do_GET(self) -> None:
        state, byte_range = self.state, self.headers.get("Range")
        state.requests.append((self.path, byte_range))
        state.conditions.append(self.headers.get("If-Range"))
        if statuses := state.broken.get(self.path):
            self.send_error(statuses.pop(0))
            return
        content = state.contents.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = self._start(byte_range)
        if start is not None and start >= len(content):
            self.send_error(416)
            return
        self.send_response(200 if start is None else 206)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        rest = content[start or 0 :]
        self.send_header("Content-Length", str(state.promised.get(self.path, len(rest))))
        for name, value in state.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if cuts := state.cut.get(self.path):
            self.wfile.write(rest[: cuts.pop(0)])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(rest)

    def _start(self, byte_range: str | None) -> int | None:
        """The first byte to send; None for the whole file."""
        condition = self.headers.get("If-Range")
        is_other = condition is not None and condition not in self.state.headers.values()
        if byte_range is None or not self.state.ranges or is_other:
            return None
        return int(byte_range.removeprefix("bytes=").removesuffix("-"))

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    """A server on this machine."""
    state = Server()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, state))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that went away
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def packed(name: str, files: dict[str, bytes]) -> bytes:
    """An archive, by its name a zip or a tar file."""
    buffer = io.BytesIO()
    if name.endswith("zip"):
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
            for path, content in files.items():
                bundle.writestr(path, content)
        return buffer.getvalue()
    with tarfile.open(fileobj=buffer, mode="w:gz") as pack:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            pack.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def entry(splits: dict[str, Any], name: str = "toy", **changes: Any) -> dict[str, Any]:
    """An entry of the catalogue."""
    tree: dict[str, Any] = {
        "name": name,
        "title": "A toy",
        "group": "small",
        "languages": ["en", "de"],
        "license": "none at all",
    }
    tree |= {"home": "https://example.org", "citation": "Nobody 2020, A Toy", "splits": splits}
    return {key: value for key, value in {**tree, **changes}.items() if value is not None}


def write_entry(folder: Path, tree: dict[str, Any]) -> None:
    """Write an entry to a folder of entries."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tree['name']}.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(tree))), encoding="utf-8")
