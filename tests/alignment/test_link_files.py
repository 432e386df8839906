"""Files of links: a line a sentence pair (Pharaoh), or a line a link as shared tasks wrote them; gold links in either."""

import random
from pathlib import Path

import pytest

from nmt.alignment.link_files import format_pharaoh, parse_pharaoh, read_gold
from nmt.alignment.links import GoldLinks
from nmt.errors import DataError

# --- Pharaoh format ---------------------------------------------------------------------------------------------


def test_a_line_of_pharaoh_links() -> None:
    gold = parse_pharaoh("0-0  1p2 10-3 1-1", "here")
    assert gold.sure == {(0, 0), (10, 3), (1, 1)}
    assert gold.possible - gold.sure == {(1, 2)}
    assert format_pharaoh(gold) == "0-0 1-1 1p2 10-3"
    assert format_pharaoh({(2, 0), (0, 1)}) == "0-1 2-0"


@pytest.mark.parametrize("token", ["0", "a-b", "1--2", "1-2-3", "²-1", "0P1"])
def test_a_bad_link_is_named_with_file_and_line(token: str, tmp_path: Path) -> None:
    path = tmp_path / "gold.align"
    path.write_text(f"0-0\n1-1 {token}\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_gold(path)
    assert f"{path}, line 2: '{token}'" in str(caught.value)


def test_files_come_back_unchanged_whatever_their_line_ends(tmp_path: Path) -> None:
    generator = random.Random(1)
    links = [
        GoldLinks(
            frozenset((generator.randrange(50), generator.randrange(50)) for _ in range(count)),
            frozenset((generator.randrange(50), generator.randrange(50)) for _ in range(count)),
        )
        for count in (5, 0, 17, 0)
    ]
    path = tmp_path / "links"
    path.write_text("".join(f"{format_pharaoh(item)}\n" for item in links))
    assert read_gold(path) == links
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_gold(path) == links


def test_a_missing_or_binary_file_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_gold(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"0-0\n\xff\xfe")
    with pytest.raises(DataError, match="binary, line 2: not valid UTF-8"):
        read_gold(tmp_path / "binary")


# --- either format ----------------------------------------------------------------------------------------------


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
