"""Clients that send anything, too much, too slowly, or leave: the server answers, grows no memory, and fails at nothing."""

import errno
import json
import random
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.serving.documents.test_any_bytes import FILES, damaged
from tests.serving.test_serve_command import Served, model, served

__all__ = ["model"]  # a fixture

ALLOWED = {200, 400, 403, 404, 405, 408, 413, 415, 421, 503}
"""503 is the only status of a server's fault: there is too much to do, with Retry-After."""
CLIENTS = 8
MIB = 2**20


def request(
    body: bytes, *headers: str, target: str = "/translate", method: str = "POST", length: int | None = None
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    size = len(body) if length is None else length
    return ("\r\n".join([*lines, f"Content-Length: {size}"]) + "\r\n\r\n").encode("latin-1") + body


JSON = "Content-Type: application/json"


def good(rng: random.Random) -> bytes:
    text = " ".join(rng.choices(["a", "dog", "cat", "and", "runs"], k=rng.randint(1, 8)))
    return request(json.dumps({"q": text, "source": "en", "target": "de", "n_best": rng.randint(1, 3)}).encode(), JSON)


def malformed(rng: random.Random) -> bytes:
    body = bytearray(json.dumps({"q": "a dog", "source": "en", "target": "de", "alternatives": 1}).encode())
    for _ in range(rng.randint(1, 6)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return request(bytes(body), JSON)


def wrong_types(rng: random.Random) -> bytes:
    texts = ["x" * 300, "\x00", "../.."]
    values: list[object] = [None, 1, -1, 1e400, True, [], {}, [[]], ["a", 1], *texts, {"$ref": "#"}, 10**30]
    names = ["q", "source", "target", "n_best", "beam_size", "alternatives", "format", "model", "alignment", "api_key"]
    content = {"q": "a", "target": "de", **{name: rng.choice(values) for name in rng.sample(names, 3)}}
    return request(json.dumps(content).encode(), JSON)


def huge_text(rng: random.Random) -> bytes:
    text = rng.choice(["a", "a ", "\n", "🂡", "\ud83d", "a\n", "é" * 20 + " "]) * rng.randint(1, 30_000)
    return request(json.dumps({"q": text, "target": "de"}).encode(), JSON)


def long_words(rng: random.Random) -> bytes:
    return request(json.dumps({"q": "dog" * rng.randint(1, 100), "target": "de", "alignment": True}).encode(), JSON)


def form(rng: random.Random) -> bytes:
    body = rng.choice(
        [b"q=%FF%FE&target=de", b"&" * 5000, b"q=a&" * 2000, b"q=%", b"=" * 100, b"q=a&target=de&n_best="]
    )
    return request(body, "Content-Type: application/x-www-form-urlencoded", target=rng.choice(["/", "/translate"]))


def pictures(rng: random.Random) -> bytes:
    content = {
        "q": rng.choice(["a dog", "", "$x$ \\frac", "<b>"]),
        "translation": rng.choice(["a", "", "\x07 &"]),
        "target": "de",
    }
    return request(
        json.dumps(content).encode(), JSON, target=f"/alignment.{rng.choice(['svg', 'json', 'html', 'exe'])}"
    )


def files(rng: random.Random) -> bytes:
    suffix = rng.choice([*FILES, ".exe"])
    content = damaged(FILES.get(suffix, b"MZ"), rng)
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="../a{suffix}"\r\n\r\n'.encode()
    kind = "Content-Type: multipart/form-data; boundary=x"
    return request(head + content + b"\r\n--x--\r\n", kind, target="/translate_file?target=de")


def paths(rng: random.Random) -> bytes:
    target = rng.choice(
        ["/../etc/passwd", "/static/..%2f..", "//", "/%00", "*", "/translate/", "/models/1", "/?" + "a" * 4000]
    )
    return request(b"", target=target, method=rng.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "BREW"]))


def no_http(rng: random.Random) -> bytes:
    return rng.choice(
        [rng.randbytes(rng.randint(1, 2000)), b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50, b"GET / HTTP/1.1\r\nA" * 9]
    )


def bad_headers(rng: random.Random) -> bytes:
    headers = rng.choice(
        ["Host: evil.example", "X: " + "a" * 70_000, "Content-Length: -5", "Transfer-Encoding: chunked"]
    )
    return request(b"{}", headers, "Origin: http://evil.example")


def unfinished(rng: random.Random) -> bytes:
    whole = good(rng)
    return whole[: rng.randrange(len(whole))]


KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    good, malformed, wrong_types, huge_text, long_words, form, pictures, files, paths, no_http, bad_headers, unfinished,
)  # fmt: skip
WHOLE = KINDS[:9]
"""Those that must be answered."""


def send(port: int, rng: random.Random) -> str:
    """Send something in some way; returns what came of it."""
    kind = rng.choice(KINDS)
    data = kind(rng)
    manner = rng.choice(["read", "read", "read", "leave", "reset", "slow", "half"])
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            answer = converse(client, data, manner, patience=60 if kind in WHOLE else 0.5)
    except TimeoutError:
        return "unfinished"  # the server waits for the rest
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):  # the server closed first
            raise
    if manner in ("leave", "reset", "half"):
        return manner
    return answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "closed"


def converse(client: socket.socket, data: bytes, manner: str, *, patience: float) -> bytes:
    """Send data and read the answer, as far as this manner of client does."""
    if manner == "slow":
        for start in range(0, min(len(data), 60), 20):
            client.sendall(data[start : start + 20])
            threading.Event().wait(0.02)
        data = data[60:]
    client.sendall(data)
    if manner == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    if manner in ("leave", "reset"):
        return b""
    client.settimeout(patience)
    if manner == "half":
        client.shutdown(socket.SHUT_WR)
        return client.recv(65536)
    return b"".join(iter(lambda: client.recv(65536), b""))


def memory(server: Served) -> float:
    """Resident memory of the server and its processes, in MiB."""
    processes = [server.process.pid, *server.decoders()]
    pages = sum(int(Path(f"/proc/{number}/statm").read_text().split()[1]) for number in processes)
    return pages * 4096 / MIB


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory of processes from /proc")
@pytest.mark.parametrize("count", [160, pytest.param(10_000, marks=pytest.mark.slow)])
def test_whatever_clients_do_the_server_answers_on(model: Path, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    with served(model, "--quiet", "--timeout", "10") as server:
        lock = threading.Lock()
        outcomes: Counter[str] = Counter()

        def torment(client: int, requests: int) -> None:
            rng = random.Random(client)
            for _ in range(requests):
                outcome = send(server.port, rng)
                with lock:
                    outcomes[outcome] += 1

        def run(first: int, requests: int) -> None:
            with ThreadPoolExecutor(CLIENTS) as threads:
                list(threads.map(lambda client: torment(first + client, requests // CLIENTS), range(CLIENTS)))

        run(0, count // 2)
        before = memory(server)
        run(CLIENTS, count // 2)
        grown = memory(server) - before
        answer = server.ask("/translate", {"q": "a dog", "source": "en", "target": "de"})
        status, errors = server.end(signal.SIGKILL)
    statuses = {int(outcome) for outcome in outcomes if outcome.isdecimal()}
    with capsys.disabled() if count > 1000 else nullcontext():
        sys.stdout.write(
            f"{count} requests: {dict(outcomes)}; {before:.0f} MiB half-way, {grown:+.0f} MiB at the end\n"
        )
    assert answer["model"] == "model"
    assert (status, errors) == (-signal.SIGKILL, "")
    assert statuses <= ALLOWED
    assert {200, 400, 404} <= statuses
    assert sum(outcomes.values()) == count
    assert grown < (100 if count < 1000 else 40)  # at first, processes still grow to what they need
