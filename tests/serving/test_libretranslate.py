"""What clients of LibreTranslate send, and what they make of the answers."""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from nmt.serving.documents.formats import FORMATS
from nmt.serving.work import LineResult, LineTask, Setting
from tests.serving.fakes import MODELS, Running, decode, serving


def test_a_json_request_and_a_form_get_the_same_answer(server: Running) -> None:
    expected = {"translatedText": "c b a", "model": "one"}
    assert server.translate("a b c") == expected
    form = [("q", "a b c"), ("source", "en"), ("target", "de"), ("format", "text"), ("api_key", "")]
    assert server.ask("/translate", form).json == expected


def test_a_list_of_texts_gets_lists(server: Running) -> None:
    answer = server.translate(["a b", "", "c\n\nd e"], source="auto", alternatives=1)
    assert answer["translatedText"] == ["b a", "", "c\n\ne d"]
    assert answer["alternatives"] == [["b a-1"], [], ["c-1\n\ne d-1"]]
    assert answer["detectedLanguage"] == [{"language": "en", "confidence": 100}] * 3
    assert server.ask("/translate", [("q", "a b"), ("q", "c"), ("target", "de")]).json["translatedText"] == ["b a", "c"]


def test_html_keeps_its_tags(server: Running) -> None:
    answer = server.translate("<p>a b <i>c</i> &lt;d&gt;</p>", format="html")
    assert answer["translatedText"] == "<p><i>c</i> b a &lt;d&gt;</p>"
    answer = server.translate("<p>a <i>b</i></p>", format="html", alternatives=2)
    assert answer["alternatives"] == ["<p><i>b</i> a-1</p>", "<p><i>b</i> a-2</p>"]


def test_placeholders_and_addresses_stay_and_are_no_work_for_a_model(server: Running) -> None:
    answer = server.translate("a {0}\nhttps://x.org\nb", n_best=1, alignment=True)
    assert answer["translatedText"] == "a {0}\nhttps://x.org\nb"
    assert [line["source"] for line in answer["lines"]] == ["a {0}", "https://x.org", "b"]
    [hypothesis] = answer["lines"][0]["hypotheses"]
    assert (hypothesis["text"], hypothesis["alignment"]["source"]) == ("a {0}", ["a"])
    assert server.translate("a {0} b")["translatedText"] == "{0} b a"
    assert server.translate("a {0} b", protect=False)["translatedText"] == "b {0} a"
    assert server.translate("<p>a <b>b</b></p>", model="plain", target="fr", format="html")["translatedText"]


def test_links_are_asked_for_only_where_codes_need_them() -> None:
    asked: list[tuple[str, bool]] = []

    def noting(setting: Setting, tasks: Sequence[LineTask]) -> list[LineResult]:
        asked.extend((setting.weights, task.linked) for task in tasks)
        return decode(setting, tasks)

    with serving([noting]) as running:
        running.translate("a b")
        running.translate("a {0} b")
        running.translate("a {0} b", alignment=True)
    assert asked == [("attention", False), ("posterior", True), ("attention", True)]


def test_languages_settings_detection_and_health(server: Running) -> None:
    assert server.ask("/languages").json == [
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "de", "name": "German", "targets": []},
        {"code": "fr", "name": "French", "targets": []},
    ]
    assert server.ask("/detect", [("q", "hello")]).json == [{"language": "en", "confidence": 100}]
    settings = server.ask("/frontend/settings").json
    assert settings["charLimit"] == 5000
    assert settings["filesTranslation"] is True
    assert settings["supportedFilesFormat"] == list(FORMATS)
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert server.ask("/health").json == {"status": "ok"}


@pytest.mark.parametrize(("source", "target"), [("en-US", "de"), ("EN", "DE"), ("en_gb", "de-AT"), ("AUTO", "De")])
def test_codes_have_any_case_and_a_region(server: Running, source: str, target: str) -> None:
    assert server.translate("a b", source=source, target=target)["translatedText"] == "b a"
    assert server.translate("a b", source=source, target=target, model="two")["translatedText"] == "B A"


def test_a_language_alone_means_the_one_with_a_region() -> None:
    with serving(models=[replace(MODELS[0], target="pt-BR"), replace(MODELS[1], target="pt")]) as running:
        for target, model in {"pt": "two", "pt-PT": "two", "PT-br": "one"}.items():
            assert running.translate("a", target=target)["model"] == model
    with serving(models=[replace(MODELS[0], target="pt_BR")]) as running:
        assert running.translate("a", target="pt")["model"] == "one"
        assert running.ask("/translate", {"q": "a", "target": "pt-PT"}).status == 400


def test_a_multipart_form_is_read(server: Running) -> None:
    parts = {"q": "a b\r\nc", "source": "en", "target": "de", "format": ""}
    body = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in parts.items()
    )
    file = '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nabc\r\n'
    kind = "multipart/form-data; boundary=x"
    answer = server.ask("/translate", body=f"{body}{file}--x--\r\n".encode(), Content_Type=kind)
    assert answer.json == {"translatedText": "b a\r\nc", "model": "one"}
    assert server.ask("/", body=f"{body}--x--\r\n".encode(), Content_Type=kind).status == 200
    surrogate = body.replace("a b", r"a \ud800 b")
    answer = server.ask(
        "/translate", body=f"{surrogate}--x--\r\n".encode(), Content_Type=f"{kind}; charset=unicode_escape"
    )
    assert answer.json["translatedText"] == "b ? a\r\nc"


def test_a_query_string_is_read_and_the_body_counts_before_it(server: Running) -> None:
    path = "/translate?" + urlencode({"q": "a b", "source": "en", "target": "de"})
    assert server.ask(path, method="POST").json == {"translatedText": "b a", "model": "one"}
    assert server.ask(path, {"target": "fr"}).json == {"translatedText": "b a", "model": "plain"}
    assert server.ask(path, [("q", "x y")]).json["translatedText"] == "y x"
    assert server.ask("/detect?q=a", method="POST").status == 200


@pytest.mark.parametrize("empty", [None, ""])
def test_fields_without_a_value_are_left_out(server: Running, empty: str | None) -> None:
    names = ["source", "format", "alternatives", "n_best", "beam_size", "alignment", "model", "api_key"]
    answer = server.ask("/translate", {"q": "a b", "target": "de", **dict.fromkeys(names, empty)})
    assert answer.json == {
        "translatedText": "b a",
        "detectedLanguage": {"language": "en", "confidence": 100},
        "model": "one",
    }
    refused = server.ask("/translate", {"q": "a", "source": "en", "target": empty})
    assert refused.json == {"error": "Invalid request: missing target parameter."}


def test_text_without_letters_stays_as_it_is(server: Running) -> None:
    assert server.translate("1 2 3\n:-) !\na b\n😀 5")["translatedText"] == "1 2 3\n:-) !\nb a\n😀 5"
    assert server.translate("<p>1 2 &amp; 3</p>", format="html")["translatedText"] == "<p>1 2 &amp; 3</p>"
    [[line]] = server.translate(["1 2"], n_best=3, alignment=True)["lines"]
    assert line["hypotheses"] == [{"text": "1 2", "score": 0, "log_probability": 0, "tokens": 0, "alignment": None}]


def test_an_address_may_end_in_a_slash(server: Running) -> None:
    assert server.ask("/translate/", {"q": "a b", "target": "de"}).status == 200
    assert server.ask("/languages/").json == server.ask("/languages").json
    assert server.ask("/translate/x").status == 404
    assert 'path="/translate",status="200"' in server.ask("/metrics").body.decode()


def test_suggestions_are_refused_and_the_document_has_its_other_address(server: Running) -> None:
    refused = server.ask("/suggest", {"q": "a", "s": "b", "source": "en", "target": "de"})
    assert (refused.status, refused.json) == (403, {"error": "Suggestions are disabled on this server."})
    assert server.ask("/frontend/settings").json["suggestions"] is False
    assert server.ask("/spec").json == server.ask("/openapi.json").json
