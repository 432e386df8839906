"""`nmt plot -o page.html` as a user runs it."""

from pathlib import Path
from typing import Any

import pytest

from nmt.bundle.folder import Bundle
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.commands import bad, good, nmt
from tests.plotting.test_explorer import data_of

SOURCE = ["the dog sees a cat", "", "a cat sleeps"]
TARGET = ["a cat sleeps", "a dog", "the dog sees a cat"]
GOLD = ["0-0 1p1 4-2", "", "0-0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, its translation and gold links; two models, which know the same words, and one without attention."""
    root = tmp_path_factory.mktemp("exploring")
    for name, lines in (("text.en", SOURCE), ("text.de", TARGET), ("gold", GOLD), ("many.en", ["a dog"] * 501)):
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    characters = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    words = Subwords.train(TEXT, kind="word", size=13, byte_fallback=False)
    Bundle.fresh(small_recipe(), characters, characters).save(root / "one")
    Bundle.fresh(small_recipe().model_copy(update={"seed": 2}), words, words).save(root / "two")
    Bundle.fresh(small_recipe(attention={"score": "none"}), words, words).save(root / "blind")
    return root


def explore(folder: Path, *arguments: object, stdin: bytes = b"") -> Any:
    """The data of the page that the command writes."""
    output = folder / "page.html"
    output.unlink(missing_ok=True)
    said = good(nmt("plot", "one", *arguments, "-o", output, "-q", "--threads", "1", cwd=folder, stdin=stdin))
    assert said.strip() == str(output)
    return data_of(output.read_text(encoding="utf-8"))


def test_sentences_come_as_arguments_from_a_file_or_from_stdin(folder: Path) -> None:
    lines = ("\n".join(SOURCE) + "\n").encode()
    pages = [explore(folder, *SOURCE), explore(folder, "-i", "text.en"), explore(folder, "-i", "-", stdin=lines)]
    assert pages[0] == pages[1] == pages[2]
    assert pages[0]["languages"] == ["en", "de"]
    assert pages[0]["models"] == ["one"]
    assert [sentence["number"] for sentence in pages[0]["sentences"]] == [
        1,
        3,
    ]  # a blank line counts, but shows nothing
    first = pages[0]["sentences"][0]["readings"][0]
    assert first["words"]["source"] == SOURCE[0].split()
    assert len(first["tokens"]["source"]) > len(first["words"]["source"])
    assert {"length", "score"} <= set(first["figures"]) <= {"length", "score", "entropy"}


def test_references_give_bleu_or_are_read(folder: Path) -> None:
    scored = explore(folder, "-i", "text.en", "-r", "text.de")["sentences"][0]
    assert 0 <= scored["readings"][0]["figures"]["bleu"] <= 100
    assert scored["reference"] == TARGET[0]
    forced = explore(folder, "-i", "text.en", "-r", "text.de", "--force")["sentences"][0]["readings"][0]
    assert forced["words"]["target"] == TARGET[0].split()
    assert "bleu" not in forced["figures"]
    given = explore(folder, SOURCE[0], "--target", TARGET[0])["sentences"][0]["readings"][0]
    assert given == forced


def test_two_models_are_shown_over_gold_links(folder: Path) -> None:
    page = explore(folder, "-i", "text.en", "-r", "text.de", "--gold", "gold", "--compare", "two")
    assert page["models"] == ["one", "two"]
    first = page["sentences"][0]
    assert first["gold"] == {"sure": [[0, 0], [4, 2]], "possible": [[1, 1]]}
    assert [reading["words"]["target"] for reading in first["readings"]] == [TARGET[0].split()] * 2
    assert all(0 <= reading["figures"]["aer"] <= 1 for reading in first["readings"])
    assert first["readings"][1]["tokens"]["target"] == [f"▁{word}" for word in TARGET[0].split()]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["-o", "a.html"], 2, "Give sentences as arguments, or a file of them with -i"),
        (["a dog", "-i", "text.en", "-o", "a.html"], 2, "and not both"),
        (
            ["-i", "many.en", "-o", "a.html"],
            1,
            "A page or a PDF holds at most 500 sentences, but there are 501: choose some",
        ),
        (["a dog", "--subwords", "-o", "a.html"], 2, "leave out --n-best, --rank, --subwords and --font"),
        (
            ["a dog", "--gold", "gold", "-o", "a.html"],
            2,
            "--gold needs the translations: give --target or --reference.",
        ),
        (["a dog", "--force", "-o", "a.html"], 2, "--force needs the translations"),
        (["a dog", "a cat", "--target", "x", "-o", "a.html"], 2, "--target translates one SENTENCE"),
        (
            ["a dog", "-r", "text.de", "-o", "a.html"],
            1,
            "There must be as many reference translations as sentences, but there are 3 for 1.",
        ),
        (
            ["a dog", "--target", "a", "--gold", "gold", "-o", "a.html"],
            1,
            "gold has 3 lines of links for 1 sentence pair",
        ),
        (["a dog", "--compare", "blind", "-o", "a.html"], 1, "blind was trained without attention"),
        ([" ", "-o", "a.html"], 1, "There are no sentences to explore: all lines are blank."),
        (["a dog", "--gold", "nowhere", "--target", "a", "-o", "a.html"], 1, "Cannot read the alignments nowhere"),
        (["-i", "-", "-o", "a.html"], 1, "There is no sentence to plot: the input is empty."),
    ],
)
def test_what_cannot_be_explored(folder: Path, arguments: list[str], status: int, sentence: str) -> None:
    assert sentence in bad(nmt("plot", "one", *arguments, "-q", cwd=folder), status)
    assert not list(folder.glob("a.*"))
