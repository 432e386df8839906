"""`nmt corpora clean`: the cleaned text in two files, counts on stdout, samples on stderr."""

from pathlib import Path

import pytest

from nmt.data.filters import clean
from nmt.data.locators import load_corpus
from nmt.recipe import FiltersConfig
from tests.commands import Finished, good, nmt

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
RULES = "max_length=5 max_ratio=2 duplicates=false copies=false max_word_length=30 min_letters=0.5 scripts=true".split()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "text.tsv"
    path.write_text("en\tde\n" + "".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return path


def cleaned(folder: Path, *options: object, locator: str = "text.tsv") -> Finished:
    return nmt("corpora", "clean", locator, "--source", "en", "--target", "de", "-o", "clean/a", *options, cwd=folder)


def test_each_rule_has_its_count_and_samples(table: Path, tmp_path: Path) -> None:
    ended = cleaned(tmp_path, *(word for rule in RULES for word in ("--set", rule)))
    counts = {rule: count for count, rule in (line.split(maxsplit=1) for line in good(ended).splitlines())}
    dropped = [rule for rule in counts if rule not in ("pairs", "kept")]
    assert (counts["pairs"], counts["kept"]) == ("10", "2")
    assert len(dropped) == 8
    assert {counts[rule] for rule in dropped} == {"1"}
    samples = ended.stderr.decode().splitlines()
    assert samples[::2] == [f"{rule}:" for rule in dropped]
    assert sorted(sample.partition(":")[0] for sample in samples[1::2]) == [f"  line {line}" for line in range(2, 10)]
    assert "  line 7: the cat ||| кошка" in samples
    assert (tmp_path / "clean/a.en").read_text(encoding="utf-8") == "a dog\nthe bird\n"
    assert (tmp_path / "clean/a.de").read_text(encoding="utf-8") == "ein Hund\nder \u2028Vogel\n"
    assert sorted(path.name for path in (tmp_path / "clean").iterdir()) == ["a.de", "a.en"]


def test_without_options_the_filters_are_those_of_a_recipe(table: Path, tmp_path: Path) -> None:
    good(cleaned(tmp_path))
    [(expected, _)] = clean(load_corpus(table, source="en", target="de"), FiltersConfig())
    written = load_corpus(tmp_path / "clean/a", source="en", target="de")
    assert list(written.pairs()) == expected == [pair for pair in PAIRS if all(pair)]
