"""A server on this machine in place of those of corpora, and a catalogue of one corpus, `toy`, that it serves."""

import io
import json
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
    """What a server has at each address, and what was asked of it."""

    address: str = ""
    contents: dict[str, bytes] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    """A Content-Length other than the right one."""
    requests: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, server_state: Server, *rest: Any) -> None:
        self.state = server_state
        super().__init__(*rest)

    def do_GET(self) -> None:
        self.state.requests.append(self.path)
        content = self.state.contents.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(self.state.lengths.get(self.path, len(content))))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    """A server on this machine."""
    state = Server()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, state))
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


def entry(splits: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The entry of `toy`."""
    tree: dict[str, Any] = {"name": "toy", "title": "A toy", "group": "small", "languages": ["en", "de"]}
    tree |= {
        "license": "none at all",
        "home": "https://example.org",
        "citation": "Nobody 2020, A Toy",
        "splits": splits,
    }
    return {key: value for key, value in {**tree, **changes}.items() if value is not None}


def write_entry(folder: Path, tree: dict[str, Any]) -> None:
    """Write an entry to a folder of entries."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tree['name']}.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(tree))), encoding="utf-8")
