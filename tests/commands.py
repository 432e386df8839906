"""`nmt` commands as processes, as a user starts them, but without the second that importing torch takes.

A process that has imported everything waits for commands and forks for each one; what is forked has its own files, folder,
environment and exit status, and is `nmt.cli.main` from there on.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    pass

ROOT = Path(__file__).resolve().parents[1]
NMT = [sys.executable, "-m", "nmt"]
"""The command in a new interpreter."""
SECONDS = 120.0
IMPORTED_LATE = [
    *("torch.autograd", "pandas", "pyarrow.compute", "pyarrow.parquet", "rich.progress", "rich.table"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg"),
    *("PIL.PngImagePlugin", "fontTools.subset", "sacrebleu", "sacrebleu.significance"),
]
"""What the commands import within functions, or others for them; but not `datasets`, which reads its variables then."""
Finished = subprocess.CompletedProcess[bytes]


def nmt(*arguments: object, stdin: bytes = b"", cwd: Path | None = None, **variables: str) -> Finished:
    """Run the command to its end."""
    return Running(*arguments, stdin=stdin, cwd=cwd, environment=variables).finish()


def python(code: str, *arguments: object, stdin: bytes = b"", cwd: Path | None = None) -> Finished:
    """Run a program, as `python -c` does, to its end."""
    return Running("-c", code, *arguments, program=None, stdin=stdin, cwd=cwd).finish()


class Running:
    """A command that has been started; one at a time. Its stdin is bytes or a file, its stdout kept or another file."""

    def __init__(
        self,
        *arguments: object,
        program: str | None = "nmt",
        stdin: bytes | int = b"",
        stdout: int | None = None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = [*filter(None, [program]), *map(str, arguments)]
        self.status: int | None = None
        self._outputs = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 -- open until the end
        self._feeding: threading.Thread | None = None
        if isinstance(stdin, bytes):
            content, (stdin, write) = stdin, os.pipe()
            self._feeding = threading.Thread(target=_feed, args=(write, content))
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", **(environment or {})}
        output, errors = (file.fileno() for file in self._outputs)
        files = [stdin, output if stdout is None else stdout, errors]
        try:
            self.pid = _warm().start(self.command, files, cwd or Path.cwd(), variables)
        finally:
            if self._feeding is not None:
                os.close(stdin)
        if self._feeding is not None:
            self._feeding.start()

    def poll(self) -> int | None:
        """The exit status, or None while the command runs."""
        if self.status is None and _warm().has_ended():
            self.status = _warm().status()
        return self.status

    def finish(self) -> Finished:
        """Wait for its end: the exit status, minus the signal's number if one ended it, and what it wrote."""
        if self.status is None:
            self.status = _warm().status()
        if self._feeding is not None:
            self._feeding.join()
        texts = []
        for file in self._outputs:
            with file:
                file.seek(0)
                texts.append(file.read())
        return Finished(self.command, self.status, *texts)


def good(ended: Finished) -> str:
    """What a command that must succeed wrote on stdout."""
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def bad(ended: Finished, status: int) -> str:
    """The sentence of a command that must fail: one line on stderr, nothing on stdout."""
    assert ended.returncode == status, ended.stderr.decode()
    assert ended.stdout == b""
    [line] = ended.stderr.decode().splitlines()
    assert line.startswith("nmt: ")
    return line.removeprefix("nmt: ")


class Warm:
    """The process that forks, as seen from the tests. It ends when they do: the socket is then closed."""

    def __init__(self) -> None:
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link.settimeout(SECONDS)
        code = "import sys; from tests.commands import serve; serve(int(sys.argv[1]))"
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
            )

    def start(self, command: Sequence[str], files: Sequence[int], cwd: Path, environment: dict[str, str]) -> int:
        """Start a command with these files as its stdin, stdout and stderr; returns its process id."""
        request = json.dumps({"command": command, "cwd": str(cwd), "environment": environment})
        socket.send_fds(self.link, [request.encode()], files)
        return int(self.link.recv(100))

    def has_ended(self) -> bool:
        """Whether the status of the command is there."""
        return bool(select.select([self.link], [], [], 0)[0])

    def status(self) -> int:
        """Wait for the exit status of the command; minus the signal's number if one ended it."""
        return int(self.link.recv(100))


@cache
def _warm() -> Warm:
    return Warm()


def _feed(write: int, stdin: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(write, "wb") as pipe:
        pipe.write(stdin)


# --- in the process that forks ------------------------------------------------------------------------------------


def serve(link: int) -> None:
    """Import all that commands import, then run them one by one until nobody can ask for one any more."""
    import torch
    import typer

    import nmt
    from nmt.cli import app

    modules = [module.name for module in pkgutil.walk_packages(nmt.__path__, "nmt.") if "__main__" not in module.name]
    for name in [*modules, *IMPORTED_LATE]:
        importlib.import_module(name)
    torch.optim.Adam([torch.zeros(1)])  # the first optimizer imports torch's compiler, which takes a second
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)  # built once, which takes half of the time of a short command
    weakref.finalize._registry.clear()  # type: ignore[attr-defined] # a command ends what it began, not what is imported:
    atexit.unregister(torch._dynamo.utils.dump_compile_times)  # which took longer than most commands
    gc.freeze()
    with socket.socket(fileno=link) as asked:
        while True:
            message, files, _, _ = socket.recv_fds(asked, 2**20, 3)
            if not message:
                return
            child = os.fork()
            if not child:
                asked.close()
                _become(**json.loads(message), files=files)
            asked.send(str(child).encode())
            for file in files:
                os.close(file)
            _, status = os.waitpid(child, 0)
            asked.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(command: list[str], cwd: str, environment: dict[str, str], files: list[int]) -> NoReturn:
    """Be the command, and end as an interpreter ends."""
    from nmt.cli import main

    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr] # as of a new interpreter
    sys.argv = command
    status: object = 1
    try:
        if command[0] == "-c":
            exec(command.pop(1), {"__name__": "__main__"})
        else:
            main()
        status = 0
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 -- shown as the interpreter shows it
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)
