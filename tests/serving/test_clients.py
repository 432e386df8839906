"""Clients of LibreTranslate from PyPI and npm, and a fuzzer of OpenAPI, as their users install them."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nmt.serving.work import ModelDescription
from tests.serving.fakes import MODELS, Running, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PYTHON_CLIENTS = [
    "libretranslatepy==2.1.4",
    "libretranslate-aio==0.1.3",
    "deep-translator==1.11.4",
    "schemathesis==4.32.5",
]
NODE_CLIENTS = ["libretranslate@1.0.1", "translate@3.1.0"]
CHECKS = """
[checks]
enabled = false
not_a_server_error.enabled = true
status_code_conformance.enabled = true
content_type_conformance.enabled = true
response_headers_conformance.enabled = true
response_schema_conformance.enabled = true
negative_data_rejection.enabled = true
positive_data_acceptance.enabled = true
unsupported_method.enabled = true

# A schema cannot say that bytes are text, let alone that they are a file of a format.
[[operations]]
include-path = "/translate_file"
checks.positive_data_acceptance.enabled = false
"""

LIBRETRANSLATEPY = """
from libretranslatepy import LibreTranslateAPI
client = LibreTranslateAPI(ADDRESS)
assert client.translate("a b c", "en", "de") == "c b a"
assert client.detect("a") == [{"language": "en", "confidence": 100}]
assert "de" in [language["code"] for language in client.languages()]
"""
LIBRETRANSLATE_AIO = """
from urllib.request import urlopen
from libretranslate_aio import LibreTranslate
with LibreTranslate(ADDRESS) as client:
    assert client.translate("a b c", "en", "de").translated_text == "c b a"
    answer = client.translate(["a b", "c"], "auto", "de", alternatives=1)
    assert answer.translated_text == ["b a", "c"]
    assert answer.alternatives == [["b a-1"], ["c-1"]]
    assert client.translate("<p>a b</p>", "en", "de", format="html").translated_text == "<p>b a</p>"
    assert client.detect("a")[0].language == "en"
    assert client.languages()[0].targets == ["de"]
    assert client.frontend_settings().char_limit == 5000
    assert client.health()
    with open("notes.txt", "w") as file:
        file.write("a b c")
    translated = client.translate_file("notes.txt", "en", "de")
    with urlopen(translated.translated_file_url) as answer:
        assert answer.read() == b"c b a"
"""
DEEP_TRANSLATOR = """
from deep_translator import LibreTranslator
client = LibreTranslator(source="en", target="de", api_key="none", custom_url=ADDRESS + "/")
assert client.translate("a b c") == "c b a"
assert client.translate_batch(["a b", "c d"]) == ["b a", "d c"]
"""
NODE = """
import * as libre from "libretranslate";
import translate from "translate";
import assert from "assert";
const answer = await libre.translate({ query: "a b c", source: "en", target: "de", apiurl: ADDRESS });
assert.equal(answer, "c b a");
Object.assign(translate, { engine: "libre", url: `${ADDRESS}/translate`, key: "none" });
assert.equal(await translate("a b c", { from: "en", to: "de" }), "c b a");
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving(models=MODELS[:1]) as running:
        yield running


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the clients."""
    folder = tmp_path_factory.mktemp("clients")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    run(folder / "bin" / "pip", "install", "-q", *PYTHON_CLIENTS)
    return folder / "bin"


def run(*command: object, folder: Path | None = None) -> None:
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=folder)
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-5000:]


@pytest.mark.parametrize("client", [LIBRETRANSLATEPY, LIBRETRANSLATE_AIO, DEEP_TRANSLATOR])
def test_clients_in_python(server: Running, programs: Path, tmp_path: Path, client: str) -> None:
    run(programs / "python", "-c", f"ADDRESS = 'http://127.0.0.1:{server.port}'\n{client}", folder=tmp_path)


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_clients_in_javascript(server: Running, tmp_path: Path) -> None:
    run("npm", "install", "--silent", *NODE_CLIENTS, folder=tmp_path)
    program = tmp_path / "client.mjs"
    program.write_text(f"const ADDRESS = 'http://127.0.0.1:{server.port}';\n{NODE}")
    run("node", program, folder=tmp_path)


@pytest.mark.parametrize("models", [MODELS[:1], MODELS], ids=["one model", "several"])
def test_answers_are_as_the_openapi_document_says(
    models: Sequence[ModelDescription], programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "schemathesis.toml").write_text(CHECKS)
    fixed = ["--max-examples", "50", "--seed", "1", "--phases", "examples,coverage,fuzzing"]
    with serving(models=models) as running:
        address = f"http://127.0.0.1:{running.port}/openapi.json"
        run(programs / "st", "run", address, *fixed, folder=tmp_path)
