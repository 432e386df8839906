"""How every command ends: results on stdout, one sentence on stderr when something is wrong, an exit status that says which."""

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from nmt.errors import DataError, NmtError

BROKEN_PIPE = 128 + 13
"""What shells report for programs that SIGPIPE ended."""

_Misuse: type[Exception] = typer.BadParameter.__bases__[0]
"""Options or arguments that do not fit a command; typer exports the class only by way of this one."""


class Commands(TyperGroup):
    """The group of all commands; turns errors meant for people into a sentence. `NMT_DEBUG=1` shows tracebacks instead."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line and exit: 0 is success, 1 data that cannot be used, 2 a command that makes no sense."""
        sys.exit(self._status(*args, **{**extra, "prog_name": "nmt", "standalone_mode": False}))

    def _status(self, *args: Any, **extra: Any) -> int:
        try:
            status = super().main(*args, **extra)
        except NmtError as error:
            if os.environ.get("NMT_DEBUG"):
                raise
            return _complain(str(error), error.exit_status)
        except _Misuse as error:
            return _complain(_usage_sentence(error), 2)
        return status if isinstance(status, int) else 0

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command, and make sure that its output has arrived."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as error:
            if sys.stdout is not None:  # what is still buffered must not complain again at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(BROKEN_PIPE) from None
            raise DataError(f"{_place(error)}: {error.strerror or error}.") from error
        return result


def _place(error: OSError) -> str:
    return f"Cannot use {error.filename}" if error.filename else "Cannot write to standard output"


def _usage_sentence(error: Any) -> str:
    """What is wrong with the command line, and where to read how it should be."""
    sentence = str(error.format_message()).rstrip()
    command = error.ctx.command_path if error.ctx else "nmt"
    return f"{sentence}{'' if sentence.endswith(('.', '?')) else '.'} See `{command} --help`."


def _complain(sentence: str, status: int) -> int:
    print(f"nmt: {sentence}", file=sys.stderr)
    return status
