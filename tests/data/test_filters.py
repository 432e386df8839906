"""Filters drop what they say they drop, and count it once."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data import filters as module
from nmt.data.corpus import ParallelCorpus
from nmt.data.filters import RULES, FilterReport, clean, first_occurrences, keep
from nmt.data.locators import load_corpus
from nmt.recipe import FiltersConfig

lengths = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.booleans()), max_size=20)


def _keep(
    pairs: list[tuple[int, int]], filters: FiltersConfig | None, first: list[bool] | None = None
) -> tuple[list[bool], FilterReport]:
    source, target = (np.array([pair[side] for pair in pairs], np.int32) for side in (0, 1))
    mask, report = keep(source, target, filters, first=None if first is None else np.array(first, np.bool_))
    return mask.tolist(), report


def test_no_filters_keep_everything() -> None:
    assert _keep([(0, 0), (500, 1)], None, [False, False]) == ([True, True], FilterReport({"kept": 2}))


def test_each_pair_is_counted_under_its_first_reason() -> None:
    filters = FiltersConfig(max_length=10, max_ratio=3.0, duplicates=False)
    pairs = [(10, 10), (0, 5), (5, 0), (0, 0), (11, 1), (1, 11), (9, 3), (10, 3), (3, 10), (4, 4), (0, 50)]
    first = [True] * 9 + [False, False]
    mask, report = _keep(pairs, filters, first)
    assert [pair for pair, kept in zip(pairs, mask, strict=True) if kept] == [(10, 10), (9, 3)]
    assert report == FilterReport({"kept": 2, "empty": 4, "too_long": 2, "ratio": 2, "duplicate": 1}, filters)
    assert str(report) == "kept 2 of 11 pairs; dropped 4 empty, 2 longer than 10 tokens, 2 beyond ratio 3, 1 duplicate"


@given(rows=lengths, max_length=st.integers(1, 12), max_ratio=st.none() | st.floats(1, 13), duplicates=st.booleans())
@settings(max_examples=60)
def test_filters_agree_with_a_plain_reading(
    rows: list[tuple[int, int, bool]], max_length: int, max_ratio: float | None, duplicates: bool
) -> None:
    filters = FiltersConfig(max_length=max_length, max_ratio=max_ratio, duplicates=duplicates)
    mask, report = _keep([row[:2] for row in rows], filters, [row[2] for row in rows])
    expected = [
        min(source, target) > 0
        and max(source, target) <= max_length
        and (max_ratio is None or max(source, target) <= max_ratio * min(source, target))
        and (duplicates or first)
        for source, target, first in rows
    ]
    assert mask == expected
    assert (report.kept, report.total) == (sum(expected), len(rows))


TEXT = [
    ("same text", "same text"),  # a copy
    ("same text", "same text"),  # a duplicate first
    ("http://a.very.long/address", "http://eine.lange/adresse"),
    ("1 2 3", "1, 2, 3"),
    ("fine", "хорошо"),
    ("a lam@@ p", "Lampe"),
    ("fine", "gut"),
]
ON_TEXT = FiltersConfig(
    max_length=3, duplicates=False, copies=False, max_word_length=20, min_letters=0.4, scripts=True, marks=False
)


def _corpus(folder: Path, pairs: list[tuple[str, str]]) -> ParallelCorpus:
    for side, name in enumerate(("en", "de")):
        (folder / f"text.{name}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    return load_corpus(str(folder / "text"), source="en", target="de")


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_cleaning_reports_every_rule_with_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(module, "BATCH", batch)
    text = [*TEXT, ("one " * 4, "eins"), ("", "eins")]
    pairs, report = [], FilterReport({}, ON_TEXT, unit="word")
    for part, counts in clean(_corpus(tmp_path, text), ON_TEXT):
        pairs += part
        report += counts
    assert pairs == [TEXT[6]]
    rules = ("copy", "duplicate", "long_word", "letters", "script", "marks")
    places = {rule: row for row, rule in enumerate(rules)} | {"too_long": 7, "empty": 8}
    assert report.removed == dict.fromkeys(places, 1)
    assert report.samples == {rule: [(row + 1, *text[row])] for rule, row in places.items()}
    assert str(report) == (
        "kept 1 of 9 pairs; dropped 1 empty, 1 longer than 3 words, 1 duplicate, 1 copy, "
        "1 with a word of more than 20 characters, 1 with less than 40 % letters, 1 in another script, "
        "1 with marks of subwords or HTML"
    )


def test_text_without_spaces_is_counted_in_characters(tmp_path: Path) -> None:
    """Thai, whose marks belong to their characters; an address within it is a word."""
    text = [("one two three four five six", "หมาสีดำวิ่งเร็ว"), ("a", "แมวนอน"), ("b", "ดูhttps://example.org/นะ")]
    text += [("see it " * 5, "ดู" * 40)]
    [(pairs, report)] = clean(_corpus(tmp_path, text), FiltersConfig(max_length=20, max_ratio=5.5, max_word_length=12))
    assert pairs == [text[0]]
    assert report.removed == {"too_long": 1, "ratio": 1, "long_word": 1}


def test_every_rule_is_counted_and_has_a_reason() -> None:
    report = FilterReport({"kept": 1, **dict.fromkeys(RULES, 2)})
    assert (report.total, str(report).count(" 2 ")) == (1 + 2 * len(RULES), len(RULES))
    assert len({report.reason(rule) for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("at_once", [1, 7, 64, 1000])
def test_only_a_whole_pair_is_a_duplicate(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HASHES", at_once)  # compared at a time
    pairs = [("a", "b"), ("ab", ""), ("", "ab"), ("a", "c"), ("b", "a"), ("a", "b"), ("1 a", "b"), ("ab", "")]
    assert first_occurrences(iter(pairs), len(pairs)).tolist() == [True] * 5 + [False, True, False]
    assert first_occurrences(iter([]), 0).tolist() == []
    pairs = [(f"{row * row % 97}", "x") for row in range(200)]
    assert first_occurrences(pairs, 200).tolist() == [pair not in pairs[:row] for row, pair in enumerate(pairs)]
