"""`nmt translate` at a terminal, through a pseudo-terminal: prompt, answer, and how it ends."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
from pathlib import Path
from typing import Self

from tests.commands import Running, good, nmt

CONTROL = re.compile(rb"\x1b\[\?[0-9]*[hl]|\r")


class Session:
    """The command at a terminal of its own; its messages go to another pipe."""

    def __init__(self, *arguments: object) -> None:
        self.terminal, theirs = pty.openpty()
        self.seen = b""
        self.process = Running("translate", *arguments, stdin=theirs, stdout=theirs, environment={"TERM": "xterm"})
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.finish()
        os.close(self.terminal)

    def type(self, text: bytes) -> None:
        os.write(self.terminal, text)

    def read_until(self, end: bytes) -> bytes:
        """What is on the screen up to the next `end`."""
        limit = time.monotonic() + 60
        while end not in self.seen:
            assert time.monotonic() < limit, self.seen
            if select.select([self.terminal], [], [], 1)[0]:
                self.seen += CONTROL.sub(b"", os.read(self.terminal, 4096))
        before, self.seen = self.seen.split(end, 1)
        return before


def test_a_line_is_answered_after_the_prompt_until_ctrl_d(model: Path, tmp_path: Path) -> None:
    arguments = ["--n-best", "2", "--alignments"]
    rows = good(nmt("translate", model, *arguments, tmp_path / "links", stdin=b"the dog sees\n")).splitlines()
    words, links = rows[0].split("\t")[2].split(), (tmp_path / "links").read_text().splitlines()[0]
    with Session(model, *arguments, "-") as session:
        assert session.read_until(b"en> ") == b""
        session.type(b"the dog sees\n")
        typed, *answer, best, _ = session.read_until(b"en> ").decode().splitlines()
        assert (typed, answer) == ("the dog sees", rows)
        assert re.sub(r"\(.*?\)", "", best).split() == words
        assert sum(len(linked.split()) for linked in re.findall(r"\((.*?)\)", best)) == len(links.split()) > 0
        session.type(b"\n")
        assert session.read_until(b"en> ").decode().splitlines() == ["", "2\t0.0000\t", "2\t-inf\t"]
        session.type(b"\x04")
        ended = session.process.finish()
    assert ended.returncode == 0
    assert ended.stderr.decode() == f"{model}: en to de. Type a line to translate it; Ctrl-D ends.\n\n"
