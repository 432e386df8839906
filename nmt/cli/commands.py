"""How every command ends: results on stdout, one sentence on stderr when something is wrong, an exit status that says which."""

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from nmt.errors import NmtError

INTERRUPTED, BROKEN_PIPE = 128 + 2, 128 + 13
"""What shells report for programs that SIGINT or SIGPIPE ended."""


class Commands(TyperGroup):
    """The group of all commands; turns errors meant for people into a sentence. `NMT_DEBUG=1` shows tracebacks instead."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        if os.environ.get("NMT_DEBUG"):
            return super().invoke(ctx)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except NmtError as error:
            _complain(str(error))
            raise typer.Exit(error.exit_status) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read the output has gone, and what is still buffered must not complain about it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(BROKEN_PIPE) from None
        return result


def _complain(sentence: str) -> None:
    print(f"nmt: {sentence}", file=sys.stderr)
