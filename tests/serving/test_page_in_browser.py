"""The page of the server in a headless Chromium, used as a person uses it, and judged by axe-core.

Needs a Chromium (see `tests/conftest.py`).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from nmt.serving.app import App
from nmt.serving.server import bind, configure
from nmt.serving.worker import Worker
from tests.serving.fakes import MODELS, decode, wait_until

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=document.title='owned'> </textarea><script>document.title='owned'</script>"
Open = Callable[..., Any]


@contextmanager
def serving(**options: Any) -> Iterator[int]:
    """A server of functions in a thread; yields its port."""
    with bind("127.0.0.1", 0) as listener, Worker(decode) as worker:
        server = uvicorn.Server(configure(App(MODELS[:2], worker, **options).asgi, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_until(lambda: server.started)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with serving() as port:
        yield port


@pytest.fixture
def visit(browser: Any, server: int) -> Iterator[Open]:
    """Opens the page; whatever it complains of, or asks another host for, fails the test."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def note_message(message: Any) -> None:
        if message.type in ("error", "warning") and "the server responded with" not in message.text:
            complaints.append(message.text)

    def visit(*, port: int = server, width: int = 1200, height: int = 900, **options: Any) -> Any:
        def note_request(request: Any) -> None:
            if not request.url.startswith((address, "blob:", "data:")):
                complaints.append(request.url)

        address = f"http://127.0.0.1:{port}/"
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", note_message)
        page.on("request", note_request)
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


def type_text(page: Any, text: str, translation: str) -> None:
    """Type into the source and wait for the translation."""
    page.fill("#q", text)
    await_translation(page, translation)


def await_translation(page: Any, translation: str, column: int = 0) -> None:
    page.wait_for_function(
        "([id, text]) => document.getElementById(id).value === text", arg=[f"translation-{column}", translation]
    )


def violations(page: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core judges the page")
    items = axe.Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {node['html'][:200]}"
        for item in items
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"]
    ]


def test_typing_translates_and_draws(visit: Open) -> None:
    page = visit()
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("one two three")
    await_translation(page, "three two one")
    assert page.inner_text("#count") == "13 / 5,000"
    assert page.locator(".alternatives input").count() == 5
    assert page.locator(".alternatives .score").all_inner_texts()[:2] == ["−0.25", "−1.25"]
    assert page.locator(".source .word").all_inner_texts() == ["one", "two", "three"]
    assert page.locator(".target .word").all_inner_texts() == ["three", "two", "one"]
    assert page.locator("td").count() == 9
    page.fill("#q", "")
    await_translation(page, "")
    assert page.locator(".card").count() == 0
    assert page.is_hidden("#tools")


def test_an_alternative_is_picked_by_pointer_and_by_keys(visit: Open) -> None:
    page = visit()
    type_text(page, "a b", "b a")
    page.click(".alternatives label >> nth=2")
    await_translation(page, "b a-2")
    assert page.locator(".target .word").all_inner_texts() == ["b", "a-2"]
    assert page.locator(".alternatives mark").all_inner_texts() == ["a-1", "a-2", "a-3", "a-4"]
    page.keyboard.press("ArrowDown")
    await_translation(page, "b a-3")
    assert page.evaluate("document.activeElement.checked")


def test_pointing_at_a_word_lights_up_its_partners(visit: Open) -> None:
    page = visit()
    type_text(page, "a b c", "c b a")
    lit = page.locator(".ribbon:not([hidden]):not(.dim)")
    assert lit.count() == 9
    with page.expect_download() as download:
        page.click(".downloads button:has-text('PNG')")
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
    page.hover(".source .word >> nth=0")
    assert lit.count() == 3
    assert page.inner_text(".readout") == "\u2068a\u2069 → a 0.80, c 0.10, b 0.10"
    page.hover("h1")
    assert lit.count() == 9
    page.locator("#threshold").fill("0.5")
    assert lit.count() == 3


def test_an_edited_translation_is_scored_and_drawn(visit: Open) -> None:
    page = visit()
    type_text(page, "a b", "b a")
    page.fill("#translation-0", "my own words")
    page.wait_for_selector(".alternatives .score:has-text('yours −5.00')")
    assert page.locator(".target .word").all_inner_texts() == ["my", "own", "words"]
    assert page.locator(".alternatives label:not(:has-text('goes on')) input").count() == 6
    assert page.locator(".alternatives input").nth(5).is_checked()
    page.fill("#translation-0", "b a-1")  # which is the second hypothesis
    page.wait_for_function("() => document.querySelectorAll('.alternatives input').length === 5")
    assert page.locator(".alternatives input").nth(1).is_checked()
    page.fill("#translation-0", "two\nlines")
    assert "one line per line" in page.inner_text(".status")
    page.fill("#q", "c d")
    await_translation(page, "d c")


def test_typing_over_a_translation_shows_how_it_goes_on_and_tab_takes_it(visit: Open) -> None:
    page = visit()
    type_text(page, "a b\nc d", "b a\nd c")
    page.fill("#translation-0", "b a\nso ")
    page.wait_for_selector(".alternatives .score:has-text('goes on')")
    assert page.locator(".alternatives label:has-text('goes on') .said").all_inner_texts()[:2] == ["so d c", "so d c-1"]
    assert "goes on, d 50 %" in page.locator(".alternatives .score").nth(-1).inner_text()
    page.keyboard.press("Tab")
    assert page.input_value("#translation-0") == "b a\nso d c"
    page.wait_for_selector(".alternatives .score:has-text('yours −5.00')")
    page.keyboard.press("Tab")  # nothing is offered, so it leaves the field as usual
    assert page.evaluate("document.activeElement.id") != "translation-0"


def test_the_line_with_the_caret_is_drawn(visit: Open) -> None:
    page = visit()
    type_text(page, "a b\n\nc d e", "b a\n\ne d c")
    assert page.inner_text("#place") == "3 / 3"
    assert page.locator(".source .word").all_inner_texts() == ["c", "d", "e"]
    page.click("#previous")
    page.click("#previous")
    page.wait_for_function("() => document.querySelectorAll('.source .word').length === 2")
    assert page.is_disabled("#previous")
    page.fill("#translation-0", "b a\n\nmine")
    page.wait_for_selector(".alternatives .score:has-text('yours')")
    assert page.inner_text("#place") == "3 / 3"
    page.click("#previous")
    page.click("#previous")
    page.wait_for_function("() => document.querySelectorAll('.target .word').length === 2")
    assert page.input_value("#translation-0") == "b a\n\nmine"


def test_two_models_side_by_side(visit: Open) -> None:
    page = visit()
    type_text(page, "a b", "b a")
    page.select_option("#compare", label="two")
    await_translation(page, "B A", column=1)
    page.wait_for_function("() => document.querySelectorAll('.ribbons').length === 2")
    assert page.locator(".bar label").all_inner_texts() == ["English", "German, one", "German, two"]
    page.hover("#column-0 .source .word >> nth=0")
    assert page.locator(".word.chosen").count() == 2  # the other model follows
    page.hover("h1")
    assert violations(page) == []
    page.select_option("#model", label="two (en → de)")
    await_translation(page, "B A")
    page.wait_for_function("() => document.querySelectorAll('.ribbons').length === 1")
    assert page.locator(".column").count() == 1
    assert page.locator(".bar label").all_inner_texts() == ["English", "German"]


def test_hostile_text_is_shown_and_does_nothing(visit: Open) -> None:
    page = visit()
    words = HOSTILE.split()
    page.fill("#q", HOSTILE)
    page.wait_for_function(f"() => document.querySelectorAll('.source .word').length === {len(words)}")
    assert page.locator(".source .word").all_inner_texts() == words
    assert "</textarea><script>" in page.input_value("#translation-0")
    assert page.locator("img").count() == 0
    assert page.title() == "Translate English to German"


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1200, "dark")])
def test_axe_finds_nothing_serious(visit: Open, scheme: str, width: int) -> None:
    """Nor in the wide and light page, as the test of two models shows."""
    page = visit(width=width, color_scheme=scheme)
    ground = "getComputedStyle(document.querySelector('#source')).backgroundColor"
    assert page.evaluate(ground) == {"dark": "rgb(21, 24, 28)", "light": "rgb(255, 255, 255)"}[scheme]
    assert violations(page) == []
    type_text(page, "one two three four five six seven eight", "eight seven six five four three two one")
    page.fill("#translation-0", "eight seven")
    page.wait_for_selector(".alternatives .score:has-text('yours −')")
    assert violations(page) == []
    page.hover(".target .word >> nth=0")
    assert [item for item in violations(page) if not item.startswith("color-contrast")] == []  # dimmed cells are meant


def test_a_phone_needs_no_sideways_scrolling(visit: Open) -> None:
    page = visit(width=390, height=844, has_touch=True, is_mobile=True)
    text = " ".join(f"word{number}" for number in range(12))
    type_text(page, text, " ".join(reversed(text.split())))
    page.select_option("#compare", label="two")
    await_translation(page, " ".join(reversed(text.split())).upper(), column=1)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator(".ribbons.down").count() == 2
    first, second = (page.locator(f"#translation-{column}").bounding_box() for column in range(2))
    assert 0 < second["y"] - (first["y"] + first["height"]) < 100  # the translations stand together
    page.tap("#column-0 .target .word >> nth=0")
    assert page.locator("#column-0 .word.chosen").count() == 1


def test_a_busy_server_is_asked_again_on_demand_and_one_that_refuses_is_not(visit: Open) -> None:
    page = visit()
    page.route("**/translate", lambda route: route.fulfill(status=503, json={"error": "Busy."}))
    page.fill("#q", "a b")
    page.wait_for_selector(".status:has-text('Busy.')")
    page.unroute("**/translate")
    page.click(".again")
    await_translation(page, "b a")
    assert page.is_hidden(".again")
    assert page.inner_text(".status") == ""
    page.fill("#q", "a" * 5001)
    page.wait_for_selector(".status:has-text('5,001 characters, but at most 5,000 are allowed.')")
    assert page.is_hidden(".again")


def test_characters_that_the_model_does_not_know_are_named(visit: Open) -> None:
    page = visit()
    type_text(page, "a ☂\nb", "☂ a\nb")
    assert page.inner_text(".status") == "Characters that the model does not know: ☂"
    type_text(page, "a\nb", "a\nb")
    assert page.inner_text(".status") == ""


def test_the_key_is_asked_for(visit: Open) -> None:
    with serving(api_key="secret") as port:
        page = visit(port=port)
        page.fill("#q", "a b")
        page.wait_for_selector(".status.problem")
        assert "needs its API key" in page.inner_text(".status")
        page.fill("#key", "secret")
        page.keyboard.press("Tab")
        await_translation(page, "b a")
        assert violations(page) == []
