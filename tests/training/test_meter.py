"""The time left follows the recent speed, not the mean since the start."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from nmt.training import meter
from nmt.training.meter import LossStats, Meter

Wait = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """A function that lets time pass for a meter."""
    now = [100.0]
    monkeypatch.setattr(meter, "time", SimpleNamespace(monotonic=lambda: now[0]))  # not the clock of other threads

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def updates(timed: Meter, wait: Wait, *seconds: float) -> None:
    for each in seconds:
        wait(each)
        timed.add(LossStats(tokens=6, nll=3.0))


def seconds_left(timed: Meter, updates: int, validate_every: float = 100) -> float:
    return timed.times(updates, validate_every=validate_every)["seconds_left"]


def test_the_first_updates_have_equal_weight(wait: Wait) -> None:
    timed = Meter()
    updates(timed, wait, 1.0, 2.0, 3.0)
    assert seconds_left(timed, 10) == pytest.approx(20.0)


def test_the_estimate_follows_a_slower_machine_within_a_few_hundred_updates(wait: Wait) -> None:
    timed = Meter()
    updates(timed, wait, *[0.1] * 2000, *[0.4] * 300)
    assert seconds_left(timed, 1000) == pytest.approx(400, rel=0.05)  # the mean since the start says 139


def test_a_validation_counts_as_time_but_not_for_the_speed(wait: Wait) -> None:
    timed = Meter()
    updates(timed, wait, 0.5)
    with timed.validation():
        wait(20.0)
    updates(timed, wait, 0.5)
    assert timed.times(100, validate_every=50) == pytest.approx(
        {"tokens_per_second": 12.0, "seconds": 21.0, "seconds_left": 100 * 0.5 + 2 * 20}
    )
    assert timed.losses() == pytest.approx({"loss": 0.5, "perplexity": 2.718281828**0.5})


def test_a_resumed_run_measures_its_speed_since_the_last_line_of_the_log(wait: Wait) -> None:
    stopped, resumed = Meter(), Meter()
    updates(stopped, wait, 1.0)
    stopped.reset()
    updates(stopped, wait, 0.5, 0.5, 0.5)
    resumed.load_state_dict(stopped.state_dict())
    wait(1000.0)
    resumed.start()
    updates(resumed, wait, 0.5)
    assert resumed.times(1, validate_every=1)["tokens_per_second"] == pytest.approx(12.0)


def test_a_state_has_the_losses_and_the_time(wait: Wait) -> None:
    timed, other = Meter(), Meter()
    wait(2.0)
    timed.add(LossStats(6, 3.0, 2.0, 4))
    other.load_state_dict(timed.state_dict())
    assert (
        other.losses()
        == timed.losses()
        == pytest.approx({"loss": 0.5, "perplexity": 1.6487, "alignment_loss": 0.5}, abs=1e-4)
    )
    assert other.seconds == 2.0
    other.reset()
    assert other.stats == LossStats()
