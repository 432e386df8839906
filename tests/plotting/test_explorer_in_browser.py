"""The page in a headless Chromium, used as a person uses it: pointer, finger, slider, list, light and dark.

Needs a Chromium, which `$NMT_CHROMIUM` or the search path names; without one all is skipped.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.alignment.links import GoldLinks, argmax_links
from nmt.alignment.weights import Alignment
from nmt.plotting.explorer import Explored, Reading, explorer_page

pytestmark = pytest.mark.slow
HOSTILE = "</script><script>document.title='owned'</script>"
LONG = " ".join(f"word{number}" for number in range(40))
Open = Callable[..., Any]

# Weights of "the dog sleeps now" -> "jetzt schläft der Hund": row a target word.
WEIGHTS = [[0, 0, 0.05, 0.95], [0, 0.2, 0.8, 0], [0.9, 0.1, 0, 0], [0.3, 0.7, 0, 0]]
SOURCE, TARGET = "the dog sleeps now", "jetzt schläft der Hund"


def even(source: str, target: str) -> Alignment:
    words = source.split(), target.split()
    return Alignment(np.full((len(words[1]), len(words[0])), 1 / len(words[0])), tuple(words[0]), tuple(words[1]))


def explored(number: int, words: Alignment, models: int, gold: GoldLinks | None = None) -> Explored:
    """A sentence, whose tokens are letters and whose BLEU falls with its number."""
    tokens = even(" ".join("".join(words.source)), " ".join("".join(words.target)))
    figures = {"bleu": {1: 50.0}.get(number, 60.0 - number), "length": len(words.source)}
    reading = Reading(words, tokens, argmax_links(words.weights), figures)
    return Explored(number, (reading,) * models, " ".join(words.target), gold)


def sentences(models: int) -> list[Explored]:
    known = Alignment(np.array(WEIGHTS), tuple(SOURCE.split()), tuple(TARGET.split()))
    hostile = even(f"{HOSTILE} <img src=x onerror=document.title='owned'>", "&lt;b&gt;")
    shown = [known, hostile, even("הכלב ישן עכשיו", "the dog sleeps"), even(LONG, LONG)]
    gold = GoldLinks(frozenset({(3, 0)}), frozenset({(2, 1)}))
    return [explored(number, words, models, gold if words is known else None) for number, words in enumerate(shown, 1)]


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page; whatever it complains of, or asks a network for, fails the test."""
    complaints: list[str] = []

    def visit(*, width: int = 1200, height: int = 900, models: int = 1, address: str = "", **options: Any) -> Any:
        path = tmp_path / "page.html"
        path.write_text(
            explorer_page(sentences(models), ["one", "two"][:models], languages=("en", "de")), encoding="utf-8"
        )
        page = browser.new_context(viewport={"width": width, "height": height}, **options).new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda request: complaints.extend([request.url] * (not request.url.startswith("file:"))))
        page.goto(path.as_uri() + address)
        return page

    yield visit
    assert complaints == []


def lit(page: Any) -> int:
    """Ribbons that can be seen and are not dimmed."""
    return int(page.locator(".ribbon:not([hidden]):not(.dim)").count())


def await_place(page: Any, place: str) -> None:
    """Wait until a sentence is shown: the address changes first."""
    page.wait_for_selector(f"#place:text-is('{place}')")


def test_pointing_at_a_word_lights_up_its_partners_both_ways(visit: Open) -> None:
    page = visit()
    assert lit(page) == 7  # of eight weights, 0.05 is below the threshold
    page.hover(".source .word >> nth=1")
    assert lit(page) == 3
    assert "Hund\u2069 0.70" in page.inner_text(".readout") or "Hund 0.70" in page.inner_text(".readout")
    assert page.locator("thead th.chosen").inner_text() == "dog"
    page.hover(".target .word >> nth=1")
    assert lit(page) == 2
    assert page.locator(".source .word >> nth=2").evaluate("word => word.style.getPropertyValue('--weight')") == "0.8"
    page.hover("td[data-source='3'][data-target='0']")
    assert lit(page) == 1
    page.hover("h1")
    assert lit(page) == 7


def test_a_word_that_is_clicked_is_kept_and_the_slider_hides_weaker_ribbons(visit: Open) -> None:
    page = visit()
    page.click(".target .word >> nth=0")
    page.hover("h1")
    assert lit(page) == 1
    page.keyboard.press("Escape")
    assert lit(page) == 7
    page.locator("#threshold").fill("0.75")
    assert lit(page) == page.locator("td:not(.below)").count() == 3
    assert page.inner_text("#threshold-value") == "0.75"
    page.locator("#threshold").fill("0.01")
    assert lit(page) == 8


def test_every_word_and_sentence_is_reached_by_keys(visit: Open) -> None:
    page = visit()
    page.focus(".source .word >> nth=1")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "sleeps: schläft 0.80, jetzt 0.05"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert lit(page) == 1
    page.focus("#list a >> nth=1")
    page.keyboard.press("Enter")
    await_place(page, "2 / 4")


def test_words_or_subwords_and_gold(visit: Open) -> None:
    page = visit()
    assert page.locator(".gold").count() == 2
    assert page.locator("td.sure").count() == page.locator("td.possible").count() == 1
    page.uncheck("#gold")
    assert page.locator(".gold >> visible=true").count() == 0
    page.click("text=Subwords")
    assert page.locator(".source .word").all_inner_texts() == list("thedogsleepsnow")
    assert page.is_hidden("#gold-choice")
    page.click("text=Words >> nth=0")
    assert page.locator(".source .word").count() == 4


def test_the_list_is_sorted_both_ways(visit: Open) -> None:
    page = visit()
    page.select_option("#sort", label="BLEU")
    numbers = page.locator("#list .number")
    assert numbers.all_inner_texts() == ["1", "4", "3", "2"]
    page.click("#direction")
    assert numbers.all_inner_texts() == ["2", "3", "4", "1"]
    await_place(page, "1 / 4")
    page.select_option("#sort", label="length")
    assert page.locator("#list .figure").all_inner_texts()[0] == "40 words"
    page.click("#list li >> nth=1")
    await_place(page, "2 / 4")


def test_the_search_narrows_the_list(visit: Open) -> None:
    page = visit()
    numbers = page.locator("#list .number")
    page.fill("#search", "SCHLÄFT")  # in the translation, in any case
    assert numbers.all_inner_texts() == ["1"]
    await_place(page, "1 / 1")
    page.fill("#search", "nowhere")
    assert page.is_visible("#nothing")
    assert page.is_disabled("#next")
    assert page.locator(".source .word").count() == 4  # what was shown stays
    page.fill("#search", "word3")
    assert numbers.all_inner_texts() == ["4"]
    page.fill("#search", "")
    await_place(page, "4 / 4")


def test_the_address_names_the_sentence(visit: Open) -> None:
    page = visit(address="#3")
    await_place(page, "3 / 4")
    page.click("#list li >> nth=3")
    await_place(page, "4 / 4")
    assert page.url.endswith("#4")
    page.click("#previous")
    await_place(page, "3 / 4")
    page.go_back()
    await_place(page, "4 / 4")
    await_place(visit(address="#99"), "1 / 4")


def test_a_phone_needs_no_sideways_scrolling_and_a_tap_keeps_a_word(visit: Open) -> None:
    page = visit(width=360, height=740, has_touch=True, is_mobile=True, models=2)
    for number in range(1, 5):
        page.evaluate(f"location.hash = {number}")
        await_place(page, f"{number} / 4")
        assert page.evaluate("document.documentElement.scrollWidth") == 360, number
    assert page.locator(".ribbons.down").count() == 2
    page.tap("#list a >> nth=0")
    await_place(page, "1 / 4")
    page.tap(".target .word >> nth=0")
    assert page.locator(".word.chosen").count() == 2  # the second model follows


def test_text_from_right_to_left_runs_so(visit: Open) -> None:
    page = visit()
    page.click("#list li >> nth=2")
    await_place(page, "3 / 4")
    left = [page.locator(f".source .word >> nth={at}").bounding_box()["x"] for at in range(3)]
    assert left == sorted(left, reverse=True)
    heads = [page.locator(f"thead th >> nth={at}").bounding_box()["x"] for at in (1, 2, 3)]
    assert heads == sorted(heads, reverse=True)


def test_hostile_text_is_shown_and_does_nothing_in_the_dark(visit: Open) -> None:
    page = visit(address="#2", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    assert page.locator(".source .word").all_inner_texts()[0] == HOSTILE
    assert page.locator("img").count() == 0
    assert page.title() == "Alignments"


def test_ribbons_meet_their_words(visit: Open) -> None:
    page = visit()
    ends = page.evaluate(
        """() => [...document.querySelectorAll(".ribbon")].map((path) => {
          const box = path.ownerSVGElement.getBoundingClientRect();
          const middle = (side, at) => {
            const word = document.querySelectorAll(`.${side} .word`)[at].getBoundingClientRect();
            return word.x + word.width / 2 - box.x;
          };
          const end = path.getPointAtLength(path.getTotalLength());
          const [first, last] = [path.getPointAtLength(0).x, end.x];
          return [first - middle("source", path.dataset.source), last - middle("target", path.dataset.target)];
        })"""
    )
    assert len(ends) == 8
    assert np.abs(np.array(ends)).max() < 0.5
