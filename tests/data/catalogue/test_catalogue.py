"""Named corpora: found where they are, and explained where they are not."""

from pathlib import Path

import pytest

from nmt.data.catalogue import check, fetching, named
from nmt.data.catalogue.fetching import find
from nmt.data.lines import read_lines
from nmt.data.locators import load_corpus
from nmt.errors import DataError


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_CORPORA", raising=False)


def test_a_corpus_of_ones_own_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.xx").write_text("a\n")
    (tmp_path / "mine" / "train.yy").write_text("b\n")
    assert list(load_corpus("mine/train", source="yy", target="xx").pairs()) == [("b", "a")]


@pytest.mark.parametrize(
    ("name", "split", "language", "sentence"),
    [
        ("multi30", "train", "en", "There is no corpus 'multi30' in the catalogue; did you mean 'multi30k'?"),
        ("xyz", "train", "en", "There is no corpus 'xyz' in the catalogue; `nmt corpora list` shows what it has."),
        ("multi30k", "valid", "en", "The corpus multi30k has no split 'valid'; did you mean 'val'?"),
        ("multi30k", "val", "ja", "The corpus multi30k has no 'ja' in val, only en, de, fr, cs."),
        ("multi30k", "test_2017_flickr", "cs", "The corpus multi30k has no 'cs' in test_2017_flickr, only en, de, fr."),
        (
            "wmt14-en-de",
            "train",
            "en",
            "There is no corpus 'wmt14-en-de' in the catalogue; did you mean 'wmt14-de-en'?",
        ),
        ("wmt14", "train", "en", "wmt14 has one corpus per language pair: name one, as wmt14-de-en (de-en, fr-en)."),
        ("hansards-en-fr", "train", "align", "The corpus hansards-en-fr has no 'align' in train, only en, fr."),
        (
            "tatoeba-en-de",
            "dev",
            "en",
            "tatoeba-en-de is local only, so it cannot be fetched: it is 168,655 pairs of deu",
        ),
        ("hansards-en-fr", "train", "fr", "split is not recorded. If you have a copy, put it at "),
    ],
)
def test_what_cannot_be_had_is_explained(name: str, split: str, language: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        find(name, split, language)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["tatoeba-en-de", "hansards-en-fr"])
def test_a_derivation_says_what_the_text_is(name: str, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    source, target = named(name).languages[:2]
    train, dev, test = (
        list(load_corpus(f"{name}/{split}", source=source, target=target).pairs()) for split in ("train", "dev", "test")
    )
    assert f"{len(train) + len(dev) + len(test):,} pairs" in named(name).entry.derivation
    for side in (0, 1):
        assert not {pair[side] for pair in train} & {pair[side] for pair in dev + test}
    if name == "hansards-en-fr":
        assert max(len(english) for english, _ in train) == 128
        assert max(len(french) for _, french in train) == 144
        assert all(text.isascii() and text == text.lower() for pair in train for text in pair)


@pytest.mark.parametrize("name", ["multi30k", "tatoeba-en-de", "hansards-en-fr", "tanaka-en-ja"])
def test_the_public_corpora_are_what_they_must_be(name: str, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (corpora / name).is_dir():
        pytest.skip(f"needs {corpora / name}")
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    corpus = named(name)
    verified = [checked for checked in check(name) if corpus.digest(checked.split, checked.language)]
    assert {checked.state for checked in verified} == {"good"}
    for checked in verified:
        assert checked.path is not None
        assert sum(1 for _ in read_lines(checked.path)) == corpus.splits[checked.split]


def test_the_gold_links_are_part_of_the_catalogue(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    assert fetching.find("hansards-en-fr", "gold.trial", "align").name == "gold.trial.align"
