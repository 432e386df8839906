"""Confidences of links against counting by hand."""

from __future__ import annotations

import pytest

from nmt.alignment.links import GoldLinks
from nmt.alignment.reliability import reliability

GOLD = [GoldLinks(frozenset({(0, 0)}), frozenset({(1, 1)})), GoldLinks(frozenset({(2, 0)}), frozenset())]
LINKS = [{(0, 0): 0.95, (1, 1): 0.97, (0, 1): 0.55}, {(2, 0): 1.0, (0, 0): 0.98}]


def test_classes_hold_their_links() -> None:
    low, high, highest = reliability(LINKS, GOLD).classes
    assert (low.low, low.high, low.links, low.mean, low.correct) == (0.5, 0.6, 1, 0.55, 0)
    assert (high.low, high.high, high.links) == (0.95, 0.99, 3)  # an edge belongs to the class above it
    assert (high.mean, high.correct) == pytest.approx(((0.95 + 0.97 + 0.98) / 3, 2 / 3))
    assert (highest.links, highest.mean, highest.correct) == (1, 1, 1)


def test_the_calibration_error_weighs_classes_by_their_links() -> None:
    expected = (0.55 + 3 * abs(2.9 / 3 - 2 / 3)) / 5
    assert reliability(LINKS, GOLD).calibration_error == pytest.approx(expected)


def test_the_table_names_each_class() -> None:
    assert str(reliability(LINKS, GOLD)).splitlines() == [
        "confidence     links    mean  correct",
        "0.50-0.60          1   55.0%     0.0%",
        "0.95-0.99          3   96.7%    66.7%",
        "0.99-1.00          1  100.0%   100.0%",
        "expected calibration error 29.0%",
    ]


def test_no_links_have_no_class() -> None:
    assert reliability([{}], GOLD[:1]).classes == ()
    assert reliability([{}], GOLD[:1]).calibration_error == 0
