"""Counts and figures as people read them."""

from urllib.error import URLError

import pytest

from nmt.runtime.wording import counted, did_you_mean, reason


def test_a_noun_agrees_with_its_count() -> None:
    assert (counted(0, "line"), counted(1, "line"), counted(12_345, "line")) == ("0 lines", "1 line", "12,345 lines")


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
