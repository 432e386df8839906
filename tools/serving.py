"""Measure `nmt serve` on loopback: 32 clients beside one batch job of `nmt translate`, and one sentence alone.

    python tools/serving.py MODEL TEXT [--threads N] [--clients 32] [--lines 1000] [--rounds 3] [--json FILE]

Run nothing else meanwhile. Clients are threads that ask for the next line as soon as they have an answer. The rate of `nmt
translate` is that of its lines beyond the first, which leaves out its start. Translations of both are compared.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NMT = [sys.executable, "-m", "nmt"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
_LOOP = """
import json, sys, time
import torch, nmt
torch.set_num_threads(1)
folder, *lines = json.load(sys.stdin)
translator = nmt.load(folder, device="cpu", alignments=False)
translator.translate(lines[0])
seconds = []
for line in lines:
    start = time.perf_counter()
    translator.translate(line)
    seconds.append(time.perf_counter() - start)
print(json.dumps(seconds))
"""


def main() -> None:
    """Measure, print and write the figures."""
    options = _options()
    texts = options.text.read_text(encoding="utf-8").splitlines()
    lines = [line for line in texts if line.strip()][: options.lines]
    rounds = []
    with _server(options.model, options.threads) as port:
        _load(port, lines[: 2 * options.clients], options.clients)  # warm
        for _ in range(options.rounds):
            rate, translations = _batch_job(options.model, lines, options.threads)
            served = _load(port, lines, options.clients)
            alone, loop = _alone(port, lines[: options.alone]), _python_loop(options.model, lines[: options.alone])
            differing = sum(one != other for one, other in zip(translations, served["translations"], strict=True))
            rounds.append(
                {
                    "translate": rate,
                    "serve": served["rate"],
                    "share": served["rate"] / rate,
                    "p50_ms": served["p50_ms"],
                    "p95_ms": served["p95_ms"],
                    "p99_ms": served["p99_ms"],
                    "alone_ms": 1000 * alone,
                    "loop_ms": 1000 * loop,
                    "alone_against_loop": alone / loop,
                    "differing": differing,
                }
            )
            print("  ".join(f"{name} {value:.4g}" for name, value in rounds[-1].items()), flush=True)
    medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    print("median: " + "  ".join(f"{name} {value:.4g}" for name, value in medians.items()))
    if options.json:
        figures = {"clients": options.clients, "lines": len(lines), "rounds": rounds, "median": medians}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="model folder")
    parser.add_argument("text", type=Path, help="text, one sentence per line")
    parser.add_argument("--threads", type=int, default=1, help="threads of both commands [1]")
    parser.add_argument("--clients", type=int, default=32, help="concurrent clients [32]")
    parser.add_argument("--lines", type=int, default=1000, help="most lines [1000]")
    parser.add_argument("--alone", type=int, default=100, help="lines that are sent one at a time [100]")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts [3]")
    parser.add_argument("--json", type=Path, help="write the figures")
    return parser.parse_args()


@contextmanager
def _server(model: Path, threads: int) -> Iterator[int]:
    """A server; yields its port."""
    command = [*NMT, "serve", str(model), "--port", "0", "--quiet", "--threads", str(threads)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r":(\d+) \(", line)
        if address is None:
            sys.exit(f"serving: {line}{process.stderr.read()}")
        yield int(address[1])
    finally:
        process.terminate()
        process.wait()


def _batch_job(model: Path, lines: Sequence[str], threads: int) -> tuple[float, list[str]]:
    """Lines per second of `nmt translate`, and the translations."""
    seconds, outputs = [], []
    for part in (lines[:1], lines):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source"
            source.write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
            command = [*NMT, "translate", str(model), "-q", "--threads", str(threads), "-i", str(source)]
            start = time.perf_counter()
            ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
            seconds.append(time.perf_counter() - start)
            outputs.append(ended.stdout.split("\n")[:-1])
    return (len(lines) - 1) / (seconds[1] - seconds[0]), outputs[1]


def _load(port: int, lines: Sequence[str], clients: int) -> dict[str, Any]:
    """Lines per second and seconds per answer of concurrent clients, and the translations."""
    numbers, lock = itertools.count(), threading.Lock()
    translations, seconds = [""] * len(lines), [0.0] * len(lines)

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            with lock:
                number = next(numbers)
            if number >= len(lines):
                break
            start = time.perf_counter()
            translations[number] = _translate(connection, lines[number])
            seconds[number] = time.perf_counter() - start
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(lines) / (time.perf_counter() - start)
    cuts = statistics.quantiles(seconds, n=100)
    percentiles = {f"p{share}_ms": 1000 * cuts[share - 1] for share in (50, 95, 99)}
    return {"rate": rate, "translations": translations, **percentiles}


def _alone(port: int, lines: Sequence[str]) -> float:
    """Median seconds of a request while there is no other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    seconds = []
    for line in lines:
        start = time.perf_counter()
        _translate(connection, line)
        seconds.append(time.perf_counter() - start)
    connection.close()
    return statistics.median(seconds)


def _python_loop(model: Path, lines: Sequence[str]) -> float:
    """Median seconds of a call in a loop in Python."""
    command = [sys.executable, "-c", _LOOP]
    ended = subprocess.run(
        command, input=json.dumps([str(model), *lines]), check=True, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    return float(statistics.median(json.loads(ended.stdout)))


def _translate(connection: http.client.HTTPConnection, line: str) -> str:
    body = json.dumps({"q": line, "model": None, "source": "auto", "target": _target(connection)}).encode()
    connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
    answer = json.load(connection.getresponse())
    if "error" in answer:
        sys.exit(f"serving: {answer['error']}")
    return str(answer["translatedText"])


_TARGETS: dict[int | None, str] = {}


def _target(connection: http.client.HTTPConnection) -> str:
    """The target language of the server."""
    if connection.port not in _TARGETS:
        connection.request("GET", "/languages")
        _TARGETS[connection.port] = json.load(connection.getresponse())[0]["targets"][0]
    return _TARGETS[connection.port]


if __name__ == "__main__":
    main()
