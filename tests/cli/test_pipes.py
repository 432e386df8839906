"""A program writes pairs of lines to pipes and waits for each answer."""

import bz2
import gzip
import os
from pathlib import Path

import pytest

from nmt.bundle.folder import Bundle
from nmt.cli.streams import arriving_pairs, read_parallel
from nmt.errors import DataError
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import Running, bad, good, nmt

SOURCE = [*["the dog sees a cat", "", "a cat sleeps", "the old dog sleeps here", "a dog"] * 3, "a cat"]
TARGET = [*["a cat sleeps", "a dog", "the dog sees a cat", "a dog and a cat", "a cat"] * 3, "the dog"]
COMMANDS = {
    "score": ["score", "en-de", "--threads", "2"],
    "align": ["align", "en-de", "--threads", "1"],
    "reverse": ["align", "en-de", "--format", "json", "--reverse", "de-en", "--threads", "2"],
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
    Bundle.fresh(forward, subwords, subwords).save(root / "en-de")
    Bundle.fresh(forward.model_copy(update={"data": turned, "seed": 2}), subwords, subwords).save(root / "de-en")
    return root


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_program_that_waits_for_each_pair_gets_its_answer(folder: Path, command: list[str]) -> None:
    command = [*command, "--batch-tokens", "32"]
    expected = good(nmt(*command, "-s", "text.en", "-t", "text.de", cwd=folder)).splitlines(keepends=True)
    assert len(expected) == len(SOURCE)
    pipes = [folder / "pipe.en", folder / "pipe.de"]
    for pipe in pipes:
        os.mkfifo(pipe)
    answers, output = os.pipe()
    # Opened for both, so that it waits for no reader.
    source, target = (os.open(pipe, os.O_RDWR) for pipe in pipes)
    running = Running(*command, "-s", pipes[0], "-t", pipes[1], "-q", stdout=output, cwd=folder)
    os.close(output)
    with os.fdopen(answers, "rb") as reader:
        start = 0
        for end in (1, 12, 13, len(SOURCE)):
            os.write(source, text(SOURCE[start:end]))
            os.write(target, text(TARGET[start:end]))
            answer = [reader.readline().decode() for _ in range(start, end)]
            assert answer == expected[start:end]
            start = end
        os.close(source)
        os.close(target)
        assert reader.read() == b""
    assert good(running.finish()) == ""
    for pipe in pipes:
        pipe.unlink()


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
@pytest.mark.parametrize("command", ["score", "align"])
def test_a_pipe_may_be_one_side_and_a_file_the_other(folder: Path, command: str, name: str) -> None:
    expected = good(nmt(command, "en-de", "-s", "text.en", "-t", "text.de", cwd=folder)).splitlines(keepends=True)
    ours, theirs = os.pipe()
    answers, output = os.pipe()
    running = Running(command, "en-de", "-s", name, "-t", "text.de", "-q", stdin=ours, stdout=output, cwd=folder)
    os.close(ours)
    os.close(output)
    with os.fdopen(theirs, "wb", buffering=0) as program, os.fdopen(answers, "rb") as reader:
        for line, answer in zip(SOURCE, expected, strict=True):
            program.write(f"{line}\n".encode())
            assert reader.readline().decode() == answer
    assert good(running.finish()) == ""


def test_pipes_of_different_length_are_refused_once_they_end(folder: Path) -> None:
    ended = nmt("score", "en-de", "-s", "/dev/stdin", "-t", "text.de", "-q", stdin=b"a dog\na cat\n", cwd=folder)
    assert bad(ended, 1).startswith("/dev/stdin has 2 lines, but text.de has 16:")


def test_stdin_is_either_side_but_not_both(folder: Path) -> None:
    files = good(nmt("score", "en-de", "-s", "text.en", "-t", "text.de", cwd=folder))
    assert good(nmt("score", "en-de", "-s", "text.en", "-t", "-", stdin=text(TARGET), cwd=folder)) == files
    short = nmt("score", "en-de", "-s", "text.en", "-t", "-", "-q", stdin=b"a dog\n", cwd=folder)
    assert bad(short, 1).startswith("text.en has 16 lines, but stdin has 1:")
    for command in ("score", "align"):
        both = nmt(command, "en-de", "-s", "-", "-t", "-", stdin=text(TARGET), cwd=folder)
        assert bad(both, 2) == "Standard input holds one side of the text: name a file for the other."


@pytest.mark.parametrize(("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_files_have_no_pauses_so_their_windows_are_full(tmp_path: Path, suffix: str, compress: type[bytes]) -> None:
    lines = [f"line {number}" for number in range(150_000)]  # several blocks
    paths = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path, content in zip(paths, (lines, lines[::-1]), strict=True):
        path.write_bytes(compress(text(content)))
    assert list(arriving_pairs(*paths)) == list(zip(lines, lines[::-1], strict=True))
    paths[1].write_bytes(compress(text(lines[:7])))
    with pytest.raises(DataError, match=rf"a{suffix} has 150,000 lines, but .*b{suffix} has 7"):
        list(read_parallel(*paths))
