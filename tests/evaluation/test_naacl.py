"""Links a line each, as shared tasks wrote them, and gold links in either format."""

import random
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.evaluation.alignment import GoldLinks, write_pharaoh
from nmt.evaluation.naacl import format_naacl, read_gold


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "naacl").write_text("0001 1 1 S\n1 3 2 P\n\n3 2  1\n3 2 2 P 0.75\n")
    (tmp_path / "pharaoh").write_text("0-0 2p1\n\n1-0 1p1\n")
    expected = [
        GoldLinks(frozenset({(0, 0)}), frozenset({(2, 1)})),
        GoldLinks(frozenset(), frozenset()),
        GoldLinks(frozenset({(1, 0)}), frozenset({(1, 1)})),
    ]
    assert read_gold(tmp_path / "naacl") == read_gold(tmp_path / "pharaoh") == expected
    assert read_gold(tmp_path / "naacl", 5) == [*expected, *[GoldLinks(frozenset(), frozenset())] * 2]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    draw = random.Random(2)
    sentences = [frozenset((draw.randrange(9), draw.randrange(9)) for _ in range(count)) for count in (4, 0, 12, 0)]
    text = "".join(format_naacl(links, number) for number, links in enumerate(sentences, start=1))
    (tmp_path / "naacl").write_text(text)
    write_pharaoh(tmp_path / "pharaoh", sentences)
    assert [item.sure for item in read_gold(tmp_path / "naacl", 4)] == sentences
    assert [item.sure for item in read_gold(tmp_path / "pharaoh", 4)] == sentences


def test_the_empty_word_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "naacl").write_text("1 0 1 S\n1 1 0 P\n1 2 2 S\n")
    assert read_gold(tmp_path / "naacl") == [GoldLinks(frozenset({(1, 1)}), frozenset())]


@pytest.mark.parametrize(
    ("text", "sentences", "sentence"),
    [
        ("1 1 1 S\n1 1 x\n", None, "line 2: '1 1 x' is not a link"),
        ("1 1 1 S\n3 1 1 S\n", 2, "line 2: there is no sentence pair 3"),
        ("0 1 1 S\n", None, "line 1: there is no sentence pair 0"),
        ("0-0\n0-0\n", 3, "has 2 lines of links for 3 sentence pairs"),
        ("0-0\n1 1 1 S\n", None, "line 2: '1' is not a link"),
    ],
)
def test_gold_links_that_cannot_be_used(tmp_path: Path, text: str, sentences: int | None, sentence: str) -> None:
    (tmp_path / "gold").write_text(text)
    with pytest.raises(DataError) as caught:
        read_gold(tmp_path / "gold", sentences)
    assert sentence in str(caught.value)
