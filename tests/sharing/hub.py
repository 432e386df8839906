"""A stand-in of the Hugging Face hub on this machine: what huggingface_hub calls to create, commit to and read models."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_" + "a" * 34
READ_TOKEN = "hf_" + "r" * 34


@dataclass
class Commit:
    """A version of a repository."""

    sha: str
    files: dict[str, bytes]
    large: frozenset[str] = frozenset()
    """Names of files that went through LFS."""
    message: str = ""


@dataclass
class Repository:
    """A model on the hub; the last commit is `main`."""

    private: bool = False
    commits: list[Commit] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)

    def add(self, files: dict[str, bytes], large: frozenset[str] = frozenset(), message: str = "") -> Commit:
        """A new version with more or other files."""
        before = self.commits[-1] if self.commits else Commit("", {})
        sha = hashlib.sha1(f"{len(self.commits)} {before.sha} {message}".encode()).hexdigest()
        self.commits.append(Commit(sha, {**before.files, **files}, before.large | large, message))
        return self.commits[-1]

    def version(self, revision: str) -> Commit | None:
        """The commit of a branch, tag or hash."""
        sha = self.commits[-1].sha if revision == "main" else self.tags.get(revision, revision)
        return next((commit for commit in self.commits if commit.sha == sha), None)


@dataclass
class Hub:
    """The repositories, and how the server behaves."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    """What was uploaded through LFS, by SHA-256."""
    broken: dict[str, list[int]] = field(default_factory=dict)
    """The status of each of the next answers to a request whose line contains the key."""
    requests: list[str] = field(default_factory=list)
    """Method and path of each request."""

    def repository(self, name: str, **settings: Any) -> Repository:
        """A new repository with its first commit."""
        self.repositories[name] = Repository(**settings)
        self.repositories[name].add(
            {".gitattributes": b"*.safetensors filter=lfs\n*.model filter=lfs\n"}, message="initial commit"
        )
        return self.repositories[name]

    def asked(self, part: str) -> list[str]:
        """The requests whose line contains a text."""
        return [line for line in self.requests if part in line]


class _RefusedError(Exception):
    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        self.status, self.code, self.message = status, code, message


_MODEL = r"/api/models/(?P<name>[^/]+/[^/]+)"
_ROUTES = {
    r"POST /api/repos/create": "create",
    r"POST /api/validate-yaml": "validate",
    rf"GET {_MODEL}(/revision/(?P<revision>[^/]+))?": "info",
    rf"GET {_MODEL}/tree/(?P<revision>[^/]+)": "tree",
    rf"POST {_MODEL}/preupload/(?P<revision>[^/]+)": "preupload",
    rf"POST {_MODEL}/commit/(?P<revision>[^/]+)": "commit",
    r"POST /(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch": "batch",
    r"PUT /lfs/(?P<digest>[0-9a-f]{64})": "store",
    r"(GET|HEAD) /(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)": "resolve",
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub: Hub, *rest: Any) -> None:
        self.hub = hub
        super().__init__(*rest)

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        line = f"{self.command} {path}"
        self.hub.requests.append(line)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            for part, statuses in self.hub.broken.items():
                if part in line and statuses:
                    raise _RefusedError(statuses.pop(0), message="as the test says")
            for route, name in _ROUTES.items():
                if match := re.fullmatch(route, line):
                    getattr(self, f"_{name}")(**match.groupdict())
                    return
            raise _RefusedError(404, "EntryNotFound")
        except _RefusedError as refusal:
            headers = {"X-Error-Code": refusal.code, "X-Error-Message": refusal.message}
            self._send(refusal.status, b'{"error": "refused"}', {key: value for key, value in headers.items() if value})

    do_GET = do_HEAD = do_POST = do_PUT = _answer  # noqa: N815 -- the names that http.server calls

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    # --- who may do what ---

    def _token(self) -> str | None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        if token not in (None, TOKEN, READ_TOKEN):
            raise _RefusedError(401, message="Invalid credentials in Authorization header")
        return token

    def _writer(self) -> None:
        token = self._token()
        if token is None:
            raise _RefusedError(401, message="Invalid username or password.")
        if token != TOKEN:
            raise _RefusedError(403, message="You don't have the rights to create a model under this namespace")

    def _readable(self, name: str) -> Repository:
        token = self._token()
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.private and token is None):
            raise _RefusedError(401 if token is None else 404, "RepoNotFound")
        return repository

    def _version(self, name: str, revision: str | None) -> Commit:
        repository = self._readable(name)
        commit = repository.version(revision or "main")
        if commit is None:
            raise _RefusedError(404, "RevisionNotFound")
        return commit

    # --- what the hub answers ---

    def _create(self) -> None:
        self._writer()
        wish = json.loads(self.body)
        name = f"{wish['organization']}/{wish['name']}"
        answer = json.dumps({"url": f"{self.hub.address}/{name}", "name": name}).encode()
        if name in self.hub.repositories:
            self._send(409, answer, {})
            return
        is_private = bool(wish.get("private")) or wish.get("visibility") == "private"
        self.hub.repository(name, private=is_private)
        self._send(200, answer, {})

    def _validate(self) -> None:
        content = json.loads(self.body)["content"]
        assert content.startswith("---\n")
        self._json({"errors": [], "warnings": []})

    def _info(self, name: str, revision: str | None) -> None:
        commit = self._version(name, revision)
        siblings = [{"rfilename": path} for path in commit.files]
        private = self.hub.repositories[name].private
        self._json(
            {"id": name, "modelId": name, "sha": commit.sha, "private": private, "siblings": siblings, "tags": []}
        )

    def _tree(self, name: str, revision: str) -> None:
        commit = self._version(name, revision)
        self._json([self._entry(path, content, path in commit.large) for path, content in commit.files.items()])

    def _entry(self, path: str, content: bytes, is_large: bool) -> dict[str, Any]:
        entry = {"type": "file", "path": path, "size": len(content), "oid": _git_hash(content)}
        digest = hashlib.sha256(content).hexdigest()
        return {**entry, "lfs": {"oid": digest, "size": len(content), "pointerSize": 130}} if is_large else entry

    def _preupload(self, name: str, revision: str) -> None:
        self._writer()
        commit = self._version(name, revision)
        files = []
        for file in json.loads(self.body)["files"]:
            path = file["path"]
            mode = "lfs" if path.endswith((".safetensors", ".model")) else "regular"
            oid = None
            if path in commit.files:
                content = commit.files[path]
                oid = hashlib.sha256(content).hexdigest() if mode == "lfs" else _git_hash(content)
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self._json({"files": files})

    def _batch(self, name: str) -> None:
        self._writer()
        objects = []
        for item in json.loads(self.body)["objects"]:
            upload = {"upload": {"href": f"{self.hub.address}/lfs/{item['oid']}"}}
            objects.append(item if item["oid"] in self.hub.objects else {**item, "actions": upload})
        self._json({"transfer": "basic", "objects": objects})

    def _store(self, digest: str) -> None:
        assert hashlib.sha256(self.body).hexdigest() == digest
        self.hub.objects[digest] = self.body
        self._send(200, b"", {})

    def _commit(self, name: str, revision: str) -> None:
        self._writer()
        repository = self._readable(name)
        header, *items = [json.loads(line) for line in self.body.splitlines()]
        if header["value"].get("parentCommit") not in (None, repository.commits[-1].sha):
            raise _RefusedError(412, message="A commit has happened since. Please refresh and try again.")
        files, large = {}, set()
        for item in items:
            value = item["value"]
            if item["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
                large.add(value["path"])
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        commit = repository.add(files, frozenset(large), header["value"]["summary"])
        self._json({"commitUrl": f"{self.hub.address}/{name}/commit/{commit.sha}", "commitOid": commit.sha})

    def _resolve(self, name: str, revision: str, path: str) -> None:
        commit = self._version(name, revision)
        if path not in commit.files:
            raise _RefusedError(404, "EntryNotFound")
        content = commit.files[path]
        digest = hashlib.sha256(content).hexdigest() if path in commit.large else _git_hash(content)
        headers = {"X-Repo-Commit": commit.sha, "ETag": f'"{digest}"'}
        self._send(200, content, headers)

    def log_message(self, *_: object) -> None:
        pass


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub on this machine."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, hub))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that went away
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
