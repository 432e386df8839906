"""`nmt links` as a user runs it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.commands import good, nmt

SOURCE = ["red dog", "red cat", "", "big dog", "dog", "cat"]
TARGET = ["hund rot", "katze rot", "x", "hund gross", "hund", "katze"]
LINKS = ["0-1 1-0", "0-1 1-0", "", "0-1 1-0", "0-0", "0-0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, gold links of it, two lines of it alone."""
    root = tmp_path_factory.mktemp("linking")
    texts = {"text.en": SOURCE * 20, "text.de": TARGET * 20, "gold": LINKS * 20}
    texts |= {"short.en": SOURCE[:2], "short.de": TARGET[:2], "short.gold": ["0-1", "1-0 5-1"]}
    for name, lines in texts.items():
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    for name in ("text.en", "text.de"):
        (root / f"{name}.gz").write_bytes(gzip.compress((root / name).read_bytes()))
    return root


def links(folder: Path, *arguments: object) -> str:
    return good(nmt("links", "-s", "text.en", "-t", "text.de", *arguments, cwd=folder))


def test_each_pair_has_its_line(folder: Path) -> None:
    done = nmt("links", "-s", "text.en", "-t", "text.de", cwd=folder)
    assert good(done).splitlines() == LINKS * 20
    warning, speed = done.stderr.decode().splitlines()
    assert warning.startswith(
        "nmt: Too little text to learn from: 100 lines with words on both sides, where 1,000 or more"
    )
    assert speed.startswith("nmt: 120 lines linked in ")


def test_a_link_may_have_its_confidence(folder: Path, tmp_path: Path) -> None:
    lines = links(folder, "--confidence", "-q").splitlines()
    assert [re.sub(r":(1\.00|0\.[5-9][0-9])(?= |$)", "", line) for line in lines] == LINKS * 20
    (tmp_path / "confident").write_text("".join(f"{line}\n" for line in lines))
    assert links(folder, "--gold", tmp_path / "confident", "-q").startswith("AER 0.0%")  # such a file is read as links


def test_what_was_learned_links_other_text(folder: Path, tmp_path: Path) -> None:
    saved = tmp_path / "links.safetensors"
    assert links(folder, "--save", saved, "-q").splitlines() == LINKS * 20
    short = nmt("links", "-s", "short.en", "-t", "short.de", "--aligner", saved, cwd=folder)
    assert good(short).splitlines() == LINKS[:2]
    assert len(short.stderr.decode().splitlines()) == 1  # it learns nothing, so there is no warning of too little text


def test_text_without_spaces_is_linked_by_characters_and_a_text_split_otherwise_is_named(
    folder: Path, tmp_path: Path
) -> None:
    kana = {"dog": "い", "cat": "ね", "red": "あ", "big": "お"}
    lines = ["".join(kana[word] for word in line.split()) for line in SOURCE] * 20
    (tmp_path / "text.ja").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = nmt("links", "-s", "text.en", "-t", tmp_path / "text.ja", cwd=folder)
    assert good(done).splitlines()[:4] == ["0-0 1-1", "0-0 1-1", "", "0-0 1-1"]
    assert done.stderr.decode().count("The target is written without spaces: its words are its characters.") == 1
    (tmp_path / "tokens.ja").write_text("".join(f"{' '.join(line)}\n" for line in lines), encoding="utf-8")
    saved = tmp_path / "links.safetensors"
    raw = ["-s", "text.en", "-t", tmp_path / "text.ja"]
    good(nmt("links", "-s", "text.en", "-t", tmp_path / "tokens.ja", "--save", saved, cwd=folder))
    for learned in (["--more-source", "text.en", "--more-target", tmp_path / "tokens.ja"], ["--aligner", saved]):
        done = nmt("links", *raw, *learned, cwd=folder)
        assert good(done)
        assert (
            "The target to be linked has no spaces between words, what is learned from has spaces"
            in done.stderr.decode()
        )


def test_lines_of_both_sides_are_read_as_one_file(folder: Path) -> None:
    lines = "".join(f"{source} ||| {target}\n" for source, target in zip(SOURCE * 20, TARGET * 20, strict=True))
    joined = nmt("links", "-", "-q", stdin=lines.encode(), cwd=folder)
    assert good(joined).splitlines() == LINKS * 20


def test_the_links_of_one_direction_and_both_joined(folder: Path) -> None:
    assert (
        re.sub(r":[01]\.[0-9]+", "", links(folder, "--direction", "forward", "--confidence", "-q")).splitlines()
        == LINKS * 20
    )
    assert links(folder, "--direction", "reverse", "-q").splitlines() == LINKS * 20
    assert links(folder, "--symmetrize", "grow-diag-final-and", "-q").splitlines() == LINKS * 20


def test_a_short_text_learns_from_more(folder: Path) -> None:
    more = ["--more-source", "text.en.gz", "--more-target", "text.de.gz"]
    assert good(nmt("links", "-s", "short.en", "-t", "short.de", *more, cwd=folder)).splitlines() == LINKS[:2]


def test_gold_links_give_the_error_rate_alone(folder: Path, tmp_path: Path) -> None:
    assert links(folder, "--gold", "gold", "--bootstrap", 0).startswith("AER 0.0%  precision 100.0%  recall 100.0%  (")
    flipped = links(
        folder, "--gold", "gold", "--gold-order", "target-source", "-o", tmp_path / "links", "--bootstrap", 0
    )
    assert flipped.startswith("AER 0.0%")  # each of these links is there both ways round
    assert (tmp_path / "links").read_text().splitlines() == LINKS * 20
