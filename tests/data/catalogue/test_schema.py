"""The entries of the catalogue: complete, strictly read, and true to what their names promise."""

import re
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from nmt.data import catalogue
from nmt.data.catalogue import entries, lookup, names
from nmt.data.catalogue.schema import read_entry
from nmt.text.languages import find_language

PATHS = sorted(catalogue.FOLDER.glob("*.yaml"))
EXPECTED = [
    *("multi30k", "iwslt14-de-en", "iwslt15-en-vi", "iwslt17-de-en", "wmt14-de-en", "wmt14-fr-en", "wmt16-de-en"),
    *("wmt16-ro-en", "wmt17-de-en", "news-commentary-de-en", "europarl-de-en", "opus-tatoeba-de-en"),
    *("opensubtitles-de-en", "opus-100-de-en", "kftt", "hansards-en-fr", "flores-200", "tatoeba-en-de", "tanaka-en-ja"),
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_entry_is_valid(path: Path) -> None:
    item = read_entry(path)
    assert item.name == path.stem
    assert bool(item.languages) != bool(item.pairs)
    assert all(
        re.fullmatch("[0-9a-f]{64}", digest) for split in item.splits.values() for digest in split.sha256.values()
    )
    for name in (item.names[0], item.names[-1]):
        corpus = item.corpus(name)
        assert lookup(name) == corpus
        assert corpus.local_only == bool(item.derivation)
        for language in corpus.languages:
            assert find_language(language) or language == "tl"  # which langcodes calls fil
        for split, lines in corpus.splits.items():
            assert re.fullmatch(r"[A-Za-z0-9][\w.-]*", split)
            assert lines is None or lines > 0
            sources = [source.filled(language="en", code="eng_Latn") for source in corpus.sources(split)]
            assert sources or item.derivation
            assert not [source for source in sources if "{" in f"{source.place}{source.column}"], (
                "a placeholder is left"
            )


@pytest.mark.parametrize("name", EXPECTED)
def test_the_catalogue_has_the_corpora_of_the_field(name: str) -> None:
    assert lookup(name) is not None


def test_no_two_files_have_the_same_text_and_no_two_corpora_the_same_name() -> None:
    digests = [digest for item in entries() for split in item.splits.values() for digest in split.sha256.values()]
    assert len(set(digests)) == len(digests) == 30
    assert len(set(names())) == len(names()) > 200


def test_a_text_of_known_checksum_has_a_known_number_of_lines() -> None:
    assert all(split.lines for item in entries() for split in item.splits.values() if split.sha256)


def test_what_comes_from_a_repository_is_pinned_to_a_commit() -> None:
    urls = {
        url for item in entries() for split in item.splits.values() for source in split.sources for url in source.url
    }
    raw = [url for url in urls if "raw.githubusercontent.com" in url]
    assert raw
    assert all(re.search(r"/[0-9a-f]{40}/", url) for url in raw)


def test_a_languages_line_counts_are_those_of_its_pair() -> None:
    first, second = lookup("wmt14-de-en"), lookup("wmt14-fr-en")
    assert first
    assert second
    assert first.splits == {"train": 4_508_785, "newstest2013": 3000, "newstest2014": 3003}
    assert second.splits["train"] == 40_836_715


def test_sacrebleu_has_the_test_sets_that_sources_name() -> None:
    for corpus in (each.corpus(name) for each in entries() for name in each.names):
        for split, lines in corpus.splits.items():
            assert re.fullmatch(r"[A-Za-z0-9][\w.-]*", split)
            assert lines is None or lines > 0
            sources = [source.sacrebleu.rpartition("/") for source in corpus.sources(split) if source.sacrebleu]
            assert {test_set for test_set, _, _ in sources} <= DATASETS.keys()
            assert not sources or any(pair in DATASETS[test_set].langpairs for test_set, _, pair in sources), (
                corpus.name
            )
