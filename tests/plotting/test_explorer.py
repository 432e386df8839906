"""The page as a text: what is in it, what cannot break out of it, and how large it gets."""

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from nmt.alignment.links import GoldLinks, argmax_links
from nmt.alignment.weights import Alignment
from nmt.errors import DataError
from nmt.plotting.explorer import Explored, Reading, explorer_page

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "&amp;&lt;",
    '"\\',
    "{{script}}",
    "\u2028\u2029\x00\x7f",
    "ליל",
    "🂡",
    "\udc80",
)


def reading(source: str, target: str, *, seed: int = 0, **figures: float) -> Reading:
    """Random weights between the words, and between halves of words."""
    sides = source.split(), target.split()
    halves = [[half for word in side for half in (word[:2], word[2:]) if half] for side in sides]
    words, tokens = (_random(*units, seed=seed) for units in (sides, halves))
    return Reading(words, tokens, argmax_links(words.weights), figures)


def _random(source: list[str], target: list[str], *, seed: int) -> Alignment:
    weights = np.random.default_rng(seed).dirichlet(np.full(max(len(source), 1), 0.3), len(target))
    return Alignment(weights[:, : len(source)], tuple(source), tuple(target))


def data_of(page: str) -> Any:
    """What a browser reads from the page's block of data: raw text up to the first end tag."""
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script', page, re.DOTALL)[0])


class Parsed(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_data_come_back_as_they_were() -> None:
    gold = GoldLinks(frozenset({(0, 1)}), frozenset({(2, 0)}))
    shown = [
        Explored(3, (reading("abc b c", "x y", bleu=12.345678, entropy=float("nan")),), "r s", gold),
        Explored(7, (reading("d", ""),)),
    ]
    data = data_of(explorer_page(shown, ["one"], languages=("en", "de")))
    assert data["models"] == ["one"]
    assert data["languages"] == ["en", "de"]
    first, second = data["sentences"]
    assert (first["number"], first["reference"]) == (3, "r s")
    assert first["gold"] == {"sure": [[0, 1]], "possible": [[2, 0]]}
    [found] = first["readings"]
    assert found["figures"] == {"bleu": 12.3457}
    words = shown[0].readings[0].words
    assert found["words"]["source"] == ["abc", "b", "c"]
    assert found["tokens"]["source"] == ["ab", "c", "b", "c"]
    weights = np.array(found["words"]["weights"]) / 1000
    assert (np.abs(weights - words.weights) <= np.where(words.weights < 0.001, 0.001, 0.0005)).all()
    assert ((weights == 0) == (words.weights == 0)).all()
    assert {tuple(link) for link in found["links"]} == argmax_links(words.weights)
    assert second["gold"] is None
    assert second["readings"][0]["words"]["weights"] == []
    assert second["readings"][0]["tokens"] is None  # the same as the words


def test_hostile_text_stays_text() -> None:
    plain = explorer_page([Explored(1, (reading("a", "b"),))], ["m"], title="t")
    words = _random(list(HOSTILE), list(HOSTILE), seed=1)
    text = " ".join(HOSTILE)
    page = explorer_page([Explored(1, (Reading(words, words),), text)], [text], title=text)
    assert [tag for tag, _ in Parsed(page).found] == [tag for tag, _ in Parsed(plain).found]
    data = data_of(page)
    shown = text.replace("\udc80", "?")  # which no file can hold
    assert data["models"] == [shown]
    assert data["sentences"][0]["readings"][0]["words"]["source"] == [*HOSTILE[:-1], "?"]
    assert data["sentences"][0]["reference"] == shown


def test_the_page_needs_nothing_else_and_may_run_nothing_else() -> None:
    page = explorer_page([Explored(1, (reading("a", "b"),))], ["m"])
    elements = Parsed(page).found
    assert not [
        name for _, attributes in elements for name in attributes if name in {"src", "href"} or name[:2] == "on"
    ]
    assert not re.search(
        r"@import|url\(|fetch\(|XMLHttp|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", page
    )
    assert set(re.findall(r"https?://[\w./]+", page)) <= {"http://www.w3.org/2000/svg"}
    [policy] = [attributes["content"] for tag, attributes in elements if tag == "meta" and "http-equiv" in attributes]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", 'script type="module"'):
        [content] = re.findall(f"<{tag}>(.*?)</", page, re.DOTALL)
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_what_cannot_be_a_page_is_said() -> None:
    with pytest.raises(DataError, match="no sentences"):
        explorer_page([], ["m"])
    outside = GoldLinks(frozenset({(0, 1)}), frozenset())
    with pytest.raises(DataError, match="line 1: the link 0-1 lies beyond"):
        explorer_page([Explored(1, (reading("a", "b"),), "b", outside)], ["m"])
