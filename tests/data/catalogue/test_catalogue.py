"""Named corpora: found where they are, fetched where they are not, and never taken for what they are not."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from nmt.data import catalogue
from nmt.data.catalogue import check, fetching, named
from nmt.data.catalogue.fetching import fetch, find
from nmt.data.lines import read_lines
from nmt.data.locators import load_corpus
from nmt.errors import DataError
from tests.data.catalogue.fetching import Server, entry, write_entry

TEXT = {"en": b"one\ntwo\nthree\n", "de": "eins\nzwei\ngrün\n".encode()}
pytestmark = pytest.mark.usefixtures("server")
DIGESTS = {side: hashlib.sha256(text).hexdigest() for side, text in TEXT.items()}


@pytest.fixture
def server(server: Server) -> Server:
    """A server with the corpus `toy`: a packed file, and one of two parts."""
    server.contents = {
        "/a/train.en.gz": gzip.compress(TEXT["en"], mtime=0),
        "/a/train.de.0": TEXT["de"][:7],
        "/a/train.de.1": TEXT["de"][7:],
    }
    return server


@pytest.fixture
def toy(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue with the corpus `toy` alone."""
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path / "entries")
    _offer(tmp_path, f"{server.address}/a/train.en.gz", root=server.address)


def _offer(tmp_path: Path, *english: str, root: str = "https://example.org") -> None:
    """Write the entry of `toy`; its English side has these sources."""
    german = {"url": [f"{root}/a/train.de.0", f"{root}/a/train.de.1"], "languages": ["de"]}
    sources = [*({"url": url, "languages": ["en"]} for url in english), german]
    catalogue._entry.cache_clear()
    write_entry(tmp_path / "entries", entry({"train": {"lines": 3, "sha256": DIGESTS, "sources": sources}}))


@pytest.mark.usefixtures("toy")
def test_a_corpus_is_fetched_once(cached: Path, server: Server) -> None:
    assert [item.state for item in check("toy")] == ["missing", "missing"]
    heard: list[tuple[str, int, int | None]] = []
    paths = fetch("toy", progress=lambda *news: heard.append(news))
    assert paths == [cached / "train.en.gz", cached / "train.de.gz"]
    assert [gzip.decompress(path.read_bytes()) for path in paths] == list(TEXT.values())
    assert sorted(path.name for path in cached.iterdir()) == ["train.de.gz", "train.en.gz"]
    assert [(address.rsplit("/", 1)[1], done, total) for address, done, total in heard][1:] == [
        ("train.de.0", 7, 7),
        ("train.de.1", len(TEXT["de"]) - 7, len(TEXT["de"]) - 7),
    ]
    assert [item.state for item in check("toy")] == ["good", "good"]
    server.contents.clear()
    assert fetch("toy") == paths
    assert list(load_corpus("toy/train", source="de", target="en").pairs())[2] == ("grün", "three")


@pytest.mark.usefixtures("toy")
def test_loading_fetches_what_is_missing(cached: Path) -> None:
    assert len(load_corpus("toy/train", source="en", target="de")) == 3
    assert (cached / "train.en.gz").stat().st_mode & 0o777 == 0o666 & ~_umask(), "others may read a shared cache"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("address", "content", "reason"),
    [
        ("/short/train.en", TEXT["en"], r"only 14 of 19 bytes came \(4 attempts\)"),
        ("/a/cut.en.gz", gzip.compress(TEXT["en"], mtime=0)[:-9], "it ends too early"),
        ("/a/plain.en.gz", TEXT["en"], "it is not a gzip file"),
        ("/a/absent.en", None, "HTTP 404 Not Found"),
        ("/a/other.en", b"one\ntwo\nFOUR\n", f"the SHA-256 of its text is .*, not {DIGESTS['en']}"),
    ],
)
@pytest.mark.usefixtures("toy")
def test_what_does_not_arrive_whole_leaves_nothing(
    cached: Path, tmp_path: Path, server: Server, address: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        server.contents[address] = content
    server.promised["/short/train.en"], server.ranges = 19, False
    _offer(tmp_path, server.address + address, root=server.address)
    with pytest.raises(
        DataError, match=rf"Cannot fetch toy/train\.en from {server.address}{address}: {reason}.*; get"
    ) as caught:
        find("toy", "train", "en")
    by_hand = (
        f"it elsewhere and put it at {cached / 'train.en'}[.gz], or set NMT_CORPORA to a folder with toy/train.en."
    )
    assert str(caught.value).endswith(by_hand)
    assert not list(cached.iterdir())


@pytest.mark.usefixtures("toy")
def test_an_unreachable_server_is_named(tmp_path: Path) -> None:
    _offer(tmp_path, "http://127.0.0.1:9/train.en")
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9/train\.en: .*refused"):
        find("toy", "train", "en")


@pytest.mark.usefixtures("toy")
def test_an_unwritable_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"Cannot write to .*file/corpora/toy \(Not a directory\): set NMT_CACHE"):
        find("toy", "train", "en")


@pytest.mark.usefixtures("toy")
def test_the_chosen_root_comes_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch("toy")
    (tmp_path / "mine" / "toy").mkdir(parents=True)
    (tmp_path / "mine" / "toy" / "train.en").write_text("other\n")
    monkeypatch.setenv("NMT_CORPORA", str(tmp_path / "mine"))
    assert find("toy", "train", "en") == tmp_path / "mine" / "toy" / "train.en"
    assert find("toy", "train", "de").is_relative_to(tmp_path / "cache")
    assert [item.state for item in check("toy")] == ["different", "good"]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_a_damaged_file_is_different_not_a_crash(cached: Path, suffix: str) -> None:
    cached.mkdir(parents=True)
    (cached / f"train.en{suffix}").write_bytes(b"damaged")
    assert [(item.state, item.path) for item in check("toy")] == [
        ("different", cached / f"train.en{suffix}"),
        ("missing", None),
    ]


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
    verified = [item for item in check(name) if item.file.sha256]
    assert {item.state for item in verified} == {"good"}
    for item in verified:
        assert item.path is not None
        assert sum(1 for _ in read_lines(item.path)) == item.file.lines
    split = verified[-1].file.split
    source, target = named(name).languages[:2]
    assert len(load_corpus(f"{name}/{split}", source=source, target=target)) == named(name).splits[split]


def test_the_gold_links_are_part_of_the_catalogue(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    assert fetching.find("hansards-en-fr", "gold.trial", "align").name == "gold.trial.align"
