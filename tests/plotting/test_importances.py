"""Word importances: shaded text as a page that nothing breaks out of, and bars as a picture."""

import re
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import nmt
from nmt.alignment.weights import Alignment
from nmt.errors import DataError, UsageError
from nmt.plotting.importances import importances_page, plot_importances
from tests.plotting.test_explorer import Parsed

WORDS = ("a", "lovely", "dog", "&", "<b>")
TEXT = Alignment(np.array([[0.1, 0.64, 0.25, 0.01, 0.0], [0.2] * 5]), WORDS, ("good", "all <alike>"))
HOSTILE = ("</style><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"onclick="alert(1)', "\ud800", "\x00")


def test_the_shade_of_a_word_is_the_square_root_of_its_weight() -> None:
    page = importances_page([TEXT], "Dogs")
    shades = re.findall(r'<span class="\w+" style="--shade: (\d+)%" title="[\d.]+">(.*?)</span>', page)
    shares = [32, 80, 50, 10, 0, *[45] * 5]
    assert shades[-10:] == [(f"{share}", escape(word)) for word, share in zip(WORDS * 2, shares, strict=True)]
    assert re.findall("<h2.*?>(.*)</h2>", page) == ["good", "all &lt;alike&gt;"]


def test_words_captions_and_title_stay_text() -> None:
    hostile = Alignment(np.full((len(HOSTILE), len(HOSTILE)), 0.2), HOSTILE, HOSTILE)
    pages = importances_page([hostile], HOSTILE[0]), importances_page([TEXT], "Dogs")
    found, expected = ({tag for tag, _ in Parsed(page).found} for page in pages)
    assert found == expected


def test_a_page_and_pictures_are_written_by_suffix(tmp_path: Path) -> None:
    for name in ("a.html", "a.png", "a.svg", "a.pdf"):
        nmt.plot_importances(TEXT, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        nmt.plot_importances(TEXT, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    assert (tmp_path / "a.html").read_bytes().startswith(b"<!doctype html>")


def test_a_picture_has_the_words_once_and_a_number_at_each_bar_that_can_be_seen(tmp_path: Path) -> None:
    plot_importances(TEXT, tmp_path / "a.svg")
    drawn = [
        "".join(node.itertext()) for node in ElementTree.parse(tmp_path / "a.svg").iter() if node.tag.endswith("}text")
    ]
    assert [word for word in drawn if word in WORDS] == list(WORDS)
    assert {"good", "all <alike>"} <= set(drawn)
    assert sorted(text for text in drawn if text.startswith("0.")) == ["0.10", *["0.20"] * 5, "0.25", "0.64"]


@pytest.mark.parametrize(
    ("texts", "name", "error", "complaint"),
    [
        (
            Alignment(np.zeros((1, 0)), (), ("read",)),
            "a.html",
            DataError,
            "a text needs at least one word and one reading",
        ),
        ([], "a.html", DataError, "There is nothing to draw"),
        ([TEXT, TEXT], "a.png", UsageError, r"A picture shows one text, but there are 2: write a \.html\."),
        (TEXT, "a.txt", UsageError, r"end it with one of \.html, \.png, \.pdf, \.svg"),
        ([None], "a.html", UsageError, "What is drawn must be an Alignment, but is None"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    tmp_path: Path, texts: Any, name: str, error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        plot_importances(texts, tmp_path / name)
    assert not list(tmp_path.iterdir())
