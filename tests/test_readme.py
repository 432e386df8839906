"""What the README tells a newcomer to type does what it says."""

import re
import shlex
import subprocess
from itertools import islice
from pathlib import Path

from nmt.data.corpus import load_corpus
from tests.commands import ROOT, good, nmt


def code_blocks(section: str) -> dict[str, str]:
    """The blocks of code in a section of the README, by language."""
    text = (ROOT / "README.md").read_text().split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    return dict(re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL))


def write_corpus(folder: Path, sizes: dict[str, int]) -> None:
    """The first pairs of the sample's splits, as NAME.en and NAME.de."""
    folder.mkdir()
    for name, size in sizes.items():
        corpus = load_corpus(f"sample:{'valid' if name == 'dev' else name}", source="en", target="de")
        for side, lines in (("en", corpus.source), ("de", corpus.target)):
            (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in islice(lines, size)))


def run(line: str, folder: Path) -> None:
    """Run one line of a shell script: an `nmt` command that another may be piped into."""
    feeder, _, command = line.partition("#")[0].rpartition(" | ")
    fed = subprocess.run(feeder, shell=True, cwd=folder, capture_output=True, check=True).stdout
    name, *arguments = shlex.split(command)
    assert name == "nmt"
    good(nmt(*arguments, stdin=fed, cwd=folder))


def test_five_lines_train_and_use_a_translator_for_ones_own_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path / "data", {"train": 2000, "dev": 10, "test": 20})
    blocks = code_blocks("Your own corpus in five lines")
    # What a test has time for, and what a grammar of few words can be cut into.
    (tmp_path / "mine.yaml").write_text(blocks["yaml"] + "training: {updates: 2}\nsubwords: {size: 1000}\n")
    lines = blocks["sh"].splitlines()
    assert len(lines) == 5
    for line in lines:
        run(line, tmp_path)
    assert len((tmp_path / "test.hyp").read_text().splitlines()) == 20
    assert (tmp_path / "align.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "page.html").read_text()
