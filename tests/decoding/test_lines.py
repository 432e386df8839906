"""Lines are read ahead in groups."""

from nmt.decoding.lines import read_ahead


def test_a_window_also_closes_at_a_number_of_characters() -> None:
    groups = list(read_ahead(["x" * 200_000] * 5, 100, size=len))
    assert [len(group) for group in groups] == [2, 2, 1]
