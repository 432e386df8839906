"""Errors and exit status of all commands: results on stdout, one sentence on stderr if something fails."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from nmt.cli.help import OverviewHelp, ReadableHelp
from nmt.errors import DataError, NmtError
from nmt.runtime.cache import home_folder
from nmt.runtime.files import discard
from nmt.training.stopping import ending_signals, handling

BROKEN_PIPE = 128 + 13
"""The exit status of a program ended by SIGPIPE."""

_Misuse: type[Exception] = typer.BadParameter.__bases__[0]
"""The base class of errors in options and arguments, which typer does not export."""


class Command(ReadableHelp, TyperCommand):
    """A command."""


class SubCommands(ReadableHelp, TyperGroup):
    """A subgroup of commands; without COMMAND it runs `list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, `list` if there are none."""
        return super().parse_args(ctx, args or ["list"])


class Commands(OverviewHelp, TyperGroup):
    """The group of all commands. It prints an `NmtError` as one sentence, or with `NMT_DEBUG=1` its traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line and exit: 0 is success, 1 a problem with data, 2 a wrong command."""
        try:
            sys.exit(self._status(*args, **{**extra, "prog_name": "nmt", "standalone_mode": False}))
        finally:
            _drop_unwritable_messages()

    def _status(self, *args: Any, **extra: Any) -> int:
        try:
            _check_current_folder()
            os.environ.setdefault("HOME", str(home_folder()))  # libraries keep settings and caches there
            # a signal without a handler would leave unfinished files behind
            signals = [number for number in ending_signals() if signal.getsignal(number) == signal.SIG_DFL]
            with handling(signals, lambda number: sys.exit(128 + number)):
                status = super().main(*args, **extra)
        except NmtError as error:
            if os.environ.get("NMT_DEBUG"):
                raise
            return _print_error(str(error), error.exit_status)
        except _Misuse as error:
            return _print_error(_usage_sentence(error), 2)
        return status if isinstance(status, int) else 0

    def invoke(self, ctx: Any) -> Any:
        """Run the command and flush its output."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as error:
            if sys.stdout is not None:
                discard(sys.stdout.fileno())  # so that buffered output does not fail again at exit
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(BROKEN_PIPE) from None
            what = f"use {error.filename}" if error.filename else "write to standard output"
            raise DataError(f"Cannot {what}: {error.strerror or error}.") from error
        return result


def _drop_unwritable_messages() -> None:
    """Drop messages that a full disk has kept in the buffer: Python would end with status 120 because of them."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        discard(sys.stderr.fileno())


def _check_current_folder() -> None:
    """Raise DataError if the current folder was deleted, where PyTorch cannot find its own libraries."""
    try:
        Path.cwd()
    except OSError as error:
        raise DataError(f"Cannot use the current folder: {error.strerror or error}. Change to another one.") from None


def _usage_sentence(error: Any) -> str:
    """The error message for a wrong command line, with a pointer to the help."""
    sentence = str(error.format_message()).rstrip()
    command = error.ctx.command_path if error.ctx else "nmt"
    return f"{sentence}{'' if sentence.endswith(('.', '?')) else '.'} See `{command} --help`."


def _print_error(sentence: str, status: int) -> int:
    print(f"nmt: {sentence}", file=sys.stderr)
    return status
