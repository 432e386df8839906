"""Any table of texts and labels, on small generated ones."""

import csv
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from csv_labels import main
from words import WORD, key

from tests.classification.programs import Inside, cells, is_png

GOOD, BAD = ("wonderful", "superb", "lovely", "brilliant"), ("awful", "dreadful", "boring", "clumsy")
OTHER = "the a film plot actor scene story and was in it we saw with music end house day".split()


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([header, *rows])
    return path


def review(author: random.Random, telling: Sequence[str]) -> str:
    words = [*author.choices(OTHER, k=author.randint(5, 15)), *(f"{word.capitalize()}!" for word in telling)]
    return " ".join(author.sample(words, len(words)))


@pytest.fixture(scope="module")
def sentiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 reviews with one telling word each."""
    author = random.Random(1)
    classes = [author.choice(["positive", "negative"]) for _ in range(400)]
    rows = [
        (place, review(author, [author.choice(GOOD if name == "positive" else BAD)]), name)
        for place, name in enumerate(classes)
    ]
    return write(tmp_path_factory.mktemp("tables") / "reviews.csv", ("id", "review", "sentiment"), rows)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inside:
    return Inside(main, capsys, monkeypatch)


def test_sentiment_is_learned_reported_and_drawn(run: Inside, sentiment: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "weights.html", tmp_path / "weights.png"
    options = ["--text", "review", "--label", "sentiment", "--epochs", 4, "-o", page, "-o", picture]
    output, errors = run(sentiment, *options)
    rows = cells(output)
    assert [row[0] for row in rows] == ["negative", "positive"]
    assert sum(int(row[1]) for row in rows) == 80
    assert all(float(figure) > 0.95 for row in rows for figure in row[2:])
    assert "of 80 test texts" in output
    assert len([line for line in errors.splitlines() if line.startswith("Epoch ")]) == 4
    assert page.read_text(encoding="utf-8").count("<article>") == 50
    assert is_png(picture)


def test_new_lines_are_classified_also_by_a_kept_classifier(run: Inside, sentiment: Path, tmp_path: Path) -> None:
    new, kept = tmp_path / "new.txt", tmp_path / "kept.pt"
    new.write_text("the plot was superb\n\nin the\x85house we saw a DREADFUL day\n", encoding="utf-8")
    options = ["--text", "review", "--label", "sentiment", "--epochs", 4]
    output, errors = run(sentiment, *options, "--sentences", "en", "--classify", new, "--save", kept)
    labels, probabilities, lines, words = zip(*(line.split("\t") for line in output[:-1].split("\n")), strict=True)
    assert lines == ("the plot was superb", "", "in the\x85house we saw a DREADFUL day")
    assert (labels[0], labels[2]) == ("positive", "negative")
    assert float(dict(pair.split(":") for pair in probabilities[2].split(" "))["negative"]) > 0.9
    weights = {word: float(weight) for word, weight in (pair.split(":") for pair in words[2].split(" "))}
    assert max(weights, key=weights.__getitem__) == "DREADFUL"
    assert sum(weights.values()) == pytest.approx(1, abs=0.01)
    assert "| positive |" in errors
    assert run("--load", kept, "--classify", new) == (output, "")
    assert run.sentence("--load", new, "--classify", new).startswith(f"{new} is no classifier that --save has written")


def test_several_columns_are_labels_of_which_a_text_has_any(run: Inside, tmp_path: Path) -> None:
    author = random.Random(2)
    marks = [(author.random() < 0.5, author.random() < 0.5) for _ in range(400)]
    rows = [(review(author, ["clumsy"] * rude + ["awful"] * angry), int(rude), int(angry)) for rude, angry in marks]
    table = write(tmp_path / "comments.tsv", ("comment", "rude", "angry"), rows)
    output, _ = run(table, "--text", "comment", "--label", "rude", "--label", "angry", "--encoder", "none")
    assert [row[0] for row in cells(output)] == ["rude", "angry"]
    assert all(float(figure) > 0.95 for row in cells(output) for figure in row[2:])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "There is no file"),
        (b"", "table.csv has 0 texts with labels"),
        (b"id,text\n1,a\n", "table.csv, line 1: needs the columns text and label, but has id, text."),
        (b"text,label\na,b\nc\n", "table.csv, line 3: the number of columns is 1, but 2 in the first line."),
        (b"text,label\n\xe9t\xe9,good\n", "table.csv, line 2: not valid UTF-8 (byte 0xE9); "),
        (b"text,label\na,good\nb,bad\n", "has 2 texts with labels, but training needs at least 20."),
        (b"text,label\n" + b"a film,good\n" * 30, "holds only 'good', so there is nothing to learn."),
        (b"text,label\n" + b"".join(b"a,%d\n" % n for n in range(400)), "has 400 classes in 400 texts, too many"),
    ],
)
def test_a_wrong_table_is_one_message(run: Inside, tmp_path: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / "table.csv").write_bytes(content)
    assert problem in run.sentence(tmp_path / "table.csv", "--text", "text", "--label", "label")


def test_options_that_do_not_fit_are_refused(run: Inside, sentiment: Path) -> None:
    for options, problem in (
        (["--load", "x.pt"], "--load classifies the lines of --classify, without a table"),
        ([sentiment, "--text", "a", "--label", "b", "--save", "no/such"], "--save: there is no folder no"),
    ):
        _, errors = run(*options, status=2)
        assert errors.splitlines()[-1].endswith(problem)


def test_words_are_known_without_capitals_and_outer_punctuation() -> None:
    assert [*map(key, WORD.findall("“Don't,” she  said ... 3.5!"))] == ["don't", "she", "said", "...", "3.5"]
    assert WORD.findall("東京は good") == ["東", "京", "は", "good"]
