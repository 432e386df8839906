"""Texts are cut into lines and put together again."""

import pytest

from nmt.serving.texts import split_lines


@pytest.mark.parametrize(
    ("text", "lines", "result"),
    [
        ("", [], ""),
        ("a b", ["a b"], "A B"),
        ("a\n\nb\r\nc\n", ["a", "b", "c"], "A\n\nB\r\nC\n"),
        ("\n  \nb a", ["b a"], "\n  \nB A"),
    ],
)
def test_line_ends_and_blank_lines_are_kept(text: str, lines: list[str], result: str) -> None:
    split = split_lines(text)
    assert split.lines == lines
    assert split.join([line.upper() for line in split.lines]) == result
