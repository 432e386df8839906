"""The entries of the catalogue: complete, strictly read, and true to what their names promise."""

import re
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.dataset import DATASETS

from nmt.data import catalogue
from nmt.data.catalogue import entries, lookup, names
from nmt.data.catalogue.schema import read_entry
from nmt.errors import DataError
from nmt.text.languages import find_language
from tests.data.catalogue.toy import entry, write_entry

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
    for name in (item.names[0], item.names[-1]):
        corpus = item.corpus(name)
        assert lookup(name) == corpus
        assert corpus.local_only == bool(item.derivation)
        for language in corpus.languages:
            assert find_language(language) or language == "tl"  # which langcodes calls fil
        for split in corpus.splits:
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


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"license": None}, "license: Field required."),
        ({"color": "red"}, "color: Extra inputs are not permitted."),
        ({"pairs": ["en-de"]}, "the entry: Value error, an entry has either languages or pairs."),
        ({"splits": {}}, "splits: Dictionary should have at least 1 item after validation, not 0."),
        ({"splits": {"a/b": {"sources": [{"hub": "a:b"}]}}}, "splits.a/b.[key]: String should match pattern"),
        ({"splits": {"train": {}}}, "Value error, train has no source, and the entry no derivation."),
        ({"splits": {"train": {"sources": [{"url": "file:///etc/passwd"}]}}}, "a url begins with https:// or http://."),
        ({"splits": {"train": {"sources": [{"url": "https://a/{lang}"}]}}}, "has the unknown placeholder {lang}."),
        (
            {"splits": {"train": {"sources": [{"url": "https://a", "hub": "a:b"}]}}},
            "a source is one of url, hub and sac",
        ),
        ({"splits": {"train": {"sources": [{"hub": "a:b", "member": "c"}]}}}, "member and format belong to a url."),
        ({"splits": {"train": {"lines": 0, "sources": [{"hub": "a:b"}]}}}, "greater than or equal to 1"),
        (
            {"splits": {"train": {"sha256": {"en": "abc"}, "sources": [{"hub": "a:b"}]}}},
            "splits.train.sha256.en: String",
        ),
    ],
)
def test_a_wrong_entry_is_named_with_its_key(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    write_entry(tmp_path, entry({"train": {"sources": [{"hub": "a/b:train"}]}}))
    assert read_entry(tmp_path / "toy.yaml").name == "toy"
    write_entry(tmp_path, entry({"train": {"sources": [{"hub": "a/b:train"}]}}) | change)
    if change.get("license", "") is None:
        (tmp_path / "toy.yaml").write_text(re.sub("license.*\n", "", (tmp_path / "toy.yaml").read_text()))
    with pytest.raises(DataError) as caught:
        read_entry(tmp_path / "toy.yaml")
    assert str(caught.value).startswith(f"{tmp_path}/toy.yaml: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("text", ["{", "name: a\nname: b\n", "a: *b\n"])
def test_what_is_not_yaml_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "toy.yaml").write_text(text)
    with pytest.raises(DataError, match=rf"^Cannot read {tmp_path}/toy\.yaml: "):
        read_entry(tmp_path / "toy.yaml")


def test_sacrebleu_has_the_test_sets_that_sources_name() -> None:
    for corpus in (each.corpus(name) for each in entries() for name in each.names):
        for split in corpus.splits:
            sources = [source.sacrebleu.rpartition("/") for source in corpus.sources(split) if source.sacrebleu]
            assert {test_set for test_set, _, _ in sources} <= DATASETS.keys()
            assert not sources or any(pair in DATASETS[test_set].langpairs for test_set, _, pair in sources), (
                corpus.name
            )
