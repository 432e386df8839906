"""A program writes lines to pipes and waits for each answer, with `--window 1`; files may be given as pipes."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import SOURCE, TARGET
from tests.commands import Running, good, nmt

COMMANDS = {
    "translate": ["translate", "en-de", "-i", "{source}"],
    "score": ["score", "en-de", "-s", "{source}", "-t", "text.de"],
    "align": ["align", "en-de", "-s", "text.en", "-t", "{target}", "--reverse", "de-en", "--format", "json"],
}


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_that_waits_for_each_answer_gets_it(untrained: Path, name: str) -> None:
    files = [part.format(source="text.en", target="text.de") for part in COMMANDS[name]]
    expected = good(nmt(*files, cwd=untrained)).splitlines(keepends=True)
    ours, theirs = os.pipe()
    answers, output = os.pipe()
    piped = [part.format(source="/dev/stdin", target="-") for part in COMMANDS[name]]
    running = Running(*piped, "--window", 1, "--threads", 2, "-q", stdin=ours, stdout=output, cwd=untrained)
    os.close(ours)
    os.close(output)
    with os.fdopen(theirs, "wb", buffering=0) as program, os.fdopen(answers, "rb") as reader:
        for line, answer in zip(TARGET if name == "align" else SOURCE, expected, strict=True):
            program.write(text([line]))
            assert reader.readline().decode() == answer
    assert good(running.finish()) == ""
