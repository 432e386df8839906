"""The server over HTTP, with models that are functions: answers, limits, headers, keys, logs, and how it stops."""

import http.client
import itertools
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from nmt.errors import DataError
from nmt.serving.listening import bind
from nmt.serving.middleware import HEADERS, Access
from nmt.serving.openapi import openapi
from nmt.serving.request_log import LogLines, logger
from nmt.serving.service import Limits
from nmt.serving.work import LineResult, LineTask, Setting
from tests.serving.fakes import MODELS, TOO_LONG, Running, decode, serving, wait_until

SECRET = "zwölf Geheimnisse"


# --- what is ours ---------------------------------------------------------------------------------------------------


def test_hypotheses_have_scores_and_alignments(server: Running) -> None:
    answer = server.translate("a b\nc", n_best=2, alignment=True)
    first, second = answer["lines"]
    assert [line["source"] for line in (first, second)] == ["a b", "c"]
    best, other = first["hypotheses"]
    assert (best["text"], best["score"], best["log_probability"], best["tokens"]) == ("b a", -0.25, -0.5, 3)
    assert best["alignment"]["source"] == ["a", "b"]
    assert best["alignment"]["weights"] == [[0.2, 0.8], [0.8, 0.2]]
    assert best["alignment"]["links"] == [[0, 1], [1, 0]]
    assert other["text"] == "b a-1"
    assert "alignment" in other
    assert server.translate("a b", n_best=1)["lines"][0]["hypotheses"][0]["alignment"] is None


def test_models_are_chosen_by_language_or_by_name(server: Running) -> None:
    assert [model["id"] for model in server.ask("/models").json] == ["one", "two", "plain"]
    assert server.translate("a b", target="fr")["model"] == "plain"
    assert server.translate("a b", model="two")["translatedText"] == "B A"
    assert server.ask("/translate", {"q": "a b", "model": "two"}).json["translatedText"] == "B A"


def test_a_translation_is_scored_and_aligned(server: Running) -> None:
    answer = server.ask("/score", {"q": "a b", "translation": "x y z", "target": "de"}).json
    assert (answer["text"], answer["score"], answer["model"]) == ("x y z", -5, "one")
    assert len(answer["alignment"]["weights"]) == 3
    answer = server.ask("/score", {"q": "a b", "translation": "x y z", "model": "plain"}).json
    assert answer["alignment"] is None


def test_a_known_translation_has_the_posterior_unless_attention_is_wanted(server: Running) -> None:
    content = {"q": "a b", "translation": "x y", "target": "de"}
    assert server.ask("/score", content).json["alignment"]["weights"] == [[0, 1], [1, 0]]
    attention = {**content, "weights": "attention"}
    assert server.ask("/score", attention).json["alignment"]["weights"] == [[0.2, 0.8], [0.8, 0.2]]
    compared = {**attention, "compared": "two", "compared_weights": "posterior"}
    models = server.ask("/alignment.json", compared).json["models"]
    assert [(each["weights"], each["alignment"]["weights"][0]) for each in models] == [
        ("attention", [0.2, 0.8]),
        ("posterior", [0, 1]),
    ]
    assert b"attention weight or posterior weight" in server.ask("/alignment.svg", compared).body


def test_a_model_is_compared_with_itself(server: Running) -> None:
    content = {"q": "a b", "translation": "x", "target": "de", "model": "one", "compared": "one"}
    other = server.ask("/alignment.json", {**content, "compared_translation": "y"}).json["models"]
    assert [each["text"] for each in other] == ["x", "y"]
    assert len(server.ask("/alignment.json", content).json["models"]) == 1


@pytest.mark.parametrize(
    ("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!doctype html>"), ("json", b"{")]
)
def test_an_alignment_is_downloaded(server: Running, form: str, start: bytes) -> None:
    content = {"q": "a b", "translation": "b a", "model": "one", "compared": "two", "compared_translation": "B"}
    answer = server.ask(f"/alignment.{form}", content)
    assert answer.status == 200
    assert answer.body.startswith(start)
    assert answer.headers["content-disposition"] == f'attachment; filename="alignment.{form}"'


def test_the_openapi_document_has_every_path_of_the_api(server: Running) -> None:
    document = server.ask("/openapi.json").json
    assert document == json.loads(json.dumps(openapi(MODELS)))
    for path, methods in document["paths"].items():
        for method in methods:
            assert server.ask(path, {} if method == "post" else None).status in ({400} if method == "post" else {200})
    references = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document)))
    assert document["components"]["schemas"].keys() >= references
    assert len(references) > 8


def test_the_openapi_document_says_what_may_be_named() -> None:
    schemas = openapi(MODELS[:1])["components"]["schemas"]
    source, target = {"enum": ["en", "auto", None, ""]}, {"enum": ["de", None, ""]}
    assert schemas["Direction"]["anyOf"] == [
        {
            "properties": {"target": {"const": "de"}, "model": {"enum": [None, ""]}, "source": source},
            "required": ["target"],
        },
        {"properties": {"model": {"const": "one"}, "source": source, "target": target}, "required": ["model"]},
    ]
    for name in ("Translate", "Score"):
        assert schemas[f"{name}Input"]["allOf"][0] == {"$ref": "#/components/schemas/Direction"}
        assert schemas[f"{name}Form"]["allOf"][0] == {"$ref": "#/components/schemas/DirectionForm"}
    assert schemas["DirectionForm"]["anyOf"][0]["properties"]["source"] == {"enum": ["en", "auto", ""]}
    two = openapi([MODELS[0], replace(MODELS[1], source="de", target="en")])["components"]["schemas"]["Direction"]
    assert two["anyOf"][0]["required"] == ["source", "target"]
    assert two["anyOf"][0]["properties"]["source"] == {"enum": ["en"]}


def test_the_openapi_document_says_which_alignments_can_be_drawn() -> None:
    drawn = openapi(MODELS)["components"]["schemas"]["PictureInput"]["allOf"][0]["anyOf"]
    assert [way["properties"]["model"] for way in drawn] == [{"enum": [None, ""]}, {"const": "one"}, {"const": "two"}]
    assert drawn[0]["properties"]["compared"] == {"enum": ["one", "two", None, ""]}
    assert openapi(MODELS[2:])["components"]["schemas"]["PictureInput"]["allOf"][0]["anyOf"] == [False]


def test_the_openapi_document_says_how_wide_a_beam_must_be() -> None:
    _, *rules = openapi(MODELS)["components"]["schemas"]["TranslateForm"]["allOf"]
    assert len(rules) == 9
    n_best, alternatives = (each["properties"] for each in rules[-1]["if"]["anyOf"])
    assert (n_best["n_best"]["minimum"], alternatives["alternatives"]["minimum"]) == (10, 9)
    assert rules[-1]["then"]["properties"]["beam_size"]["anyOf"][0] == {"type": "integer", "minimum": 10}


def test_metrics_count_requests_by_path(server: Running) -> None:
    server.ask("/nowhere/" + SECRET.split(maxsplit=1)[0].encode().hex())
    server.translate("a")
    text = server.ask("/metrics").body.decode()
    assert 'nmt_requests_total{path="other",status="404"}' in text
    assert 'nmt_request_seconds_bucket{le="+Inf",path="/translate"}' in text
    assert "nmt_queue_lines 0.0" in text
    answer = server.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.body.endswith(b"# EOF\n")


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        ({"source": "en", "target": "de"}, 400, "Invalid request: missing q parameter."),
        ({"q": "a", "source": "en"}, 400, "Invalid request: missing target parameter."),
        ({"q": "a", "source": "xx", "target": "de"}, 400, "This server translates from en only."),
        ({"q": "a", "target": "xx"}, 400, "From en this server translates to de and fr only."),
        ({"q": 5, "target": "de"}, 400, "Invalid request: q: input should be a valid string."),
        ({"q": "a", "model": "../../etc"}, 400, "There is no such model: GET /models lists them."),
        ({"q": "a", "model": "plain", "target": "de"}, 400, "This model translates from en to fr."),
        ({"q": "a", "target": "de", "n_best": 11}, 400, "Invalid request: n_best: input should be less than or equal to 10."),
        ({"q": "a", "target": "de", "beam_size": 0}, 400, "Invalid request: beam_size: input should be greater than or equal to 1."),
        ({"q": "a", "target": "de", "n_best": 3, "beam_size": 2}, 400, "Invalid request: a beam of 2 has fewer than 3 hypotheses."),
        ({"q": "a", "target": "de", "format": "pdf"}, 400, "Invalid request: format: input should be 'text'."),
        ({"q": "a" * 1251, "target": "de", "beam_size": 20}, 413, "With a beam of 20 a text may have 1,250 characters at most."),
        ({"q": "a" * 2501, "target": "de", "alternatives": 9}, 413, "With a beam of 10 a text may have 2,500 characters at most."),
        ({"q": "a" * 5001, "target": "de"}, 413, "The text has 5,001 characters, but at most 5,000 are allowed."),
        ({"q": ["a\n" * 1001], "target": "de"}, 413, "The text has 1,001 lines, but at most 1,000 are allowed."),
        ("text", 400, "Invalid request: input should be an object."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(server: Running, content: object, status: int, sentence: str) -> None:
    answer = server.ask("/translate", body=json.dumps(content).encode(), Content_Type="application/json")
    assert (answer.status, answer.json) == (status, {"error": sentence})


NO_ALIGNMENT = "There is no alignment: the model has no attention, or the line is too long."


@pytest.mark.parametrize(
    ("path", "content", "status", "sentence"),
    [
        ("/score", {"q": TOO_LONG}, 413, "A line and its translation can be scored up to 500 tokens each."),
        ("/score", {"q": " "}, 400, "Invalid request: q: the source is blank."),
        ("/alignment.png", {"q": "a", "model": "plain"}, 400, NO_ALIGNMENT),
        ("/alignment.png", {"q": "a " * 101}, 413, "A picture has at most 100 words on each side."),
        ("/alignment.png", {"q": "a", "translation": " "}, 400, "There is nothing to draw: the translation is blank."),
    ],
)
def test_what_cannot_be_scored_or_drawn_is_said(
    server: Running, path: str, content: dict[str, str], status: int, sentence: str
) -> None:
    answer = server.ask(path, {"translation": "b", "model": "one", **content})
    assert (answer.status, answer.json) == (status, {"error": sentence})


NUMBER = b'{"q":' + b"9" * 5000 + b"}"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 50_000, b'{"q":"\\ud800","target":"de"}', NUMBER, b"null", b'["q"]']
)
def test_bodies_that_are_no_json_are_refused(server: Running, body: bytes) -> None:
    answer = server.ask("/translate", body=body, Content_Type="application/json")
    assert answer.status == 400
    assert answer.json["error"]


def test_forms_that_cannot_be_read_are_refused(server: Running) -> None:
    form = "application/x-www-form-urlencoded"
    assert server.ask("/translate", body=b"a=1&" * 2000, Content_Type=form).status == 400
    assert server.ask("/translate", body=b"\xff=\xff", Content_Type=form).status == 400


def test_large_bodies_are_refused_before_they_are_read(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
        client.sendall(2 * chunk)
        assert client.recv(1000).startswith(b"HTTP/1.1 413")


def test_there_is_nothing_elsewhere(server: Running) -> None:
    for path in ("/nothing", "/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/page.html"):
        answer = server.ask(path)
        assert (answer.status, answer.json) == (404, {"error": "There is nothing here."})
    refused = server.ask("/translate")
    assert (refused.status, refused.headers["allow"]) == (405, "POST")
    assert refused.json == {"error": "This address takes another method."}
    assert set(server.ask("/", method="PUT").headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


# --- safety ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/languages", "/nothing", "/static/page.js", "/metrics"])
def test_every_answer_has_the_security_headers(server: Running, path: str) -> None:
    headers = server.ask(path).headers
    assert {name: headers[name] for name in HEADERS if name != "cache-control"}.items() <= HEADERS.items()
    assert "server" not in headers


def test_the_policy_allows_no_inline_script_and_the_page_has_none(server: Running) -> None:
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    page = server.ask("/").body.decode()
    assert " style=" not in page
    assert " onclick=" not in page
    assert page.count("<script") == 2
    assert '<script type="application/json" id="data">' in page


def test_other_host_names_and_pages_of_other_sites_are_refused(server: Running) -> None:
    assert server.ask("/", Host="evil.example").status == 421
    assert server.ask("/", Host="[").status == 421
    assert server.ask("/", Host="LOCALHOST:99").status == 200
    assert server.ask("/", Host="[::1]:5000").status == 200
    content = {"q": "a", "target": "de"}
    assert server.ask("/translate", content, Origin="http://evil.example").status == 403
    assert server.ask("/translate", content, Origin="null").status == 403
    assert server.ask("/translate", content, Origin=f"http://127.0.0.1:{server.port}").status == 200
    assert server.ask("/translate", content, Origin="moz-extension://abc").status == 200


def test_the_key_is_needed_wherever_work_is_done() -> None:
    with serving(access=Access(api_key=SECRET)) as running:
        content = {"q": "a b", "translation": "c", "target": "de"}
        latin = SECRET.encode().decode("latin-1")
        for path in ("/translate", "/score", "/detect", "/alignment.png"):
            assert running.ask(path, content).status == 403
            assert running.ask(path, {**content, "api_key": "wrong"}).status == 403
        assert running.ask("/metrics").status == 403
        assert running.ask("/translate", {**content, "api_key": SECRET}).status == 200
        assert running.ask("/translate", [("q", "a"), ("target", "de"), ("api_key", SECRET)]).status == 200
        assert running.ask("/metrics", Authorization=f"Bearer {latin}").status == 200
        assert running.ask("/score", {"q": "a", "translation": "b", "target": "de"}, X_API_Key=latin).status == 200
        assert running.ask("/health").status == running.ask("/languages").status == 200
        assert 'type="password"' in running.ask("/").body.decode()
        assert running.ask("/frontend/settings").json["keyRequired"] is True


def test_hostile_text_is_escaped_in_the_page_without_scripts(server: Running) -> None:
    hostile = "</textarea><script>alert(1)</script>"
    answer = server.ask("/", [("q", hostile), ("model", '"><img src=x>')])
    assert answer.status == 400
    page = answer.body.decode()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;/textarea&gt;&lt;script&gt;" in page


def test_without_scripts_a_form_translates(server: Running) -> None:
    answer = server.ask("/", [("q", "a <x\nc d"), ("model", "two")])
    assert answer.status == 200
    assert ">&lt;X A\nD C</textarea>" in answer.body.decode()
    empty = server.ask("/", [("model", "two")])
    assert empty.status == 400
    assert "missing q parameter" in empty.body.decode()


def test_logs_have_no_texts() -> None:
    lines: list[str] = []
    others = {thread.ident for thread in threading.enumerate()}  # of the server of other tests

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if threading.get_ident() not in others:
                lines.append(LogLines().format(record))

    def failing(setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
        raise RuntimeError(tasks[0].source)

    handler, level = Lines(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with serving([failing]) as running:
            assert running.ask("/translate", {"q": SECRET, "target": "de"}).status == 500
            running.ask(f"/{SECRET.split()[1]}?q={SECRET.split()[1]}")
            running.ask("/translate", {"q": 1, "target": SECRET})
            running.ask("/translate", {"q": "", "target": "de"})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    records = [json.loads(line) for line in lines]
    assert not any(word in line for word in (*SECRET.split(), "Geheim") for line in lines)
    assert [(record["event"], record.get("status")) for record in records] == [
        ("failed", None), ("request", 500), ("request", 404), ("request", 400), ("request", 200),
    ]  # fmt: skip
    assert records[0]["error"] == "RuntimeError"
    assert records[1]["characters"] == len(SECRET)
    assert {"time", "level", "client", "method", "path", "ms"} <= records[1].keys()


# --- load, time and the end -----------------------------------------------------------------------------------------


class Held:
    """A decoder that waits until it may answer."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()
        self.sizes: list[int] = []

    def __call__(self, setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
        self.sizes.append(len(tasks))
        self.entered.set()
        assert self.open.wait(20)
        return decode(setting, tasks)


def test_concurrent_requests_share_batches() -> None:
    held = Held()
    with serving([held]) as running, ThreadPoolExecutor(8) as threads:
        first = threads.submit(running.translate, "x y")
        assert held.entered.wait(10)
        others = [threads.submit(running.translate, f"a {number}") for number in range(7)]
        wait_until(lambda: running.batcher.waiting == 7)
        held.open.set()
        assert first.result(10)["translatedText"] == "y x"
        assert [other.result(10)["translatedText"] for other in others] == [f"{number} a" for number in range(7)]
    assert held.sizes == [1, 7]


def test_a_full_queue_is_told_with_retry_after() -> None:
    held = Held()
    with serving([held], limits=Limits(queue=2)) as running, ThreadPoolExecutor(4) as threads:
        accepted = [threads.submit(running.translate, "a")]
        assert held.entered.wait(10)
        accepted.append(threads.submit(running.translate, "b\nc"))
        wait_until(lambda: running.batcher.waiting == 2)
        refused = running.ask("/translate", {"q": "d", "target": "de"})
        assert (refused.status, refused.json) == (503, {"error": "The server is busy."})
        assert int(refused.headers["retry-after"]) >= 1
        page = running.ask("/", [("q", "d"), ("target", "de")])
        assert page.status == 503
        assert int(page.headers["retry-after"]) >= 1
        assert "The server is busy." in page.body.decode()
        held.open.set()
        assert [each.result(10)["translatedText"] for each in accepted] == ["a", "b\nc"]


def test_a_request_that_takes_too_long_is_given_up() -> None:
    held = Held()
    with serving([held], limits=Limits(timeout=0.3)) as running:
        for _ in ("decoded", "waiting"):
            started = time.monotonic()
            answer = running.ask("/translate", {"q": "a", "target": "de"})
            assert 0.25 < time.monotonic() - started < 5
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert running.batcher.waiting == 0
        held.open.set()


def test_a_client_that_leaves_is_taken_out_of_the_queue() -> None:
    held = Held()
    with serving([held]) as running, ThreadPoolExecutor(1) as threads:
        first = threads.submit(running.translate, "a")
        assert held.entered.wait(10)
        leaving = http.client.HTTPConnection("127.0.0.1", running.port)
        leaving.request("POST", "/translate", b'{"q":"b","target":"de"}', {"Content-Type": "application/json"})
        wait_until(lambda: running.batcher.waiting == 1)
        leaving.close()
        wait_until(lambda: running.batcher.waiting == 0)
        held.open.set()
        assert first.result(10)["translatedText"] == "a"
    assert held.sizes == [1]


def test_clients_that_keep_their_connection_lose_no_request_when_it_stops() -> None:
    entered = threading.Barrier(5)

    def use(running: Running) -> int:
        """Translate over one connection until the server says that it closes it."""
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        for count in itertools.count(1):
            connection.request("POST", "/translate", b'{"q":"a b","target":"de"}', {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert json.loads(response.read())["translatedText"] == "b a"
            if response.getheader("connection") == "close":
                connection.close()
                return count
            if count == 1:
                entered.wait(20)
        raise AssertionError

    with serving() as running, ThreadPoolExecutor(4) as threads:
        clients = [threads.submit(use, running) for _ in range(4)]
        entered.wait(20)
        running.server.should_exit = True
        assert min(client.result(20) for client in clients) > 1


def test_a_request_on_its_way_is_answered_when_it_stops() -> None:
    with serving() as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        connection.request("GET", "/health")
        connection.getresponse().read()
        running.server.should_exit = True
        wait_until(lambda: not _connects(running.port))
        connection.request("GET", "/health")
        response = connection.getresponse()
        assert (response.getheader("connection"), response.read()) == ("close", b'{"status":"stopping"}')
        connection.close()


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_slow_clients_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.serving.listening._SECONDS_FOR_HEADERS", 0.3)
    monkeypatch.setattr("nmt.serving.app._BODY_SECONDS", 0.3)
    with serving() as running:
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as client:
            client.sendall(b"GET /health HT")
            assert client.recv(100) == b""
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as client:
            client.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
            assert client.recv(100).startswith(b"HTTP/1.1 408")
        assert running.ask("/health").status == 200


def test_too_many_connections_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.serving.listening.MOST_CONNECTIONS", 2)
    with serving() as running:
        held = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(2)]
        wait_until(lambda: len(running.server.server_state.connections) == 2)
        answer = running.ask("/health")
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert answer.json == {"error": "The server has too many connections."}
        for client in held:
            client.close()
        wait_until(lambda: not running.server.server_state.connections)
        assert running.ask("/health").status == 200


def test_an_address_in_use_is_one_sentence() -> None:
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(DataError, match=f"^Cannot listen on 127.0.0.1, port {port}: .*in use.*--port.$"):
            bind("127.0.0.1", port)
    with pytest.raises(DataError, match=r"Cannot listen on no\.such\.host\.invalid, port 5000"):
        bind("no.such.host.invalid", 5000)
