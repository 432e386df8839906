"""Live progress as a terminal of a given width shows it."""

import io
import re
import sys
from pathlib import Path

import pytest

from nmt.runtime import progress
from nmt.training.log import Log

RECORD = {
    "epoch": 12,
    "update": 12_345,
    "loss": 5.123,
    "perplexity": 167.0,
    "tokens_per_second": 5700.0,
    "seconds_left": 3600.0,
}
ALL = ["epoch 12", "ppl 167.00", "BLEU 31.20", "5,700 tokens/s", "update 12345", "loss 5.123"]


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        """Without what moves the cursor or gives it colors."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> Terminal:
    """A terminal in the place of stderr; to be called in the test itself, before which pytest sets its own."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    return screen


@pytest.mark.parametrize(("width", "count"), [(140, 6), (80, 4), (60, 2), (40, 1)])
def test_training_shows_the_time_left_at_any_width(
    width: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(monkeypatch, width)
    with Log(tmp_path, updates=100_000, done=0, quiet=False, tensorboard=False) as log:
        log.validated({**RECORD, "bleu": 31.2, "best": True})
        log.advance(RECORD)
    line = screen.text().rsplit("(best)", 1)[1].strip().splitlines()[-1]
    assert re.search(r"12% 1:00:00 left", line)
    assert len(line) <= width
    assert [figure for figure in ALL if figure in line] == ALL[:count]


@pytest.mark.parametrize("width", [80, 60])
def test_other_work_shows_the_time_left_whatever_it_is_called(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, width)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    name = "luong-local-p-general-feed: measuring what it attends to"
    for _ in progress.with_progress(range(1000), name, total=1000, quiet=False):
        pass
    assert re.search(r"[\d,]+/1,000 [-:\d]+ left +luong-local", screen.text())
