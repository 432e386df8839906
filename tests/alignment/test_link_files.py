"""Files of links: a line a sentence pair (Pharaoh), or a line a link as shared tasks wrote them; gold links in either."""

from pathlib import Path

import pytest

from nmt.alignment.link_files import format_pharaoh, parse_pharaoh, read_gold
from nmt.alignment.links import GoldLinks
from nmt.errors import DataError

# --- Pharaoh format ---------------------------------------------------------------------------------------------


def test_a_line_of_pharaoh_links() -> None:
    gold = parse_pharaoh("0-0  1?2 10-3 1-1", "here")
    assert gold == parse_pharaoh("0-0  1p2 10-3 1-1", "here")
    assert gold.sure == {(0, 0), (10, 3), (1, 1)}
    assert gold.possible - gold.sure == {(1, 2)}
    assert format_pharaoh(gold) == "0-0 1-1 1p2 10-3"
    assert format_pharaoh({(2, 0), (0, 1)}) == "0-1 2-0"


# --- either format ----------------------------------------------------------------------------------------------


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    """Links of the empty word, 0, are left out."""
    (tmp_path / "naacl").write_text("0001 1 1 S\n1 0 1 S\n1 1 0 P\n1 3 2 P\n\n3 2  1\n3 2 2 P 0.75\n")
    (tmp_path / "pharaoh").write_text("0-0 2p1\n\n1-0 1p1\n")
    expected = [
        GoldLinks(frozenset({(0, 0)}), frozenset({(2, 1)})),
        GoldLinks(frozenset(), frozenset()),
        GoldLinks(frozenset({(1, 0)}), frozenset({(1, 1)})),
    ]
    assert read_gold(tmp_path / "naacl") == read_gold(tmp_path / "pharaoh") == expected
    assert read_gold(tmp_path / "naacl", 5) == [*expected, *[GoldLinks(frozenset(), frozenset())] * 2]


NAACL = "1 1 1 S\n"


@pytest.mark.parametrize(
    ("content", "sentences", "complaint"),
    [
        *[
            (f"0-0\n1-1 {token}\n", None, f"line 2: '{token}' is not a link")
            for token in ("0", "a-b", "1--2", "²-1", "0P1")
        ],
        ("0-0\n0-0\n", 3, "has 2 lines of links for 3 sentence pairs"),
        (f"0-0\n{NAACL}", None, "line 2: '1' is not a link"),
        (f"{NAACL}1 1 x\n", None, "line 2: '1 1 x' is not a link"),
        (f"{NAACL}3 1 1 S\n", 2, "line 2: there is no sentence pair 3"),
        ("0 1 1 S\n", None, "line 1: there is no sentence pair 0"),
        (b"0-0\n\xff\xfe", None, "line 2: not valid UTF-8"),
        (None, None, "No such file"),
    ],
)
def test_gold_links_that_cannot_be_used(
    tmp_path: Path, content: str | bytes | None, sentences: int | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / "gold").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        read_gold(tmp_path / "gold", sentences)
    assert str(tmp_path / "gold") in str(caught.value)
    assert complaint in str(caught.value)
