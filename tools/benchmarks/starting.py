"""Start-up time: `nmt --help`, and the translation of one line beside the `import torch` that it includes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

from .decoding import FAMILY, lines_of_test, our_model, their_model
from .measuring import Spread, ours, run
from .peers import Peer
from .rates import number
from .session import Section, Session

P = ParamSpec("P")


def start(session: Session) -> Section:
    """Seconds from start to exit, in fresh processes."""
    line = lines_of_test(session, 1)
    measured = [
        _timed(session, "nmt --help", _nmt, session, ["--help"]),
        _timed(session, "python -c 'import torch'", _import_torch, session),
    ]
    model = session.attempt("start-up: train nmt's model if needed", our_model, session)
    if model is not None:
        arguments = ["translate", str(model), "--device", session.device, "--quiet"]
        measured.append(_timed(session, "nmt translate, one line", _nmt, session, arguments, line))
    for peer in session.peers:
        label = f"start-up: train the model of {peer.name} if needed"
        theirs = session.attempt(label, their_model, session, peer)
        if theirs is not None:
            measured.append(_timed(session, f"{peer.name}, one line", _theirs, session, peer, theirs, line))
    rows = [row for row in measured if row is not None]
    return Section(
        "start-up",
        "Start-up",
        "Seconds from start to exit, in fresh processes. One uncounted start reads the files from disk first.",
        ["command", "seconds", "min to max", "windows", "peak MiB"],
        [
            [
                f"`{command}`",
                f"{spread.median:.2f}",
                f"{spread.low:.2f} to {spread.high:.2f}",
                str(spread.windows),
                number(peak),
            ]
            for command, spread, peak in rows
        ],
        [{"command": command, "seconds": spread, "peak": peak} for command, spread, peak in rows],
    )


def _timed(
    session: Session, command: str, once: Callable[P, tuple[float, float]], *args: P.args, **kwargs: P.kwargs
) -> tuple[str, Spread, float] | None:
    """Seconds and peak memory of several starts, after an uncounted one that brings the files into memory."""

    def measure() -> tuple[str, Spread, float]:
        runs = [once(*args, **kwargs) for _ in range(1 + session.effort.windows)][1:]
        return command, Spread.of(seconds for seconds, _ in runs), max(peak for _, peak in runs)

    return session.attempt(f"start-up: {command}", measure)


def _nmt(session: Session, arguments: list[str], stdin: Path | None = None) -> tuple[float, float]:
    process = ours("nmt", *arguments, threads=session.threads, what=f"nmt {arguments[0]}", stdin=stdin)
    return process.seconds, process.peak


def _import_torch(session: Session) -> tuple[float, float]:
    process = run([sys.executable, "-c", "import torch"], threads=session.threads, what="import torch")
    return process.seconds, process.peak


def _theirs(session: Session, peer: Peer, model: Path, line: Path) -> tuple[float, float]:
    decoded = peer.decode(model, FAMILY, session.text, line, beam=5)
    return decoded.total_seconds, decoded.peak
