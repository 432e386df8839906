"""A program writes lines to pipes and waits for each answer, with `--window 1`; files may be given as pipes."""

import os
from pathlib import Path

import pytest

from nmt.bundle.folder import Bundle
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import Running, good, nmt

SOURCE = ["the dog sees a cat", "", "a cat sleeps", "the old dog sleeps here"]
TARGET = ["a cat sleeps", "a dog", "the dog sees a cat", "a dog and a cat"]
COMMANDS = {
    "translate": ["translate", "model", "-i", "{source}"],
    "score": ["score", "model", "-s", "{source}", "-t", "text.de"],
    "align": ["align", "model", "-s", "text.en", "-t", "{target}", "--reverse", "reverse", "--format", "json"],
}


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two texts, and a model of each direction."""
    root = tmp_path_factory.mktemp("pipes")
    (root / "text.en").write_bytes(text(SOURCE))
    (root / "text.de").write_bytes(text(TARGET))
    subwords = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    forward = small_recipe()
    turned = forward.data.model_copy(update={"source": "de", "target": "en"})
    Bundle.fresh(forward, subwords, subwords).save(root / "model")
    Bundle.fresh(forward.model_copy(update={"data": turned, "seed": 2}), subwords, subwords).save(root / "reverse")
    return root


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_that_waits_for_each_answer_gets_it(folder: Path, name: str) -> None:
    files = [part.format(source="text.en", target="text.de") for part in COMMANDS[name]]
    expected = good(nmt(*files, cwd=folder)).splitlines(keepends=True)
    ours, theirs = os.pipe()
    answers, output = os.pipe()
    piped = [part.format(source="/dev/stdin", target="-") for part in COMMANDS[name]]
    running = Running(*piped, "--window", 1, "--threads", 2, "-q", stdin=ours, stdout=output, cwd=folder)
    os.close(ours)
    os.close(output)
    with os.fdopen(theirs, "wb", buffering=0) as program, os.fdopen(answers, "rb") as reader:
        for line, answer in zip(TARGET if name == "align" else SOURCE, expected, strict=True):
            program.write(text([line]))
            assert reader.readline().decode() == answer
    assert good(running.finish()) == ""
