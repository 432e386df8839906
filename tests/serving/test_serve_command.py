"""`nmt serve` as a process: the same results as the command line, its messages, and how it ends."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import nmt as toolkit
from nmt.alignment.translation import Translation
from nmt.alignment.weights import AlignmentWeights
from nmt.bundle.folder import Bundle
from nmt.cli.serving import serve
from nmt.errors import DataError, UsageError
from nmt.serving import decoder_process, running
from nmt.serving.decoder_process import DecoderProcess, LostDecoderError, ProcessOptions, start_decoders
from nmt.serving.engine import Engine, unique
from nmt.serving.listening import bind
from nmt.serving.middleware import Access
from nmt.serving.work import EngineOptions, LineResult, LineTask, Setting
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import NMT, ROOT, bad, good, nmt
from tests.serving.fakes import wait_until

LINES = ["a dog runs", "the cat", "", "a dog and a cat run and run"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was not trained, whose outputs are short."""
    folder = tmp_path_factory.mktemp("serve") / "model"
    torch.manual_seed(1)
    subwords = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    Bundle.fresh(small_recipe(), subwords, subwords).save(folder)
    return folder


class Served:
    """A running `nmt serve`."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process, self.port = process, port

    def ask(self, path: str, content: object) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(content), {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            return json.loads(response.read())
        finally:
            connection.close()

    def read(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return str(answer.read().decode())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; returns the exit status and the rest of stderr. No process that decodes may outlive the server."""
        decoders = self.decoders()
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        wait_until(lambda: not any(_is_alive(decoder) for decoder in decoders))
        return self.process.returncode, errors

    def decoders(self) -> list[str]:
        """The numbers of the processes that decode; none where /proc does not tell."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return children.read_text().split() if children.exists() else []


def _is_alive(number: str) -> bool:
    """Whether a process runs; of one that has ended and was not waited for, the command line is empty."""
    command = Path(f"/proc/{number}/cmdline")
    return command.exists() and command.read_bytes() != b""


@contextmanager
def served(*arguments: object, **variables: str) -> Iterator[Served]:
    command = [*NMT, "serve", *map(str, arguments), "--port", "0", "--threads", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.fullmatch(r"nmt: serving [12] models? on http://127\.0\.0\.1:(\d+) \(Ctrl-C stops\)\n", line)
        assert address, line + process.stderr.read()
        yield Served(process, int(address[1]))
    finally:
        process.kill()
        process.communicate()


def test_the_api_http_and_the_command_line_agree(model: Path) -> None:
    written = good(nmt("translate", model, "--format", "jsonl", "--n-best", "3", stdin="\n".join(LINES).encode()))
    by_command = [json.loads(line)["hypotheses"] for line in written.splitlines()]
    by_python = list(toolkit.load(model, device="cpu", n_best=3).translate(LINES))
    with served(model) as server:
        fields = {"source": "en", "target": "de", "n_best": 3, "alignment": True}
        texts = server.ask("/translate", {"q": LINES, **fields})
        text = server.ask("/translate", {"q": "\n".join(LINES), **fields})
        scored = server.ask("/score", {"q": LINES[0], "translation": by_command[0][-1]["text"], "target": "de"})
        figures = 'nmt_lines_total{model="model"} 7.0', "nmt_batch_lines_sum 7.0"
        wait_until(lambda: all(figure in server.read("/metrics") for figure in figures))
        status, errors = server.end()
    assert status == 0
    by_http = [lines[0]["hypotheses"] if lines else [] for lines in texts["lines"]]
    for command, python, http_ in zip(by_command, by_python, by_http, strict=True):
        if python.source:
            assert [item["text"] for item in command] == [item["text"] for item in http_]
            assert [item.text for item in python.hypotheses] == [item["text"] for item in http_]
            for one, other, third in zip(command, http_, python.hypotheses, strict=True):
                assert one["score"] == pytest.approx(other["score"], abs=2e-4)
                assert third.score == pytest.approx(other["score"], abs=2e-4)
                assert one["log_probability"] == pytest.approx(other["log_probability"], abs=2e-4)
                assert one["alignment"] == other["alignment"]["links"]
    assert text["translatedText"] == "\n".join(texts["translatedText"])
    forced = toolkit.load(model, device="cpu").score((LINES[0], by_command[0][-1]["text"])).hypotheses[0]
    assert scored["log_probability"] == pytest.approx(forced.log_probability, abs=2e-4)
    events = [json.loads(line) for line in errors.splitlines()]
    assert [event["path"] for event in events[:3]] == ["/translate", "/translate", "/score"]


@pytest.fixture(scope="module")
def engine(model: Path) -> Engine:
    return Engine(EngineOptions.of([model], "cpu"))


def test_two_folders_of_one_name_are_told_apart(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "model"
    Bundle.load(model, torch.device("cpu")).save(other)
    engine = Engine(EngineOptions.of([model, other], "cpu"))
    assert [(each.id, each.name) for each in engine.description.models] == [
        ("model", "model"),
        ("model-2", "model (2)"),
    ]
    assert unique(["a", "a-2", "a"], "-{}") == ["a", "a-2", "a-3"]


def test_a_beam_narrower_than_the_list_is_refused(engine: Engine) -> None:
    assert len(engine.run(Setting(0, n_best=2, beam_size=2), [LineTask("the cat")])[0]) == 2
    with pytest.raises(UsageError, match="n_best"):
        engine.run(Setting(0, n_best=3, beam_size=2), [LineTask("a dog")])


def test_each_sentence_of_a_line_is_translated_by_itself(engine: Engine) -> None:
    sentences = ["The cat sees a dog.", "A dog sees the cat."]
    [[line]] = engine.run(Setting(0), [LineTask(" ".join(sentences), aligned=True)])
    apart = engine.run(Setting(0), [LineTask(sentence) for sentence in sentences])
    assert line.text == " ".join(best.text for best, *_ in apart if best.text)
    assert line.pair is not None
    assert line.pair.alignment.source == tuple(" ".join(sentences).split())


def test_what_is_too_long_is_not_scored_or_aligned(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    long = LineTask("a " * 600, "a", aligned=True)
    short = LineTask("a dog", "a cat", aligned=True)
    results = engine.run(Setting(0, "score"), [long, short])
    assert results[0] == ()
    assert results[1][0].pair is not None
    monkeypatch.setattr("nmt.serving.engine.MOST_WEIGHTS", 3)
    assert engine.run(Setting(0, "score"), [short])[0][0].pair is None


def test_a_known_translation_is_aligned_by_the_posterior(engine: Engine, model: Path) -> None:
    translator, pair = toolkit.load(model, device="cpu"), ("the cat sees a dog", "die Katze sieht einen Hund")
    expected: dict[AlignmentWeights, Translation] = {
        "posterior": translator.align(pair),
        "attention": translator.score(pair),
    }
    for weights, translation in expected.items():
        [[line]] = engine.run(Setting(0, "score", weights=weights), [LineTask(*pair, aligned=True)])
        assert line.pair is not None
        assert np.allclose(line.pair.alignment.weights, translation.alignment, atol=1e-5)
        assert line.pair.links == translation.links
        assert line.score == pytest.approx(translation.score, abs=1e-4)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_a_full_disk_for_its_log_does_not_end_it_and_a_signal_finishes_what_was_accepted(model: Path) -> None:
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    command = [*NMT, "serve", str(model), "--port", str(port), "--threads", "1"]
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen(command, stderr=full, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    server = Served(process, port)
    try:
        wait_until(lambda: _answers(server), 60)
        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(
                server.ask, "/translate", {"q": "\n".join(["a dog and a cat"] * 100), "target": "de"}
            )
            wait_until(lambda: 'nmt_characters_total{model="model"}' in server.read("/metrics"))
            process.send_signal(signal.SIGINT)
            assert len(answer.result(60)["translatedText"].splitlines()) == 100
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()


def _answers(server: Served) -> bool:
    try:
        return "ok" in server.read("/health")
    except OSError:
        return False


def test_the_key_comes_from_a_file_or_the_environment(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How requests are refused without it is tested with a server of functions."""
    keys: list[str | None] = []

    def run_server(*_: object, access: Access, **__: object) -> bool:
        keys.append(access.api_key)
        return False

    monkeypatch.setattr(running, "run_server", run_server)
    key = tmp_path / "key"
    key.write_text("secret\nanother\n", encoding="utf-8")
    monkeypatch.delenv("NMT_API_KEY", raising=False)
    serve([model], port=0)
    serve([model], port=0, api_key_file=key)
    monkeypatch.setenv("NMT_API_KEY", "of the environment")
    serve([model], port=0)
    serve([model], port=0, api_key_file=key)
    assert keys == [None, "secret", "of the environment", "secret"]
    key.write_text("\nsecret", encoding="utf-8")
    assert (
        bad(nmt("serve", model, "--api-key-file", key), 1) == f"{key} has no key: its first line must be the API key."
    )


def test_without_the_extra_a_sentence_says_what_to_install(model: Path) -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None; "
        f"sys.argv = ['nmt', 'serve', {str(model)!r}]; from nmt.cli import main; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 2
    assert ended.stderr == 'nmt: `nmt serve` needs the package uvicorn: pip install "attentional-nmt[serve]".\n'


def test_the_process_that_answers_imports_no_torch() -> None:
    code = (
        "import sys, nmt.serving.running, nmt.serving.listening; "
        "print(sorted({'torch', 'datasets', 'sentencepiece'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ended.stdout == "[]\n"


@pytest.fixture(scope="module")
def forks() -> Iterator[None]:
    """Processes are forks of this one, which need not import torch; those of the servers above are not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder_process, "multiprocessing", SimpleNamespace(get_context=lambda _: get_context("fork")))
        patch.setattr(decoder_process, "_SECONDS_TO_END", 0.2)  # a fork holds our end of its pipe, and must be killed
        yield


@pytest.fixture(scope="module")
def decoder(model: Path, forks: None) -> Iterator[DecoderProcess]:
    [decoder], description = start_decoders(ProcessOptions(EngineOptions.of([model], "cpu")), 1)
    assert description.device == "cpu"
    yield decoder
    decoder.close()
    assert not decoder._started.process.is_alive()


def test_an_error_in_a_batch_is_raised_and_the_process_goes_on(decoder: DecoderProcess) -> None:
    first = decoder._started.process.pid
    with pytest.raises(IndexError):
        decoder.run(Setting(5), [LineTask("a")])
    assert len(decoder.run(Setting(0), [LineTask("a")])) == 1
    assert decoder._started.process.pid == first


def test_a_short_batch_is_decoded_beside_a_long_one(decoder: DecoderProcess, engine: Engine) -> None:
    setting = Setting(0, n_best=2, beam_size=5)
    long, short = [LineTask("a dog and a cat run " * 20, aligned=True)], [LineTask("the cat", aligned=True)]
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(decoder.run, setting, long)
        answers = [decoder.run(setting, short) for _ in range(3)]
        assert not answer.done()
        assert _figures(answer.result(60)) == _figures(engine.run(setting, long))
    assert [_figures(each) for each in answers] == [_figures(engine.run(setting, short))] * 3


def _figures(results: Sequence[LineResult]) -> list[list[object]]:
    return [
        [(line.text, round(line.score, 3), None if line.pair is None else line.pair.links) for line in result]
        for result in results
    ]


def test_a_process_that_is_killed_loses_both_batches_and_is_replaced_once(decoder: DecoderProcess) -> None:
    first = decoder._started.process
    with ThreadPoolExecutor(2) as threads:
        answers = [threads.submit(decoder.run, Setting(0), [LineTask("a dog and a cat run " * 100)]) for _ in range(2)]
        wait_until(decoder._started.free.empty)
        first.kill()
        assert [type(answer.exception(60)) for answer in answers] == [LostDecoderError] * 2
    assert not first.is_alive()
    assert len(decoder.run(Setting(0), [LineTask("a dog")])) == 1
    assert decoder._started.free.qsize() == 2


def test_a_killed_process_is_replaced(decoder: DecoderProcess) -> None:
    first = decoder._started.process.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with pytest.raises(LostDecoderError):
        decoder.run(Setting(0), [LineTask("a dog")])
    assert decoder._started.process.pid != first
    assert len(decoder.run(Setting(0), [LineTask("a dog")])) == 1


def test_a_process_that_takes_too_long_is_replaced(decoder: DecoderProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    first = decoder._started.process.pid
    monkeypatch.setattr(decoder, "_options", replace(decoder._options, timeout=0.001))
    with pytest.raises(LostDecoderError):
        decoder.run(Setting(0), [LineTask("a dog and a cat")] * 50)
    assert decoder._started.process.is_alive()
    assert decoder._started.process.pid != first


@pytest.mark.usefixtures("forks")
def test_what_cannot_be_loaded_is_said(model: Path, tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(DataError, match="no-model"):
        serve([tmp_path / "no-model"], port=0, threads=1)
    with pytest.raises(UsageError, match="no-device"):
        serve([model], port=0, threads=1, device="no-device")
    with pytest.raises(DataError, match=r"Choose others with --host and --port\.$"):
        serve([model], host="192.0.2.1")
    assert threading.active_count() == before
