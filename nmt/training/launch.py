"""Start the ranks of one command on this machine, and wait for them. A rank is told its place by torchrun's variables."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.errors import DataError
from nmt.training.stopping import ending_signals, handling

RENDEZVOUS = "NMT_RENDEZVOUS"
"""Environment variable: the file by which the ranks started here meet. Those of torchrun meet at MASTER_ADDR instead."""
_LAUNCHER = "NMT_LAUNCHER"
"""Environment variable: the id of the process that has started the ranks here."""
GRACE = 60.0
"""Seconds in which the other ranks may end by themselves after one has failed."""
_PAUSE = 0.05


def rank_of_process() -> int:
    """The number of this rank, from 0; 0 for a process that trains alone."""
    return int(os.environ.get("RANK", "0"))


def count_of_ranks() -> int:
    """The number of ranks that torchrun or `launch` has started; 1 for a process that trains alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def ranks_on_this_machine() -> int:
    """How many of the ranks share this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", count_of_ranks()))


def is_orphan() -> bool:
    """Whether the process that started this rank has been killed, so that nobody waits for the training."""
    launcher = os.environ.get(_LAUNCHER)
    return launcher is not None and os.getppid() != int(launcher)


def training_command(arguments: Sequence[str]) -> str:
    """The command line that starts `nmt train` with as many processes as this training has."""
    command = ["nmt", "train", *arguments]
    count = count_of_ranks()
    if RENDEZVOUS in os.environ:
        command += ["--processes", str(count)]
    elif count > 1:
        command = ["torchrun", "--nproc-per-node", str(ranks_on_this_machine()), "-m", *command]
    return shlex.join(command)


def launch(arguments: Sequence[str], count: int) -> int:
    """Run `nmt` with these arguments in so many processes that work together, and return the exit status of the first.

    Signals are passed on to all of them. If one fails, the others end too.

    Raises:
        DataError: the first process, which reports errors, was killed.
    """
    with TemporaryDirectory(prefix="nmt-") as folder:
        ranks: list[subprocess.Popen[bytes]] = []
        with handling(ending_signals(), lambda number: _send(ranks, number)):
            ranks.extend(_start(arguments, rank, count, Path(folder) / "rendezvous") for rank in range(count))
            _wait(ranks)
    status = ranks[0].returncode
    if status < 0:
        name = signal.Signals(-status).name
        advice = " If a state was saved, the same command with --resume goes on." if "train" in arguments[:1] else ""
        raise DataError(f"The first of {count} processes was ended by {name}.{advice}")
    return status


def _start(arguments: Sequence[str], rank: int, count: int, rendezvous: Path) -> subprocess.Popen[bytes]:
    """Start one rank, in a process group of its own, so that Ctrl-C reaches it once."""
    place = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        RENDEZVOUS: rendezvous.as_uri(),
        _LAUNCHER: str(os.getpid()),
    }
    environment = {"GLOO_SOCKET_IFNAME": _loopback(), **os.environ, **place}
    command = [sys.executable, "-m", "nmt", *arguments]
    return subprocess.Popen(command, env=environment, process_group=0)  # noqa: S603 -- this command with its own arguments


def _loopback() -> str:
    """The name of the network interface of this machine to itself."""
    return "lo0" if sys.platform == "darwin" else "lo"


def _wait(ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until all ranks have ended. After one has failed, the others have some time to save and end."""
    deadline = None
    while any(rank.poll() is None for rank in ranks):
        if deadline is None and any(rank.returncode for rank in ranks):
            deadline = time.monotonic() + GRACE
        if deadline is not None and time.monotonic() > deadline:
            _send(ranks, signal.SIGKILL)
        time.sleep(_PAUSE)


def _send(ranks: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for rank in ranks:
        if rank.poll() is None:
            rank.send_signal(number)
