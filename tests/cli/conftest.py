"""One trained model, and one folder of small untrained ones, for all tests of commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.bundle.folder import Bundle
from nmt.recipe import Recipe
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.cli.word_by_word import write_corpus, write_recipe
from tests.commands import Finished, good, nmt

SOURCE = ["the dog sees a cat", "", "a cat sleeps"]
TARGET = ["a cat sleeps", "a dog", "the dog sees a cat"]
TEXTS = {
    "text.en": SOURCE,
    "text.de": TARGET,
    "gold": ["0-0 1p1 4-2", "", "0-0"],
    "long.en": [*SOURCE, "the old dog sleeps here", "dog " * 300, "a dog"],
    "long.de": [*TARGET, "a dog and a cat", "a cat", "the dog"],
    "long.gold": ["0-0 1p1 4-2", "", "0-0 1-1 2p3", "3-2", "", "0p0 1-1"],
    "line.gold": ["0-0 1p1 4-2"],
}
TRANSFORMER = {"kind": "transformer", "embedding": 8, "heads": 2, "encoder": {"layers": 1}, "decoder": {"layers": 3}}


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


def write_lines(folder: Path, texts: dict[str, list[str]]) -> None:
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _recipe(model: dict[str, Any], *, turned: bool, seed: int) -> Recipe:
    tree = small_recipe().model_dump()
    if turned:
        tree["data"] |= {"source": "de", "target": "en"}
    tree["model"] = model if "kind" in model else tree["model"] | model
    return Recipe.model_validate(tree | {"seed": seed})


@pytest.fixture(scope="session")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Texts with gold links, and models of both directions that no test changes; those of words know a word as a token."""
    folder = tmp_path_factory.mktemp("untrained")
    write_lines(folder, TEXTS)
    characters = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    words = Subwords.train(TEXT, kind="word", size=13, byte_fallback=False)
    transformer = TRANSFORMER | {"embedding_scale": 9.0}
    for name, subwords, settings in (
        ("en-de", characters, {}),
        ("de-en", characters, {}),
        ("words-en-de", words, {}),
        ("words-de-en", words, {}),
        ("blind", words, {"attention": {"score": "none"}}),
        ("transformer", words, transformer),
        ("transformer-de-en", words, transformer),
    ):
        turned = name.endswith("de-en")
        Bundle.fresh(_recipe(settings, turned=turned, seed=2 if turned else 1), subwords, subwords).save(folder / name)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    yield folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
