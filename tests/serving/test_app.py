"""The application, with models that are functions: answers, the page, refusals, and who may use it."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.errors import DataError, UsageError
from nmt.serving import app as module
from nmt.serving.engine import ServedHypothesis, Setting, Task
from nmt.serving.pages import ASSETS
from tests.serving.fakes import MODELS, Held, client_of, wait_until

TO_GERMAN = {"source": "en", "target": "de"}


def translate(client: TestClient, q: object, **fields: object) -> Any:
    answer = client.post("/translate", json={"q": q, **TO_GERMAN, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


# --- LibreTranslate's calls -----------------------------------------------------------------------------------------


def test_json_and_a_form_get_the_same_answer(client: TestClient) -> None:
    expected = {"translatedText": "c b a", "unknownCharacters": "", "model": "one"}
    assert translate(client, "a b c") == expected
    form = {"q": "a b c", **TO_GERMAN, "format": "text", "api_key": "", "unknown": "x"}
    assert client.post("/translate", data=form).json() == expected
    empty = dict.fromkeys(["source", "format", "alternatives", "n_best", "beam_size", "alignment", "model", "api_key"])
    assert translate(client, "a b c", **empty) == expected


def test_line_ends_and_blank_lines_stay(client: TestClient) -> None:
    assert translate(client, "a b\n \r\nc d\n")["translatedText"] == "b a\n \r\nd c\n"
    assert translate(client, "")["translatedText"] == ""


def test_a_list_of_texts_gets_lists(client: TestClient) -> None:
    answer = translate(client, ["a b", "", "c\n\nd e"], alternatives=1, n_best=1)
    assert answer["translatedText"] == ["b a", "", "c\n\ne d"]
    assert answer["alternatives"] == [["b a-1"], [], ["c-1\n\ne d-1"]]
    assert [[line["source"] for line in lines] for lines in answer["lines"]] == [["a b"], [], ["c", "d e"]]
    assert translate(client, [])["translatedText"] == []
    form = client.post("/translate", data={"q": ["a b", "c"], **TO_GERMAN})
    assert form.json()["translatedText"] == ["b a", "c"]


def test_a_translation_begins_as_given(client: TestClient) -> None:
    answer = translate(client, "a b", prefix="so ", n_best=2)
    assert [hypothesis["text"] for hypothesis in answer["lines"][0]["hypotheses"]] == ["so b a", "so b a-1"]
    assert answer["lines"][0]["hypotheses"][0]["next_word_probability"] == 0.5


def test_characters_that_the_model_does_not_know_are_named(client: TestClient) -> None:
    assert translate(client, "a ☂\nb")["unknownCharacters"] == "☂"
    assert translate(client, ["a", "☂"])["unknownCharacters"] == ["", "☂"]
    assert "model does not know: ☂</span>" in client.post("/", data={"q": "a ☂", "model": "one"}).text


def test_hypotheses_have_scores_and_alignments(client: TestClient) -> None:
    [line] = translate(client, "a b", n_best=2, alignment=True)["lines"]
    best, second = line["hypotheses"]
    assert best == {
        "text": "b a",
        "score": -0.25,
        "log_probability": -0.5,
        "tokens": 3,
        "alignment": {
            "source": ["a", "b"],
            "target": ["b", "a"],
            "weights": [[0.2, 0.8], [0.8, 0.2]],
            "links": [[0, 1], [1, 0]],
        },
    }
    assert second["text"] == "b a-1"
    assert translate(client, "a", n_best=1)["lines"][0]["hypotheses"][0]["alignment"] is None


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        ({"source": "en-US", "target": "de"}, "one"),
        ({"source": "EN", "target": "DE"}, "one"),
        ({"source": "auto", "target": "fr"}, "plain"),
        ({"target": "de-AT", "model": "two"}, "two"),
        ({"model": "plain"}, "plain"),
    ],
)
def test_a_model_is_chosen_by_languages_or_by_name(client: TestClient, fields: dict[str, str], model: str) -> None:
    assert client.post("/translate", json={"q": "a", **fields}).json()["model"] == model


def test_languages_settings_and_health(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "de", "name": "German", "targets": []},
        {"code": "fr", "name": "French", "targets": []},
    ]
    settings = client.get("/frontend/settings").json()
    assert (settings["charLimit"], settings["keyRequired"]) == (5000, False)
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert client.get("/health").json() == {"status": "ok"}


class Identifier:
    """In place of py3langid: texts are probably German, perhaps English."""

    def rank(self, text: str) -> list[tuple[str, float]]:
        return [("de", 0.9), ("en", 0.0625), ("fr", 0.0375)]


def test_a_language_is_detected_with_its_probability(monkeypatch: pytest.MonkeyPatch, client: TestClient) -> None:
    monkeypatch.setattr(module, "identifier", Identifier)
    assert client.post("/detect", data={"q": "ein Hund"}).json() == [{"language": "de", "confidence": 90.0}]
    detected = translate(client, ["a", "b"], source="auto")["detectedLanguage"]
    assert detected == [{"language": "en", "confidence": 6.2}] * 2  # the only source
    with client_of(models=[MODELS[0], replace(MODELS[1], source="fr", target="de"), MODELS[2]]) as two:
        answer = translate(two, "a", source="auto")
        assert (answer["model"], answer["detectedLanguage"]["language"]) == ("one", "en")


def test_without_an_identifier_no_language_is_detected(monkeypatch: pytest.MonkeyPatch, client: TestClient) -> None:
    monkeypatch.setattr(module, "identifier", _raise_missing)
    refused = client.post("/detect", json={"q": "a"})
    assert (refused.status_code, "attentional-nmt[langid]" in refused.json()["error"]) == (501, True)
    assert translate(client, "a", source="auto") == translate(client, "a")
    with client_of(models=[MODELS[0], replace(MODELS[1], source="fr")]) as two:
        refused = two.post("/translate", json={"q": "a", "source": "auto", "target": "de"})
        assert refused.json()["error"] == (
            "This server translates en to de and fr to de: name the source and target of one."
        )


def _raise_missing() -> None:
    raise UsageError("py3langid is not installed")


# --- known translations ---------------------------------------------------------------------------------------------


def test_a_translation_is_scored_and_aligned(client: TestClient) -> None:
    content = {"q": "a b", "translation": "x y", "target": "de"}
    answer = client.post("/score", json=content).json()
    assert (answer["text"], answer["score"], answer["model"]) == ("x y", -5, "one")
    assert answer["alignment"]["weights"] == [[0, 1], [1, 0]]
    answer = client.post("/score", json={**content, "weights": "attention"}).json()
    assert answer["alignment"]["weights"] == [[0.2, 0.8], [0.8, 0.2]]
    assert client.post("/score", json={**content, "target": "", "model": "plain"}).json()["alignment"] is None


@pytest.mark.parametrize(
    ("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!doctype html>"), ("json", b"{")]
)
def test_an_alignment_is_downloaded(client: TestClient, form: str, start: bytes) -> None:
    content = {"q": "a b", "translation": "b a", "model": "one", "compared": "two", "compared_translation": "B"}
    answer = client.post(f"/alignment.{form}", json=content)
    assert answer.status_code == 200
    assert answer.content.startswith(start)
    assert answer.headers["content-disposition"] == f'attachment; filename="alignment.{form}"'
    if form == "json":
        assert [(model["model"], model["text"]) for model in answer.json()["models"]] == [("one", "b a"), ("two", "B")]


# --- refusals -------------------------------------------------------------------------------------------------------

BAD_REQUESTS: list[tuple[str, Any, int, str]] = [
    ("/translate", {"target": "de"}, 400, "Invalid request: q: "),
    ("/translate", {"q": "a"}, 400, "name the source and target of one"),
    ("/translate", {"q": "a", "source": "xx", "target": "de"}, 400, "translates en to de and en to fr: name"),
    ("/translate", {"q": "a", "model": "../../etc"}, 400, "this server has one, two and plain"),
    ("/translate", {"q": "<p>a", "target": "de", "format": "html"}, 400, "Invalid request: format: Input should be 'text'."),
    ("/translate", {"q": "a", "target": "de", "n_best": 11}, 400, "Invalid request: n_best: Input should be less than or equal to 10."),
    ("/translate", {"q": "a", "target": "de", "beam_size": 0}, 400, "Invalid request: beam_size: "),
    ("/translate", {"q": "a", "target": "de", "n_best": 3, "beam_size": 2}, 400, "A beam of 2 has fewer than 3 hypotheses"),
    ("/translate", {"q": "a\nb", "target": "de", "prefix": "c"}, 400, "A prefix belongs to one line, but the text has 2."),
    ("/translate", {"q": "a", "target": "de", "prefix": "b" * 5000}, 413, "5,001 characters"),
    ("/translate", {"q": "a" * 5001, "target": "de"}, 413, "5,001 characters, but at most 5,000 are allowed."),
    ("/translate", {"q": "a" * 1251, "target": "de", "beam_size": 20}, 413, "at most 1,250 are allowed with a beam of 20."),
    ("/translate", {"q": "a" * 2501, "target": "de", "alternatives": 9}, 413, "at most 2,500 are allowed with a beam of 10."),
    ("/translate", {"q": "a" * 100_000, "target": "de"}, 413, "The request is longer than 70,000 bytes."),
    ("/translate", "text", 400, "Invalid request: "),
    ("/translate", b"", 400, "neither a JSON object nor a urlencoded form"),
    ("/translate", b"{", 400, "neither a JSON object nor a urlencoded form"),
    ("/translate", b"\xff\xfe", 400, "neither a JSON object nor a urlencoded form"),
    ("/translate", b'{"q":"\\ud800","target":"de"}', 400, "neither a JSON object nor a urlencoded form"),
    ("/translate", b"q=" + b"&a=1" * 2000, 400, "neither a JSON object nor a urlencoded form"),
    ("/score", {"q": " ", "translation": "b", "model": "one"}, 400, "Invalid request: q: "),
    ("/score", {"q": "a" * 2501, "translation": "b" * 2500, "model": "one"}, 413, "5,001 characters"),
    ("/alignment.png", {"q": "a", "translation": "b", "model": "plain"}, 400, "There is no alignment"),
    ("/alignment.png", {"q": "a " * 101, "translation": "b", "model": "one"}, 413, "at most 100 words on each side"),
    ("/alignment.svg", {"q": "a", "translation": " ", "model": "one"}, 400, "nothing to draw"),
    ("/nothing", {}, 404, "Not Found"),
    ("/languages", {}, 405, "Method Not Allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "content", "status", "message"), BAD_REQUESTS)
def test_bad_requests(client: TestClient, path: str, content: object, status: int, message: str) -> None:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    kind = "application/x-www-form-urlencoded" if body.startswith(b"q=") else "application/json"
    answer = client.post(path, content=body, headers={"content-type": kind})
    assert answer.status_code == status
    assert message in answer.json()["error"]


def test_a_damaged_model_is_told_in_one_sentence() -> None:
    def fail(setting: Setting, tasks: Sequence[Task]) -> list[list[ServedHypothesis]]:
        raise DataError("The model's probabilities are not numbers.")

    with client_of(fail) as client:
        answer = client.post("/translate", json={"q": "a", **TO_GERMAN})
        assert (answer.status_code, answer.json()) == (500, {"error": "The model's probabilities are not numbers."})


def test_a_full_queue_is_told_with_retry_after() -> None:
    held, content = Held(), {"q": "a b", **TO_GERMAN}
    with client_of(held, max_queue=1) as client, ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(client.post, "/translate", json=content)]
        assert held.entered.wait(10)
        answers += [threads.submit(client.post, "/translate", json=content) for _ in range(2)]
        wait_until(lambda: any(answer.done() for answer in answers))
        assert client.get("/health").json() == {"status": "ok"}
        page = client.post("/", data=content)
        assert (page.status_code, "The server is busy" in page.text) == (503, True)
        held.open.set()
        refused, *accepted = sorted((answer.result(10) for answer in answers), key=lambda answer: -answer.status_code)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert [answer.json()["translatedText"] for answer in accepted] == ["b a"] * 2


def test_a_client_that_leaves_is_not_decoded() -> None:
    held = Held()

    async def leave() -> None:
        """Send a request as a server does, and then that its client has gone."""
        body = json.dumps({"q": "left", **TO_GERMAN}).encode()
        messages = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]

        async def receive() -> Any:
            return messages.pop(0)

        async def send(_: object) -> None:
            await asyncio.sleep(0)

        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": "/translate", "query_string": b"", "headers": headers}
        await client.app(scope, receive, send)

    with client_of(held) as client, ThreadPoolExecutor(1) as threads:
        first = threads.submit(translate, client, "a b")
        assert held.entered.wait(10)
        asyncio.run(leave())
        held.open.set()
        assert first.result(10)["translatedText"] == "b a"
    assert [tasks for _, tasks in held.batches] == [["a b"]]


# --- who may use it -------------------------------------------------------------------------------------------------


def test_the_key_is_needed_wherever_work_is_done() -> None:
    with client_of(api_key="secret") as client:
        content = {"q": "a b", "translation": "c", "target": "de"}
        for path in ("/translate", "/score", "/detect", "/alignment.png", "/"):
            assert client.post(path, data=content).status_code == 403
            assert client.post(path, data={**content, "api_key": "wröng"}).status_code == 403
        assert client.post("/translate", json={**content, "api_key": "secret"}).status_code == 200
        assert client.post("/translate", json=content, headers={"x-api-key": "secret"}).status_code == 200
        assert client.get("/health").status_code == client.get("/languages").status_code == 200
        assert 'type="password"' in client.get("/").text
        assert client.get("/frontend/settings").json()["keyRequired"] is True


def test_only_its_own_names_and_pages_are_served() -> None:
    with client_of(hosts=["localhost", "127.0.0.1"]) as client:
        assert client.get("/languages", headers={"host": "evil.example"}).status_code == 400
        assert client.get("/languages", headers={"host": "["}).status_code == 400
        assert client.get("/languages", headers={"host": "127.0.0.1:99"}).status_code == 200
        for relation, status in {"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200}.items():
            answer = client.post("/translate", json={"q": "a", **TO_GERMAN}, headers={"sec-fetch-site": relation})
            assert answer.status_code == status


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_has_no_inline_script_and_relative_links(client: TestClient) -> None:
    page = client.get("/").text
    assert page.count("<script") == 2
    assert '<script type="application/json" id="data">' in page
    assert " style=" not in page
    assert ' href="/' not in page
    assert ' src="/' not in page
    assert client.get("/static/page.html").status_code == 404
    for name in ASSETS:
        assert f'"static/{name}"' in page
        assert client.get(f"/static/{name}").text == ASSETS[name][0]


def test_without_scripts_a_form_translates(client: TestClient) -> None:
    answer = client.post("/", data={"q": "a <x\nc d", "model": "two"})
    assert answer.status_code == 200
    assert ">&lt;X A\nD C</textarea>" in answer.text
    empty = client.post("/", data={"model": "two"})
    assert (empty.status_code, "Invalid request: q" in empty.text) == (400, True)
