"""`--replace-unknown` of `nmt translate` and `nmt evaluate` as a user runs it."""

import json
from pathlib import Path

import pytest

from nmt.alignment.link_files import read_gold
from tests.commands import good, nmt
from tests.decoding.test_unknown import LINES, unsure

TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that often writes the unknown mark, a text, and a lexicon."""
    root = tmp_path_factory.mktemp("unknown")
    unsure().save(root / "model")
    (root / "text.en").write_bytes(TEXT)
    (root / "text.de").write_text("Hund cat eine\nKatze the\n\nschläft eine\nHund\n")
    (root / "lexicon").write_text("cat\tKätzchen\nthe\tdie\ncat\tKater\n")
    return root


def translate(folder: Path, *arguments: object) -> list[str]:
    settings = ["--beam-size", "3", "--set", "decoding.max_ratio=1", "--threads", "1"]
    return good(nmt("translate", "model", *settings, *arguments, stdin=TEXT, cwd=folder)).splitlines()


def test_marks_become_the_words_that_the_links_name(folder: Path, tmp_path: Path) -> None:
    plain = translate(folder, "--n-best", "2", "--alignments", tmp_path / "plain")
    arguments = ["--replace-unknown", "--n-best", "2", "--alignments", tmp_path / "links"]
    copied, translated = translate(folder, *arguments), translate(folder, *arguments, "--lexicon", "lexicon")
    assert (tmp_path / "links").read_bytes() == (tmp_path / "plain").read_bytes()
    marks = 0
    for row, links in enumerate(read_gold(tmp_path / "links")):
        source_of = {j: LINES[row // 2].split()[i] for i, j in links.sure}
        places = [place for place, word in enumerate(plain[row].split("\t")[2].split()) if word == "⁇"]
        marks += len(places)
        for lines, lexicon in ((copied, {}), (translated, {"cat": "Kätzchen", "the": "die"})):
            expected = plain[row].split("\t")[2].split()
            for place in places:
                expected[place] = lexicon.get(source_of[place], source_of[place])
            assert lines[row].split("\t") == [*plain[row].split("\t")[:2], " ".join(expected)]
    assert marks > 5
    assert any("Kätzchen" in line for line in translated)


def test_the_score_is_that_of_what_is_written(folder: Path, tmp_path: Path) -> None:
    settings = ["model", "--split", "text.{en,de}", "--beam-size", "1", "--bootstrap", "0", "--json"]
    plain = json.loads(good(nmt("evaluate", *settings, cwd=folder)))
    output = tmp_path / "out.de"
    replaced = json.loads(good(nmt("evaluate", *settings, "--replace-unknown", "-o", output, cwd=folder)))
    greedy = nmt("translate", "model", "--beam-size", "1", "--replace-unknown", stdin=TEXT, cwd=folder)
    assert output.read_text() == good(greedy)
    again = good(nmt("evaluate", "--hyp", output, "--ref", "text.de", "--bootstrap", "0", "--json", cwd=folder))
    assert [item["score"] for item in replaced["scores"]] == [item["score"] for item in json.loads(again)["scores"]]
    assert replaced["scores"] != plain["scores"]
