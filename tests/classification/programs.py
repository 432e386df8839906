"""The programs of `recipes/classification`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import command_line
import pytest


@dataclass
class Inside:
    """A program run within the tests, where torch has been imported already."""

    main: Callable[[], None]
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def __call__(self, *arguments: object, status: int = 0) -> tuple[str, str]:
        """Run it; its standard output and error. It must end with this status."""
        self.patch.setattr(sys, "argv", ["program", *map(str, arguments)])
        try:
            command_line.run(self.main)
            ended: object = 0
        except SystemExit as end:
            ended = end.code
        output, errors = self.capture.readouterr()
        assert ended == status, errors
        return output, errors

    def sentence(self, *arguments: object) -> str:
        """The one sentence of a program that must fail because of its data."""
        output, errors = self(*arguments, status=1)
        assert output == ""
        [line] = errors.splitlines()
        return line


def cells(table: str) -> list[list[str]]:
    """The cells of a table in Markdown, without its header."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")
