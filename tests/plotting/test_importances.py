"""Word importances: shaded text as a page that nothing breaks out of, and bars as a picture."""

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import nmt
from nmt.alignment.weights import Alignment
from nmt.errors import DataError, UsageError
from nmt.plotting.importances import importances_page, plot_importances

WORDS = ("a", "lovely", "dog", "&", "<b>")
TEXT = Alignment(np.array([[0.1, 0.64, 0.25, 0.01, 0.0], [0.2] * 5]), WORDS, ("good", "all <alike>"))
HOSTILE = ("</style><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"onclick="alert(1)', "\ud800", "\x00")


class Page(HTMLParser):
    """The tags of a page, and the style and text of each span."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.shades: list[tuple[str, str]] = []
        self._style: str | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "span":
            self._style = dict(attrs)["style"]

    def handle_data(self, data: str) -> None:
        if self._style is not None:
            self.shades.append((data, self._style))
        self._style = None


def test_the_shade_of_a_word_is_the_square_root_of_its_weight() -> None:
    page = importances_page([TEXT], "Dogs")
    shares = [32, 80, 50, 10, 0, *[45] * 5]
    assert Page(page).shades[-10:] == [
        (word, f"--shade: {share}%") for word, share in zip(WORDS * 2, shares, strict=True)
    ]
    assert re.findall("<h2.*?>(.*)</h2>", page) == ["good", "all &lt;alike&gt;"]


def test_words_captions_and_title_stay_text() -> None:
    hostile = Alignment(np.full((len(HOSTILE), len(HOSTILE)), 0.2), HOSTILE, HOSTILE)
    assert Page(importances_page([hostile], HOSTILE[0])).tags == Page(importances_page([TEXT], "Dogs")).tags


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


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    empty = Alignment(np.zeros((1, 0)), (), ("read",))
    with pytest.raises(DataError, match="a text needs at least one word and one reading"):
        plot_importances(empty, tmp_path / "a.html")
    with pytest.raises(DataError, match="There is nothing to draw"):
        plot_importances([], tmp_path / "a.html")
    with pytest.raises(UsageError, match=r"A picture shows one text, but there are 2: write a \.html\."):
        plot_importances([TEXT, TEXT], tmp_path / "a.png")
    with pytest.raises(UsageError, match=r"end it with one of \.html, \.png, \.pdf, \.svg"):
        plot_importances(TEXT, tmp_path / "a.txt")
    with pytest.raises(UsageError, match="What is drawn must be an Alignment, but is None"):
        plot_importances([None], tmp_path / "a.html")  # type: ignore[list-item]
    assert not list(tmp_path.iterdir())
