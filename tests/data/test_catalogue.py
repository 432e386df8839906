"""Named corpora: found where they are, fetched where they are not, and never taken for what they are not."""

import gzip
import hashlib
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nmt.data import catalogue
from nmt.data.catalogue import CATALOGUE, NamedCorpus, TextFile, check, fetch, find, named
from nmt.data.corpus import load_corpus
from nmt.data.lines import read_lines
from nmt.errors import DataError

TEXT = {"en": b"one\ntwo\nthree\n", "de": "eins\nzwei\ngrün\n".encode()}


class _Handler(BaseHTTPRequestHandler):
    """Serves `contents`; `/short/...` promises more than comes."""

    def __init__(self, contents: dict[str, bytes], *rest: Any) -> None:
        self.contents = contents
        super().__init__(*rest)

    def do_GET(self) -> None:
        content = self.contents.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) + 5 * self.path.startswith("/short/")))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def contents() -> dict[str, bytes]:
    """What the server has: address and bytes."""
    return {
        "/a/train.en.gz": gzip.compress(TEXT["en"], mtime=0),
        "/a/train.de.0": TEXT["de"][:7],
        "/a/train.de.1": TEXT["de"][7:],
    }


@pytest.fixture
def root(contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server on this machine."""
    monkeypatch.setenv("no_proxy", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, contents))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache keeps the corpus `toy`."""
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_CORPORA", raising=False)
    return tmp_path / "cache" / "corpora" / "toy"


@pytest.fixture
def toy(root: str, monkeypatch: pytest.MonkeyPatch) -> NamedCorpus:
    """A corpus of one split: a packed file, and one of two parts."""
    sources = {"en": (f"{root}/a/train.en.gz",), "de": (f"{root}/a/train.de.0", f"{root}/a/train.de.1")}
    files = tuple(
        TextFile("train", side, 3, hashlib.sha256(TEXT[side]).hexdigest(), sources[side]) for side in ("en", "de")
    )
    corpus = NamedCorpus("toy", "A toy", ("en", "de"), "none", root, files)
    monkeypatch.setitem(CATALOGUE, "toy", corpus)
    return corpus


def _with_source(monkeypatch: pytest.MonkeyPatch, toy: NamedCorpus, *sources: str) -> None:
    english, german = toy.files
    monkeypatch.setitem(CATALOGUE, "toy", replace(toy, files=(replace(english, sources=sources), german)))


@pytest.mark.usefixtures("toy")
def test_a_corpus_is_fetched_once(cached: Path, contents: dict[str, bytes]) -> None:
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
    contents.clear()
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


def test_other_text_is_refused(
    toy: NamedCorpus, cached: Path, contents: dict[str, bytes], root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents["/a/train.en.gz"] = gzip.compress(b"one\ntwo\nFOUR\n", mtime=0)
    with pytest.raises(DataError, match=r"Cannot fetch toy/train\.en from") as caught:
        fetch("toy")
    sentence = str(caught.value)
    assert f"{root}/a/train.en.gz: the SHA-256 of its text is " in sentence
    assert f"not {toy.files[0].sha256}" in sentence
    assert f"put it at {cached / 'train.en'}[.gz], or set NMT_CORPORA to a folder with toy/train.en." in sentence
    assert not list(cached.iterdir())


@pytest.mark.parametrize(
    ("address", "content", "reason"),
    [
        ("/short/train.en", TEXT["en"], r"only 14 of 19 bytes came|IncompleteRead"),
        ("/a/cut.en.gz", gzip.compress(TEXT["en"], mtime=0)[:-9], "it ends too early"),
        ("/a/plain.en.gz", TEXT["en"], "it is not a gzip file"),
        ("/a/absent.en", None, "Not Found"),
    ],
)
def test_what_does_not_arrive_whole_leaves_nothing(
    toy: NamedCorpus, cached: Path, contents: dict[str, bytes], root: str, monkeypatch: pytest.MonkeyPatch,
    address: str, content: bytes | None, reason: str,
) -> None:  # fmt: skip
    if content is not None:
        contents[address] = content
    _with_source(monkeypatch, toy, root + address)
    with pytest.raises(
        DataError, match=rf"Cannot fetch toy/train\.en from {root}{address}: ({reason}).*; get it elsewhere"
    ):
        find("toy", "train", "en")
    assert not list(cached.iterdir())


def test_an_unreachable_server_is_named(toy: NamedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_source(monkeypatch, toy, "http://127.0.0.1:9/train.en")
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
        ("multi30", "train", "en", "There is no corpus 'multi30' in the catalogue; did you mean multi30k?"),
        ("xyz", "train", "en", "There is no corpus 'xyz' in the catalogue; there are multi30k, tatoeba-en-de, hans"),
        ("multi30k", "valid", "en", "The corpus multi30k has no split 'valid'; did you mean val?"),
        ("multi30k", "val", "ja", "The corpus multi30k has no 'ja' in val, only en, de, fr."),
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


def test_every_entry_is_complete() -> None:
    for name, corpus in CATALOGUE.items():
        assert (named(name), corpus.name) == (corpus, name)
        assert corpus.local_only == bool(corpus.derivation)
        assert all(source.startswith("https://") for file in corpus.files for source in file.sources)
        assert all(len(bytes.fromhex(file.sha256)) == 32 for file in corpus.files)
        assert len({file.sha256 for file in corpus.files}) == len(corpus.files)
        for split in corpus.splits:
            assert len({file.lines for file in corpus.files if file.split == split}) == 1
            assert all(corpus.file(split, language) for language in corpus.languages)


def test_what_is_fetched_is_pinned_to_a_commit() -> None:
    sources = [source for corpus in CATALOGUE.values() for file in corpus.files for source in file.sources]
    assert sources
    assert all(re.search(r"/[0-9a-f]{40}/", source) for source in sources)


@pytest.mark.parametrize("name", [name for name, corpus in CATALOGUE.items() if corpus.local_only])
def test_a_derivation_says_what_the_text_is(name: str, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    source, target = named(name).languages[:2]
    train, dev, test = (
        list(load_corpus(f"{name}/{split}", source=source, target=target).pairs()) for split in ("train", "dev", "test")
    )
    assert f"{len(train) + len(dev) + len(test):,} pairs" in named(name).derivation
    for side in (0, 1):
        assert not {pair[side] for pair in train} & {pair[side] for pair in dev + test}
    if name == "hansards-en-fr":
        assert max(len(english) for english, _ in train) == 128
        assert max(len(french) for _, french in train) == 144
        assert all(text.isascii() and text == text.lower() for pair in train for text in pair)


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_the_public_corpora_are_what_they_must_be(name: str, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (corpora / name).is_dir():
        pytest.skip(f"needs {corpora / name}")
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    assert {item.state for item in check(name)} == {"good"}
    for item in check(name):
        assert item.path is not None
        assert sum(1 for _ in read_lines(item.path)) == item.file.lines
    split = list(named(name).splits)[-1]
    source, target = named(name).languages[:2]
    assert len(load_corpus(f"{name}/{split}", source=source, target=target)) == named(name).splits[split]


def test_the_gold_links_are_part_of_the_catalogue(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", str(corpora))
    assert catalogue.find("hansards-en-fr", "gold.trial", "align").name == "gold.trial.align"
