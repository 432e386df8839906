"""The catalogue: complete, strictly read, and what it names is found where it is or explained where it is not."""

import re
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from nmt.data import catalogue
from nmt.data.catalogue import check, entries, fetching, lookup, named, names
from nmt.data.catalogue.schema import CatalogueEntry
from nmt.data.lines import read_lines
from nmt.data.locators import load_corpus
from nmt.errors import DataError
from nmt.text.languages import find_language

OF_THE_FIELD = """multi30k iwslt14-de-en iwslt15-en-vi iwslt17-de-en wmt14-de-en wmt14-fr-en wmt16-de-en wmt16-ro-en wmt17-de-en
news-commentary-de-en europarl-de-en opus-tatoeba-de-en opensubtitles-de-en opus-100-de-en kftt-ja-en hansards-en-fr flores-200
tatoeba-en-de tanaka-en-ja chr-en az-en en-nso""".split()


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_CORPORA", raising=False)


# --- the entries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_every_entry_is_valid(entry: CatalogueEntry) -> None:
    assert (catalogue.FOLDER / f"{entry.name}.yaml").is_file()
    assert bool(entry.languages) != bool(entry.pairs)
    for split in entry.splits.values():
        assert split.lines or not split.sha256, "a text of known checksum has a known number of lines"
        for url in (url for source in split.sources for url in source.url if "raw.githubusercontent.com" in url):
            assert re.search(r"/[0-9a-f]{40}/", url), "what comes from a repository is pinned to a commit"
    for name in entry.names:
        corpus = entry.corpus(name)
        assert corpus.local_only == bool(entry.derivation)
        assert all(find_language(language) or language in ("tl", "chr", "nso") for language in corpus.languages)
        for split_name, lines in corpus.splits.items():
            assert re.fullmatch(r"[A-Za-z0-9][\w.-]*", split_name)
            assert lines is None or lines > 0
            sources = [source.filled(language="en", code="eng_Latn") for source in corpus.sources(split_name)]
            assert sources or entry.derivation
            assert not any("{" in f"{source.place}{source.column}" for source in sources), "a placeholder is left"
            sets = [source.sacrebleu.rpartition("/") for source in sources if source.sacrebleu]
            assert {test_set for test_set, _, _ in sets} <= DATASETS.keys()
            assert not sets or any(pair in DATASETS[test_set].langpairs for test_set, _, pair in sets), name


def test_names_and_texts_are_distinct_and_those_of_the_field_are_there() -> None:
    digests = [digest for entry in entries() for split in entry.splits.values() for digest in split.sha256.values()]
    assert len(set(digests)) == len(digests) == 36
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    assert len(set(names())) == len(names()) > 200
    assert set(OF_THE_FIELD) <= set(names())
    assert {name: corpus.name for name in names() if (corpus := lookup(name))} == {name: name for name in names()}
    assert named("wmt14-de-en").splits == {"train": 4_508_785, "newstest2013": 3000, "newstest2014": 3003}
    assert named("wmt14-fr-en").splits["train"] == 40_836_715


# --- names ------------------------------------------------------------------------------------------------------


def test_a_corpus_of_ones_own_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.xx").write_text("a\n")
    (tmp_path / "mine" / "train.yy").write_text("b\n")
    assert list(load_corpus("mine/train", source="yy", target="xx").pairs()) == [("b", "a")]


def test_a_public_corpus_may_lie_in_a_folder_of_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(tmp_path))
    for language in ("chr", "en"):
        (tmp_path / "low/chr-en").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"low/chr-en/dev.{language}").write_text(f"{language}\n")
    assert list(load_corpus("chr-en/dev", source="en", target="chr").pairs()) == [("en", "chr")]
    (tmp_path / "chr-en").mkdir()
    (tmp_path / "chr-en/dev.en").write_text("nearer\n")
    assert list(load_corpus("chr-en/dev", source="en", target="chr").pairs()) == [("nearer", "chr")]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("multi30/train.en", "There is no corpus 'multi30' in the catalogue; did you mean 'multi30k'?"),
        ("xyz/train.en", "There is no corpus 'xyz' in the catalogue; `nmt corpora list` shows what it has."),
        ("multi30k/valid.en", "The corpus multi30k has no split 'valid'; did you mean 'val'?"),
        ("multi30k/val.ja", "The corpus multi30k has no 'ja' in val, only en, de, fr, cs."),
        ("wmt14-en-de/train.en", "There is no corpus 'wmt14-en-de' in the catalogue; did you mean 'wmt14-de-en'?"),
        ("wmt14/train.en", "wmt14 has one corpus per language pair: name one, as wmt14-de-en (de-en, fr-en)."),
        ("hansards-en-fr/train.align", "The corpus hansards-en-fr has no 'align' in train, only en, fr."),
        ("tatoeba-en-de/dev.en", "tatoeba-en-de is local only, so it cannot be fetched: it is 168,655 pairs of deu"),
        ("hansards-en-fr/train.fr", "split is not recorded. If you have a copy, put it at "),
    ],
)
def test_what_cannot_be_had_is_explained(place: str, problem: str) -> None:
    name, _, file = place.partition("/")
    with pytest.raises(DataError) as caught:
        fetching.find(name, *file.split("."))
    assert problem in str(caught.value)


# --- the public corpora, where they are at hand -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["multi30k", "tatoeba-en-de", "hansards-en-fr", "tanaka-en-ja", "en-nso"])
def test_the_public_corpora_are_what_they_must_be(name: str, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any((folder / name).is_dir() for folder in (corpora, corpora / "low")):
        pytest.skip(f"needs {corpora / name}")
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    corpus, lines = named(name), {}
    for checked in check(name):
        if corpus.digest(checked.split, checked.language):
            assert checked.state == "good"
            assert checked.path is not None
            lines[checked.split] = sum(1 for _ in read_lines(checked.path))
            assert lines[checked.split] == corpus.splits[checked.split]
    if corpus.entry.derivation:
        assert f"{sum(lines[split] for split in ('train', 'dev', 'test')):,} pairs" in corpus.entry.derivation
    if name == "hansards-en-fr":
        assert fetching.find(name, "gold.trial", "align").name == "gold.trial.align"
