"""`nmt plot -o page.html` as a user runs it."""

from pathlib import Path
from typing import Any

from tests.cli.conftest import SOURCE, TARGET
from tests.commands import good, nmt
from tests.plotting.test_explorer import data_of
from tests.plotting.test_heatmap import texts


def explore(untrained: Path, output: Path, *arguments: object, stdin: bytes = b"") -> Any:
    """The data of the page that the command writes."""
    options = ["-o", output, "-q", "--threads", "1"]
    assert good(nmt("plot", "en-de", *arguments, *options, cwd=untrained, stdin=stdin)).strip() == str(output)
    return data_of(output.read_text(encoding="utf-8"))


def test_sentences_come_as_arguments_from_a_file_or_from_stdin(untrained: Path, tmp_path: Path) -> None:
    lines = ("\n".join(SOURCE) + "\n").encode()
    page = explore(untrained, tmp_path / "a.html", *SOURCE)
    assert page == explore(untrained, tmp_path / "b.html", "-s", "text.en")
    assert page == explore(untrained, tmp_path / "c.html", "-s", "-", stdin=lines)
    assert (page["languages"], page["models"]) == (["en", "de"], ["en-de"])
    assert [sentence["number"] for sentence in page["sentences"]] == [1, 3]  # a blank line counts, but shows nothing
    first = page["sentences"][0]["readings"][0]
    assert first["words"]["source"] == SOURCE[0].split()
    assert len(first["tokens"]["source"]) > len(first["words"]["source"])
    assert {"length", "score"} <= set(first["figures"]) <= {"length", "score", "entropy"}


def test_references_give_bleu_and_targets_are_read(untrained: Path, tmp_path: Path) -> None:
    source = ["-s", "text.en"]
    scored = explore(untrained, tmp_path / "a.html", *source, "-r", "text.de")["sentences"][0]
    assert 0 <= scored["readings"][0]["figures"]["bleu"] <= 100
    assert scored["reference"] == TARGET[0]
    forced = explore(untrained, tmp_path / "b.html", *source, "-t", "text.de")["sentences"][0]["readings"][0]
    assert forced["words"]["target"] == TARGET[0].split()
    assert "bleu" not in forced["figures"]
    given = explore(untrained, tmp_path / "c.html", SOURCE[0], "--translation", TARGET[0])
    assert given["sentences"][0]["readings"][0] == forced


def test_two_models_are_shown_over_gold_links(untrained: Path, tmp_path: Path) -> None:
    options = ["-s", "text.en", "-t", "text.de", "--gold", "gold", "--compare", "words-en-de"]
    page = explore(untrained, tmp_path / "page.html", *options)
    assert page["models"] == ["en-de", "words-en-de"]
    first = page["sentences"][0]
    assert first["gold"] == {"sure": [[0, 0], [4, 2]], "possible": [[1, 1]]}
    assert [reading["words"]["target"] for reading in first["readings"]] == [TARGET[0].split()] * 2
    assert all(0 <= reading["figures"]["aer"] <= 1 for reading in first["readings"])
    assert first["readings"][1]["tokens"]["target"] == [f"▁{word}" for word in TARGET[0].split()]


def test_links_of_an_aligner_are_shown_without_a_model(untrained: Path, tmp_path: Path) -> None:
    arguments = ["-s", "text.en", "-t", "text.de", "--links", "gold", "--gold", "gold", "-q", "-o"]
    assert good(nmt("plot", *arguments, tmp_path / "page.html", cwd=untrained)).strip() == str(tmp_path / "page.html")
    page = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert (page["models"], [sentence["number"] for sentence in page["sentences"]]) == (["gold"], [1, 3])
    [reading] = page["sentences"][0]["readings"]
    assert reading["links"] == [[0, 0], [1, 1], [4, 2]]
    assert (reading["words"]["source"], reading["words"]["target"]) == (SOURCE[0].split(), TARGET[0].split())
    assert (reading["tokens"], reading["figures"]) == (None, {"length": 5.0, "aer": 0.0})
    good(nmt("plot", *arguments, tmp_path / "a.svg", cwd=untrained))
    drawn = texts(tmp_path / "a.svg")
    assert {"line 1 · AER 0.0%", "link", "sure gold link", "possible gold link", *SOURCE[2].split()} <= set(drawn)
    assert not {"attention weight", "1.00"} & set(drawn)
