"""Errors caused by the user's data or command. Any other exception is a bug and shows its traceback."""

_LONGEST = 2000


class NmtError(Exception):
    """An error whose message says to the user what is wrong, where, and what to do.

    The message is one line: non-printable characters are escaped, and a long message is cut.
    """

    exit_status = 1

    def __init__(self, message: str) -> None:
        line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message[: 2 * _LONGEST])
        super().__init__(line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ...")


class DataError(NmtError):
    """A file, folder or line of text cannot be used as it is (exit status 1)."""


class UsageError(NmtError):
    """A command, an option or a recipe asks for something impossible (exit status 2)."""

    exit_status = 2
