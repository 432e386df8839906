"""Which functions of the package a piece of work calls, for the lists of nmt/README.md."""

from __future__ import annotations

import re
from pathlib import Path
from types import FrameType

import nmt

PACKAGE = Path(nmt.__file__).parent


class Calls:
    """Collects calls with `sys.setprofile(calls.note)`: all but comprehensions and the inside of some packages.

    Args:
        inside: packages whose functions count only where another package calls them.
        without: packages whose functions do not count, but what they call does.
    """

    def __init__(self, *, inside: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> None:
        self.functions: set[tuple[str, str]] = set()
        """The file, relative to the package, and the name of each."""
        self._inside, self._without = (tuple(f"{PACKAGE}/{name}/" for name in names) for names in (inside, without))

    def note(self, frame: FrameType, event: str, _: object) -> None:
        code, caller = frame.f_code, frame.f_back
        file = code.co_filename
        if (
            event != "call"
            or not file.startswith(f"{PACKAGE}/")
            or file.startswith(self._without)
            or "<" in code.co_name
        ):
            return
        while caller is not None:
            if caller.f_code.co_filename.startswith(self._inside):
                return
            caller = caller.f_back
        self.functions.add((file.removeprefix(f"{PACKAGE}/"), code.co_name))

    def check_listed(self, start: str) -> None:
        """Check that the list of the README which starts so names all of them, and says how many there are."""
        page = (PACKAGE / "README.md").read_text(encoding="utf-8")
        said, listed = page.partition(start)[2].split("```")[:2]
        names = {name for _, name in self.functions}
        assert names == {name for name in names if re.search(rf"\b{name}\b", listed)}
        count = f"{len(self.functions)} in {len({file for file, _ in self.functions})} files"
        assert said.startswith(count), count
