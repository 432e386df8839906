"""Counts and figures as people read them."""

from urllib.error import URLError

import pytest

from nmt.runtime.wording import counted, did_you_mean, reason


@pytest.mark.parametrize(
    ("count", "noun", "expected"),
    [
        (0, "line", "0 lines"),
        (1, "line", "1 line"),
        (2, "thread", "2 threads"),
        (12_345, "sentence pair", "12,345 sentence pairs"),
    ],
)
def test_a_noun_agrees_with_its_count(count: int, noun: str, expected: str) -> None:
    assert counted(count, noun) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("two\nlines."), "two lines"),
        (EOFError(), "EOFError"),
        (FileNotFoundError(2, "No such file or directory", "x"), "No such file or directory"),
        (URLError(ConnectionRefusedError(111, "Connection refused")), "[Errno 111] Connection refused"),
    ],
)
def test_the_reason_of_an_error_is_one_line(error: Exception, expected: str) -> None:
    assert reason(error) == expected


def test_the_nearest_name_is_suggested_and_other_advice_where_none_is_near() -> None:
    assert did_you_mean("colr", ["size", "color"]) == "; did you mean 'color'?"
    assert did_you_mean("colr", ["size", "kind"]) == "."
    assert did_you_mean("colr", ["size", "kind"], "; there are size, kind.") == "; there are size, kind."
    assert did_you_mean("colr", ["color"], cutoff=0.95) == "."
