"""Lines are read ahead in groups."""

from nmt.data.pauses import PAUSE, Pause
from nmt.decoding.groups import read_ahead


def test_a_window_also_closes_at_a_number_of_characters() -> None:
    groups = list(read_ahead(["x" * 200_000] * 5, 100, size=len))
    assert [len(group) for group in groups] == [2, 2, 1]


def test_a_pause_closes_a_window_and_an_empty_one_says_so() -> None:
    items: list[str | Pause] = [PAUSE, "a", "b", PAUSE, PAUSE, "c", "d", "e", "f"]
    groups = list(read_ahead(items, 3, size=str.__len__))
    assert groups == [[], ["a", "b"], [], [], ["c", "d", "e"], ["f"]]
