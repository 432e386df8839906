"""What clients of LibreTranslate send, and what they make of the answers."""

from dataclasses import replace
from urllib.parse import urlencode

import pytest

from tests.serving.fakes import MODELS, Running, serving


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


def test_languages_settings_detection_and_health(server: Running) -> None:
    assert server.ask("/languages").json == [
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "de", "name": "German", "targets": []},
        {"code": "fr", "name": "French", "targets": []},
    ]
    assert server.ask("/detect", [("q", "hello")]).json == [{"language": "en", "confidence": 100}]
    settings = server.ask("/frontend/settings").json
    assert settings["charLimit"] == 5000
    assert settings["filesTranslation"] is False
    assert settings["supportedFilesFormat"] == []
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
