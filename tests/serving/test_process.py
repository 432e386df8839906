"""`nmt serve` with a model: the same results as the command line and Python, its messages, and how it ends."""

import http.client
import json
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import nmt as toolkit
from nmt.alignment.weights import AlignmentWeights
from nmt.bundle.folder import Bundle
from nmt.serving.engine import Engine, Setting, _next_word
from nmt.serving.server import HEADERS, bind
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import NMT, ROOT, bad, good, nmt, python

LINES = ["a dog runs", "the cat", "", "a dog and a cat run and run"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was not trained, whose outputs are short."""
    folder = tmp_path_factory.mktemp("serve") / "model"
    torch.manual_seed(1)
    subwords = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    Bundle.fresh(small_recipe(), subwords, subwords).save(folder)
    return folder


@pytest.fixture(scope="module")
def engine(model: Path) -> Engine:
    return Engine([model, model], device="cpu")


# --- a process ------------------------------------------------------------------------------------------------------


def ask(port: int, path: str, content: object = None) -> tuple[dict[str, str], Any]:
    """The headers and the JSON of an answer that must be good."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        body = None if content is None else json.dumps(content)
        connection.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        assert response.status == 200, text
        return {name.lower(): value for name, value in response.getheaders()}, json.loads(text)
    finally:
        connection.close()


@contextmanager
def served(*arguments: object) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A running `nmt serve`, and its port."""
    command = [*NMT, "serve", *map(str, arguments), "--port", "0", "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.fullmatch(r"nmt: serving 1 model on http://127\.0\.0\.1:(\d+) \(Ctrl-C stops\)\n", line)
        assert address, line + process.stderr.read()
        yield process, int(address[1])
    finally:
        process.kill()
        process.communicate()


def test_it_agrees_with_the_command_and_python_and_finishes_what_it_accepted(model: Path) -> None:
    written = good(
        nmt("translate", model, "--threads", 1, "--format", "jsonl", "--n-best", "3", stdin="\n".join(LINES).encode())
    )
    by_command = [json.loads(line)["hypotheses"] for line in written.splitlines()]
    translator = toolkit.load(model, device="cpu")
    by_python = translator.translate(LINES, n_best=3)
    with served(model, "--max-characters", "50000") as (process, port), ThreadPoolExecutor(1) as threads:
        fields = {"source": "en", "target": "de", "n_best": 3, "alignment": True}
        headers, texts = ask(port, "/translate", {"q": LINES, **fields})
        long = {"q": "\n".join(["a dog and a cat"] * 200), "target": "de"}
        answer = threads.submit(ask, port, "/translate", long)
        time.sleep(0.1)
        assert ask(port, "/health")[1] == {"status": "ok"}
        assert not answer.done()
        process.send_signal(signal.SIGTERM)
        assert len(answer.result(60)[1]["translatedText"].splitlines()) == 200
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert '"POST /translate HTTP/1.1" 200' in errors
    assert "Traceback" not in errors
    assert HEADERS.items() <= headers.items()
    by_http = [lines[0]["hypotheses"] if lines else [] for lines in texts["lines"]]
    for command, python_, served_ in zip(by_command, by_python, by_http, strict=True):
        if not python_.source:
            continue
        assert [item["text"] for item in command] == [item["text"] for item in served_]
        assert [item.text for item in python_.hypotheses] == [item["text"] for item in served_]
        for one, other, third in zip(command, served_, python_.hypotheses, strict=True):
            assert one["score"] == pytest.approx(other["score"], abs=2e-4)
            assert third.score == pytest.approx(other["score"], abs=2e-4)
            assert one["log_probability"] == pytest.approx(other["log_probability"], abs=2e-4)
            assert one["alignment"] == other["alignment"]["links"]
            assert one["finished"] == third.finished


def test_bad_options_and_models_are_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    assert "no-model" in bad(nmt("serve", tmp_path / "no-model", "--port", "0"), 1)
    assert "no-device" in bad(nmt("serve", model, "--port", "0", "--device", "no-device"), 2)
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        listener.listen()
        message = bad(nmt("serve", model, "--port", port), 1)
    assert message.startswith(f"Cannot listen on 127.0.0.1, port {port}: ")
    assert message.endswith("Choose others with --host and --port.")


def test_without_the_extra_the_message_says_what_to_install(model: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; sys.argv[0] = 'nmt'; from nmt.cli import main; main()"
    message = bad(python(code, "serve", model), 2)
    assert message == '`nmt serve` needs the package uvicorn: pip install "attentional-nmt[serve]".'


# --- the engine -----------------------------------------------------------------------------------------------------


def test_models_of_one_name_are_told_apart(engine: Engine) -> None:
    assert [model.name for model in engine.models] == ["model", "model (2)"]


@pytest.mark.parametrize("weights", ["posterior", "attention"])
def test_a_known_translation_is_scored_and_aligned(engine: Engine, model: Path, weights: AlignmentWeights) -> None:
    translator, pair = toolkit.load(model, device="cpu"), ("the cat sees a dog", "die Katze sieht einen Hund")
    expected = translator.align(pair) if weights == "posterior" else translator.score(pair)
    [[line]] = engine.run(Setting(1, is_scored=True, is_aligned=True, posterior=weights == "posterior"), [pair])
    assert line.pair is not None
    assert np.allclose(line.pair.alignment.weights, expected.alignment, atol=1e-5)
    assert line.pair.links == expected.links
    assert line.score == pytest.approx(expected.score, abs=1e-4)


@pytest.mark.parametrize("prefix", ["die Ka", "die Katze ", "die"])
def test_the_next_word_after_a_prefix_has_the_probability_of_its_tokens(
    engine: Engine, model: Path, prefix: str
) -> None:
    translator, line = toolkit.load(model, device="cpu"), "the cat sees a dog"
    [[served]] = engine.run(Setting(0, has_prefix=True), [(line, prefix)])
    assert served.text.startswith(prefix)
    known = translator.score((line, served.text))
    words, owners = known.words_of_tokens(0)
    place = next(at for at, word in enumerate(words) if word not in prefix.split())
    expected = sum(known.hypotheses[0].token_log_probs[at] for at, word in enumerate(owners) if word == place)
    assert served.next_word is not None
    assert served.next_word.probability == pytest.approx(math.exp(expected), abs=1e-4)
    assert engine.run(Setting(0), [line])[0][0].next_word is None


@pytest.mark.parametrize(("prefix", "word"), [("京", "都市"), ("京都", "都市"), ("京都市", "は"), ("京都市は", None)])
def test_the_next_word_of_text_without_spaces_is_the_next_token(prefix: str, word: str | None) -> None:
    hypothesis = SimpleNamespace(token_log_probs=[-1.0, -2.0, -3.0, -4.0])
    reading = SimpleNamespace(words_of_tokens=lambda rank: (("京", "都市", "は"), (0, 1, 2)), hypotheses=[hypothesis])
    chances = {"都市": math.exp(-2), "は": math.exp(-3)}
    assert _next_word(reading, 0, prefix) == (word and (word, chances[word]))  # type: ignore[arg-type]


def test_translations_with_a_prefix_differ_in_the_next_word(engine: Engine) -> None:
    [hypotheses] = engine.run(Setting(0, has_prefix=True, n_best=4), [("the cat sees a dog", "die ")])
    words = [hypothesis.text.split()[1] for hypothesis in hypotheses if len(hypothesis.text.split()) > 1]
    assert len(words) == len({*words}) >= 2
    assert all(
        0 < hypothesis.next_word.probability <= 1 for hypothesis in hypotheses if hypothesis.next_word is not None
    )
    assert all(hypothesis.text.startswith("die") for hypothesis in hypotheses)


def test_characters_that_the_model_does_not_know_are_named_unless_the_line_stays_as_it_is(engine: Engine) -> None:
    lines = [hypotheses[0] for hypotheses in engine.run(Setting(0), ["a dog", "a dog ☂ 中", "12 ☂"])]
    assert [line.unknown for line in lines] == ["", "☂中", ""]
    assert lines[2].text == "12 ☂"


def test_an_alignment_that_would_be_megabytes_is_left_out(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.serving.engine._MOST_WEIGHTS", 3)
    [[line]] = engine.run(Setting(0, is_scored=True, is_aligned=True), [("a dog", "a cat")])
    assert line.pair is None
