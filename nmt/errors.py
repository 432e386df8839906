"""The two ways a command can fail because of what it was given; everything else is a bug and shows its traceback."""

_LONGEST = 2000


class NmtError(Exception):
    """One clear sentence for the person at the command line: what is wrong, where, and what to do.

    It stays one line of printable characters, whatever names and values from a file it quotes, and is cut where it gets long.
    """

    exit_status = 1

    def __init__(self, sentence: str) -> None:
        shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in sentence[: 2 * _LONGEST])
        super().__init__(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ...")


class DataError(NmtError):
    """A file, folder or line of text cannot be used as it is (exit status 1)."""


class UsageError(NmtError):
    """The command, an option or a recipe asks for something that cannot be (exit status 2)."""

    exit_status = 2
