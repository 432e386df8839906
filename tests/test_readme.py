"""Every block of code of the README runs, in its order and in one folder, on the embedded sample."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from nmt.data.locators import load_corpus
from tests.commands import ROOT, good, nmt, python

README = (ROOT / "README.md").read_text(encoding="utf-8")
SIZES = {"train": 1500, "dev": 10, "test": 20}
SETTINGS = ["training.updates=2", "subwords.size=1000", "decoding.beam_size=2", "decoding.max_ratio=0.1"]
"""What a test has time for; the sample's grammar has too few words for larger vocabularies."""
LINE = re.compile(r"^(?P<command>[^#\n]+?)(?:\s+#.*)?$", re.MULTILINE)


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def write_corpus(folder: Path, names: dict[str, str]) -> None:
    """The first pairs of the sample's splits, as NAME.en and NAME.de."""
    folder.mkdir(parents=True)
    for split, name in names.items():
        corpus = load_corpus(f"sample:{'valid' if split == 'dev' else split}", source="en", target="de")
        for side, lines in (("en", corpus.source), ("de", corpus.target)):
            text = "".join(f"{line}\n" for line in islice(lines, SIZES[split]))
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")


def section(title: str) -> str:
    return README.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def commands_of(text: str) -> Iterator[str]:
    """Each line of the shell blocks of a text without its comment."""
    for block in blocks("sh", text):
        yield from (match["command"] for match in LINE.finditer(block))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: their text, and a small Multi30k."""
    folder = tmp_path_factory.mktemp("readme")
    write_corpus(folder / "data", {"train": "train", "dev": "dev", "test": "test"})
    write_corpus(folder / "corpora/multi30k", {"train": "train", "dev": "val", "test": "test_2016_flickr"})
    return folder


def shorten(paths: list[Path]) -> None:
    """Keep the first lines of some files."""
    for path in paths:
        path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[: SIZES["test"]]), encoding="utf-8")


def run(line: str, folder: Path) -> None:
    """Run one line of a shell script: an `nmt` command that another may be piped into."""
    feeder, _, command = line.rpartition(" | ")
    fed = subprocess.run(feeder, shell=True, cwd=folder, capture_output=True, check=True).stdout
    name, *arguments = shlex.split(command)
    assert name == "nmt"
    if arguments[0] in ("train", "compare"):
        arguments += [part for setting in SETTINGS for part in ("--set", setting)]
    good(nmt(*arguments, stdin=fed, cwd=folder, NMT_CORPORA=str(folder / "corpora")))


@pytest.mark.slow
def test_the_papers_are_compared(folder: Path) -> None:
    for command in commands_of(section("Compare the papers' attentions")):
        run(command, folder)
    table = (folder / "table/table.md").read_text(encoding="utf-8")
    assert all(name in table for name in ("rnnenc", "bahdanau-rnnsearch", "luong-local-p-general"))
    for picture in ("table/by-length.png", "bahdanau.png", "luong.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_ones_own_text_is_translated(folder: Path) -> None:
    for command in commands_of(section("Translate your own language pair")):
        run(command, folder)
    assert len((folder / "test.hyp").read_text(encoding="utf-8").splitlines()) == SIZES["test"]


@pytest.mark.slow
def test_the_example_in_python_runs(folder: Path) -> None:
    if not (folder / "runs/mine").exists():
        run(next(commands_of(section("Translate your own language pair"))), folder)
    [example] = blocks("python")
    good(python(example, cwd=folder))
    assert (folder / "dog.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_alignments_are_seen_and_measured(folder: Path) -> None:
    data = "--set data.train=multi30k/train --set data.valid=multi30k/val"
    run(f"nmt train quickstart --out runs/quickstart {data}", folder)
    for command in commands_of(section("See and measure alignments")):
        run(command, folder)
        if command.startswith("nmt corpora export"):
            shorten([folder / f"sample.{end}" for end in ("en", "de", "align")])
    assert (folder / "alignment.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")


def test_every_block_is_run_here() -> None:
    doors = ("Compare the papers' attentions", "Translate your own language pair", "See and measure alignments")
    commands = [command for door in doors for command in commands_of(section(door))]
    others = [command.rstrip() for command in commands_of(README) if command not in commands]
    assert others == ["tools/quickstart", ". .venv/bin/activate", "tools/test"]  # by hand and by CI
    assert all(os.access(ROOT / script, os.X_OK) for script in others if script.startswith("tools/"))
