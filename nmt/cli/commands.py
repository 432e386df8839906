"""Help, errors and exit status of all commands: results on stdout, one error message on stderr if something fails."""

import os
import signal
import sys
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from nmt.errors import DataError, NmtError
from nmt.training.stopping import ending_signals, handling

BROKEN_PIPE = 128 + 13
"""The exit status of a program ended by SIGPIPE."""

_Misuse: type[Exception] = typer.BadParameter.__bases__[0]
"""The base class of errors in options and arguments, which typer does not export."""


class Command(TyperCommand):
    """A command, whose docstring is its help."""

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **{**extra, "help": _markup(extra["help"] or "")})


class SubCommands(TyperGroup):
    """A subgroup of commands; without COMMAND it runs `list`."""

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **{**extra, "help": _markup(extra["help"] or "")})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, `list` if there are none."""
        return super().parse_args(ctx, args or ["list"])


class Commands(TyperGroup):
    """The group of all commands. It prints an `NmtError` as one message, or with `NMT_DEBUG=1` its traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line and exit: 0 is success, 1 a problem with data, 2 a wrong command."""
        # a signal without a handler would leave unfinished files behind
        signals = [number for number in ending_signals() if signal.getsignal(number) == signal.SIG_DFL]
        try:
            with handling(signals, lambda number: sys.exit(128 + number)):
                status = super().main(*args, **{**extra, "prog_name": "nmt", "standalone_mode": False})
        except NmtError as error:
            if os.environ.get("NMT_DEBUG"):
                raise
            print(f"nmt: {error}", file=sys.stderr)
            status = error.exit_status
        except _Misuse as error:
            print(f"nmt: {_usage_message(error)}", file=sys.stderr)
            status = 2
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command and flush its output."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as error:
            if sys.stdout is not None:
                nowhere = os.open(os.devnull, os.O_WRONLY)  # so that buffered output does not fail again at exit
                os.dup2(nowhere, sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(BROKEN_PIPE) from None
            what = f"use {error.filename}" if error.filename else "write to standard output"
            raise DataError(f"Cannot {what}: {error.strerror or error}.") from error
        return result


def _markup(docstring: str) -> str:
    """The text that typer shows of a docstring: examples line by line, paragraphs filled to the width of the terminal."""
    blocks = []
    for block in cleandoc(docstring).replace("[", r"\[").split("\n\n"):
        heading, _, lines = block.partition("\n")
        if heading in ("Examples:", "Details:"):
            blocks.append("\n".join([f"[bold]{heading[:-1]}[/bold]", *([lines] if lines else [])]))
        else:
            blocks.append(" ".join(block.split()))
    return "\n\n".join(blocks)


def _usage_message(error: Any) -> str:
    """The error message for a wrong command line, with a pointer to the help."""
    message = str(error.format_message()).rstrip()
    command = error.ctx.command_path if error.ctx else "nmt"
    if "extra argument" in message:
        message += ": put quotes around patterns with braces, which the shell takes apart"
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} See `{command} --help`."
