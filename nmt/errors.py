"""The two ways a command can fail because of what it was given; everything else is a bug and shows its traceback."""


class NmtError(Exception):
    """One clear sentence for the person at the command line: what is wrong, where, and what to do."""

    exit_status = 1


class DataError(NmtError):
    """A file, folder or line of text cannot be used as it is (exit status 1)."""


class UsageError(NmtError):
    """The command, an option or a recipe asks for something that cannot be (exit status 2)."""

    exit_status = 2
