"""`nmt corpora clean`: the cleaned text in two files, counts on stdout, samples on stderr."""

from pathlib import Path

import pytest

from nmt.data.filters import clean
from nmt.data.locators import load_corpus
from nmt.recipe import FiltersConfig
from nmt.runtime.wording import excerpt
from tests.commands import Finished, bad, good, nmt

PAIRS = [
    ("a dog", "ein Hund"),
    ("a dog", "ein Hund"),
    ("Berlin", "Berlin"),
    ("", "leer"),
    ("see https://example.org/a/rather/long/address", "siehe dort"),
    ("12 + 3", "10 + 5"),
    ("the cat", "кошка"),
    ("one two three four five six", "eins zwei drei vier fünf sechs"),
    ("one two three", "eins"),
    ("the bird", "der \u2028Vogel"),
]
RULES = ["--max-length", 5, "--max-ratio", 2, "--no-duplicates", "--no-copies", "--max-word-length", 30]
RULES += ["--min-letters", 0.5, "--scripts"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "text.tsv"
    path.write_text("en\tde\n" + "".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return path


def cleaned(folder: Path, *options: object, locator: str = "text.tsv") -> Finished:
    return nmt("corpora", "clean", locator, "--source", "en", "--target", "de", "-o", "clean/a", *options, cwd=folder)


def test_each_rule_has_its_count_and_samples(table: Path, tmp_path: Path) -> None:
    ended = cleaned(tmp_path, *RULES)
    assert good(ended).splitlines() == [
        "10  pairs",
        " 1  empty",
        " 1  longer than 5 words",
        " 1  beyond ratio 2",
        " 1  duplicate",
        " 1  copy",
        " 1  with a word of more than 30 characters",
        " 1  with less than 50 % letters",
        " 1  in another script",
        " 2  kept",
    ]
    assert ended.stderr.decode().splitlines() == [
        "empty:",
        "  line 4:  ||| leer",
        "longer than 5 words:",
        "  line 8: one two three four five six ||| eins zwei drei vier fünf sechs",
        "beyond ratio 2:",
        "  line 9: one two three ||| eins",
        "duplicate:",
        "  line 2: a dog ||| ein Hund",
        "copy:",
        "  line 3: Berlin ||| Berlin",
        "with a word of more than 30 characters:",
        "  line 5: see https://example.org/a/rather/long/address ||| siehe dort",
        "with less than 50 % letters:",
        "  line 6: 12 + 3 ||| 10 + 5",
        "in another script:",
        "  line 7: the cat ||| кошка",
    ]
    assert (tmp_path / "clean/a.en").read_text(encoding="utf-8") == "a dog\nthe bird\n"
    assert (tmp_path / "clean/a.de").read_text(encoding="utf-8") == "ein Hund\nder \u2028Vogel\n"
    assert sorted(path.name for path in (tmp_path / "clean").iterdir()) == ["a.de", "a.en"]


def test_without_options_the_filters_are_those_of_a_recipe(table: Path, tmp_path: Path) -> None:
    good(cleaned(tmp_path))
    [(expected, _)] = clean(load_corpus(table, source="en", target="de"), FiltersConfig())
    written = load_corpus(tmp_path / "clean/a", source="en", target="de")
    assert list(written.pairs()) == expected == [pair for pair in PAIRS if all(pair)]


def test_clean_text_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "text.tsv").write_text("en\tde\na dog\tein Hund\n", encoding="utf-8")
    ended = cleaned(tmp_path, *RULES)
    assert good(ended).splitlines() == ["1  pair", "1  kept"]
    assert ended.stderr == b""


@pytest.mark.parametrize("code", ["en", "de"])
def test_no_file_is_overwritten(table: Path, tmp_path: Path, code: str) -> None:
    (tmp_path / "clean").mkdir()
    (tmp_path / f"clean/a.{code}").write_text("mine\n")
    assert f"clean/a.{code} already exists: move it, or" in bad(cleaned(tmp_path), 2)
    assert [path.read_text() for path in (tmp_path / "clean").iterdir()] == ["mine\n"]


def test_nothing_left_is_an_error_and_no_file(table: Path, tmp_path: Path) -> None:
    sentence = bad(cleaned(tmp_path, "--max-word-length", 1), 1)
    assert sentence.startswith("No pair of text.tsv passes the filters (kept 0 of 10 pairs; dropped 1 empty, ")
    assert not list((tmp_path / "clean").iterdir())


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--max-length", "0"], 2, "'--max-length'"),
        (["--max-length", "99999999999"], 2, "data.filters.max_length"),
        (["--max-ratio", "0.5"], 2, "'--max-ratio'"),
        (["--max-ratio", "inf"], 2, "data.filters.max_ratio"),
        (["--min-letters", "50"], 2, "'--min-letters'"),
        (["--language", "-1"], 2, "'--language'"),
        (["--target", "tlh", "--scripts"], 2, "does not know how 'tlh' is written"),
    ],
)
def test_bad_options_are_a_sentence(tmp_path: Path, options: list[str], status: int, message: str) -> None:
    (tmp_path / "text.tsv").write_text("en\ttlh\tde\na\tb\tc\n")
    assert message in bad(cleaned(tmp_path, *options), status)
    assert not list(tmp_path.glob("clean/*"))


def test_a_text_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    assert "There is no file nowhere.tsv." in bad(cleaned(tmp_path, locator="nowhere.tsv"), 1)
    assert not (tmp_path / "clean").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("short", "short"), ("exactly8", "exactly8"), ("nine char", "nine ch…"), ("a\x1b[0mb", "a\\x1b[0…"), ("", "")],
)
def test_an_excerpt_fits_and_can_be_printed(text: str, expected: str) -> None:
    assert excerpt(text, 8) == expected
