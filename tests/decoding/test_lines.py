"""Lines are read ahead in groups."""

from nmt.data.pauses import PAUSE, Pause
from nmt.decoding.groups import read_ahead


def test_a_window_also_closes_at_a_number_of_characters() -> None:
    groups = list(read_ahead(["x" * 200_000] * 5, 100, size=len, first=7))
    assert [(first, len(group)) for first, group in groups] == [(7, 2), (9, 2), (11, 1)]


def test_a_pause_closes_a_window_and_an_empty_one_says_so() -> None:
    items: list[str | Pause] = [PAUSE, "a", "b", PAUSE, PAUSE, "c", "d", "e", "f"]
    groups = list(read_ahead(items, 3, size=str.__len__))
    assert groups == [(1, []), (1, ["a", "b"]), (3, []), (3, []), (3, ["c", "d", "e"]), (6, ["f"])]
