"""What a start costs: help, and the translation of one line, each beside the import of torch that it cannot do without."""

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
    """Seconds from the command to its end, in fresh processes."""
    line = lines_of_test(session, 1)
    found = [
        _timed(session, "nmt --help", _nmt, session, ["--help"]),
        _timed(session, "python -c 'import torch'", _import_torch, session),
    ]
    model = session.attempt("start-up: training nmt's model, unless that is done", our_model, session)
    if model is not None:
        arguments = ["translate", str(model), "--device", session.device, "--quiet"]
        found.append(_timed(session, "nmt translate, one line", _nmt, session, arguments, line))
    for peer in session.peers:
        what = f"start-up: training the model of {peer.name}, unless that is done"
        theirs = session.attempt(what, their_model, session, peer)
        if theirs is not None:
            found.append(_timed(session, f"{peer.name}, one line", _theirs, session, peer, theirs, line))
    rows = [row for row in found if row is not None]
    return Section(
        "start-up",
        "Start-up",
        "Seconds from the command to its end, in fresh processes; the files were read before, so the disk does not count.",
        ["command", "seconds", "min to max", "windows", "peak MiB"],
        [
            [
                f"`{what}`",
                f"{spread.median:.2f}",
                f"{spread.low:.2f} to {spread.high:.2f}",
                str(spread.windows),
                number(peak),
            ]
            for what, spread, peak in rows
        ],
        [{"command": what, "seconds": spread, "peak": peak} for what, spread, peak in rows],
    )


def _timed(
    session: Session, what: str, once: Callable[P, tuple[float, float]], *args: P.args, **kwargs: P.kwargs
) -> tuple[str, Spread, float] | None:
    """Seconds and peak memory of several starts, after one that brings the files into memory."""

    def measure() -> tuple[str, Spread, float]:
        runs = [once(*args, **kwargs) for _ in range(1 + session.effort.windows)][1:]
        return what, Spread.of(seconds for seconds, _ in runs), max(peak for _, peak in runs)

    return session.attempt(f"start-up: {what}", measure)


def _nmt(session: Session, arguments: list[str], stdin: Path | None = None) -> tuple[float, float]:
    ended = ours("nmt.cli", *arguments, threads=session.threads, what=f"nmt {arguments[0]}", stdin=stdin)
    return ended.seconds, ended.peak


def _import_torch(session: Session) -> tuple[float, float]:
    ended = run([sys.executable, "-c", "import torch"], threads=session.threads, what="import torch")
    return ended.seconds, ended.peak


def _theirs(session: Session, peer: Peer, model: Path, line: Path) -> tuple[float, float]:
    found = peer.decode(model, FAMILY, session.text, line, beam=5)
    return found.whole, found.peak
