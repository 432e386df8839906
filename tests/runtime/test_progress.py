"""Long steps show how far they have come: plain lines where nobody watches a terminal, nothing if quiet or quick."""

from collections.abc import Iterator

import pytest

from nmt.runtime.progress import with_progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the module sees."""
    now = [0.0]
    monkeypatch.setattr("nmt.runtime.progress.perf_counter", lambda: now[0])
    return now


def step(clock: list[float], seconds: float, *, quiet: bool = False) -> list[int]:
    """A step of ten items of 100 lines each that takes so many seconds."""

    def items() -> Iterator[int]:
        for number in range(10):
            clock[0] += seconds / 10
            yield number

    return list(with_progress(items(), "encoding", total=1000, unit="lines", quiet=quiet, size=lambda _: 100))


def test_a_long_step_has_a_line_every_half_minute_and_at_the_end(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert step(clock, 100) == list(range(10))
    assert capsys.readouterr().err.splitlines() == [
        "nmt: encoding: 400 of 1,000 lines, 10 lines/s, 60 s left",
        "nmt: encoding: 800 of 1,000 lines, 10 lines/s, 20 s left",
        "nmt: encoding: 1,000 of 1,000 lines, 10 lines/s",
    ]


def test_a_quick_or_quiet_step_has_none(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    step(clock, 1.5)
    step(clock, 100, quiet=True)
    assert capsys.readouterr().err == ""
