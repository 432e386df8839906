"""The time left follows the recent speed, not the mean since the start."""

import pytest

from nmt.training.pace import Pace


def test_the_first_updates_have_equal_weight() -> None:
    pace = Pace()
    for seconds in (1.0, 2.0, 3.0):
        pace.add_update(seconds)
    assert pace.seconds_left(10, validate_every=100) == pytest.approx(20.0)


def test_the_estimate_follows_a_slower_machine_within_a_few_hundred_updates() -> None:
    pace = Pace()
    for _ in range(2000):
        pace.add_update(0.1)
    for _ in range(300):
        pace.add_update(0.4)
    assert pace.seconds_left(1000, validate_every=100) == pytest.approx(
        400, rel=0.05
    )  # the mean since the start says 139


def test_future_validations_take_as_long_as_the_last_one() -> None:
    pace = Pace()
    pace.add_update(0.5)
    pace.validation = 20.0
    assert pace.seconds_left(100, validate_every=50) == pytest.approx(100 * 0.5 + 2 * 20)
