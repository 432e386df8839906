"""Confidences of links against counting by hand."""

from nmt.alignment.links import GoldLinks
from nmt.alignment.reliability import reliability

GOLD = [GoldLinks(frozenset({(0, 0)}), frozenset({(1, 1)})), GoldLinks(frozenset({(2, 0)}), frozenset())]
LINKS = [{(0, 0): 0.95, (1, 1): 0.97, (0, 1): 0.55}, {(2, 0): 1.0, (0, 0): 0.98}]


def test_a_table_of_classes_and_their_error() -> None:
    assert reliability(LINKS, GOLD).splitlines() == [
        "confidence     links    mean  correct",
        "0.50-0.60          1   55.0%     0.0%",
        "0.95-0.99          3   96.7%    66.7%",  # an edge belongs to the class above it
        "0.99-1.00          1  100.0%   100.0%",
        "expected calibration error 29.0%",  # (0.55 + 3 |2.9/3 - 2/3|) / 5
    ]
    assert reliability([{}], GOLD[:1]).splitlines()[1:] == ["expected calibration error 0.0%"]
