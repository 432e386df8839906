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

import pytest

from nmt.alignment.translation import Translation
from nmt.decoding.translator import Translator
from tests.commands import Running
from tests.decoding.test_translator import LINES, bundle

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

    def interrupt(self) -> None:
        """Press Ctrl-C, again if `input` was not yet waiting."""
        for _ in range(60):
            os.kill(self.process.pid, signal.SIGINT)
            until = time.monotonic() + 1
            while time.monotonic() < until:
                if self.process.poll() is not None:
                    return
                time.sleep(0.01)

    def end(self) -> tuple[int, str]:
        """Exit status and messages."""
        ended = self.process.finish()
        return ended.returncode, ended.stderr.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interactive") / "model"
    bundle().save(folder)
    return folder


@pytest.fixture(scope="module")
def translation() -> Translation:
    """Of a line whose translation has several words with links."""
    translations = Translator([bundle()], beam_size=3, n_best=2).translate(
        [line for line in LINES if line.split() and line.isascii()]
    )
    translations = [each for each in translations if len(each.hypotheses) == 2]
    return max(translations, key=lambda each: min(len(each.word_links(0)), len(each.word_links(1))))


def linked(translation: Translation, rank: int) -> str:
    """Each word with the source words of its links, in an order of its own."""
    alignment, links = translation.word_alignment(rank), translation.word_links(rank)
    parts = []
    for target, word in enumerate(alignment.target):
        sources = [alignment.source[source] for source in range(len(alignment.source)) if (source, target) in links]
        parts.append(f"{word}({' '.join(sources)})" if sources else word)
    return f"  {' '.join(parts)}"


def test_a_line_is_answered_after_the_prompt_until_ctrl_d(folder: Path, translation: Translation) -> None:
    with Session(folder, "--n-best", "2", "--alignments", "-") as session:
        assert session.read_until(b"de> ") == b""
        session.type(f"{translation.source}\n".encode())
        best, second = translation.hypotheses
        assert session.read_until(b"de> ").decode().splitlines() == [
            translation.source,  # typed
            f"1\t{best.score:.4f}\t{best.text}",
            f"1\t{second.score:.4f}\t{second.text}",
            linked(translation, 0),
            linked(translation, 1),
        ]
        assert linked(translation, 0).count("(") >= 1
        session.type(b"\n")
        assert session.read_until(b"de> ").decode().splitlines() == ["", "2\t0.0000\t", "2\t-inf\t"]
        session.type(b"\x04")
        status, errors = session.end()
        assert (status, errors) == (0, f"{folder}: de to en. Type a line to translate it; Ctrl-D ends.\n\n")


def test_ctrl_c_ends(folder: Path) -> None:
    with Session(folder) as session:
        session.read_until(b"de> ")
        session.interrupt()
        status, errors = session.end()
        assert status == 130
        assert "Traceback" not in errors
