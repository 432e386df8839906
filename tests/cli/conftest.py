"""One trained model for all tests of commands."""

from pathlib import Path

import pytest

from tests.cli.word_by_word import write_corpus, write_recipe
from tests.commands import Finished, good, nmt


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus to learn from, with two pairs that are no use: one of 100,000 words, and one of none."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    for side, word in (("en", "dog "), ("de", "Hund ")):
        with (folder / f"train.{side}").open("a") as file:
            file.write(word * 100_000 + "\n\n")
    return folder


@pytest.fixture(scope="session")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Finished]:
    """A run folder, and the process that made it."""
    folder = tmp_path_factory.mktemp("runs")
    return folder / "tiny", nmt("train", write_recipe(corpus), "--out", folder / "tiny", "--threads", "1")


@pytest.fixture(scope="session")
def model(trained: tuple[Path, Finished]) -> Path:
    good(trained[1])
    return trained[0]
