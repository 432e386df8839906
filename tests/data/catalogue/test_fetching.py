"""Fetching: several sources in order, archives, tables and the hub, and text that is not what it must be."""

import gzip
import hashlib
import json
import logging
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nmt.data import catalogue
from nmt.data.catalogue import check, fetching
from nmt.data.catalogue.fetching import fetch, find
from nmt.data.locators import load_corpus
from nmt.errors import DataError

ENGLISH, GERMAN = b"one\ntwo\nthree\n", "eins\nzwei\ngrün\n".encode()
FILES = {"train.en": ENGLISH, "train.de": GERMAN}
PAIRS = [("one", "eins"), ("two", "zwei"), ("three", "grün")]
DIGESTS = {language: hashlib.sha256(FILES[f"train.{language}"]).hexdigest() for language in ("en", "de")}
requests: list[str] = []


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        requests.append(self.path)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server of the files in `tmp_path / "www"`; what is fetched goes to `tmp_path / "cache"`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_CORPORA", raising=False)
    monkeypatch.setattr(fetching, "RETRIES", 0)
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    write(FILES)
    requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=tmp_path / "www")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def write(files: dict[str, bytes], folder: str = "www") -> None:
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def pack(name: str, files: dict[str, bytes]) -> None:
    """Let the server have an archive, by its name a zip or a tar file."""
    write(files, "packed")
    kind = {"zip": "zip", "tgz": "gztar"}[name[-3:]]
    Path(shutil.make_archive("archive", kind, "packed")).rename(f"www/{name}")


def offer(*sources: dict[str, Any], splits: tuple[str, ...] = ("train",), **details: Any) -> None:
    """Write the entry of the corpus `toy` with splits that have these sources."""
    catalogue._entry.cache_clear()
    entry: dict[str, Any] = {"name": "toy", "title": "A toy", "group": "small", "languages": ["en", "de"]}
    entry |= {"license": "none at all", "home": "https://example.org", "citation": "Nobody 2020, A Toy"}
    entry |= {"splits": {split: {"sources": list(sources), **details} for split in splits}}
    Path("toy.yaml").write_text(json.dumps(entry))


def loaded(split: str = "train") -> list[tuple[str, str]]:
    return list(load_corpus(f"toy/{split}", source="en", target="de"))


def states() -> list[str]:
    return [checked.state for checked in check("toy")]


def test_a_corpus_is_fetched_once_and_checked(server: str, tmp_path: Path) -> None:
    write({"a/train.en.gz": gzip.compress(ENGLISH), "a/0": GERMAN[:7], "a/1": GERMAN[7:]})
    english = {"url": f"{server}/a/train.en.gz", "languages": ["en"]}
    german = {"url": [f"{server}/a/0", f"{server}/a/1"], "languages": ["de"]}
    offer(english, german, sha256=DIGESTS, lines=3)
    assert states() == ["missing", "missing"]
    with pytest.raises(DataError, match=r"toy/train\.en must be fetched first: `nmt corpora fetch toy`"):
        find("toy", "train", "en", fetch=False)
    cached = tmp_path / "cache" / "corpora" / "toy"
    assert fetch("toy") == [cached / "train.en.gz", cached / "train.de.gz"]
    assert states() == ["good", "good"]
    shutil.rmtree("www")
    assert loaded() == PAIRS
    assert not list((tmp_path / "cache/downloads").glob("toy/*"))
    with pytest.raises(DataError, match=r"The corpus toy has no split 'trian'; did you mean 'train'\?"):
        fetch("toy", "trian")
    write({"toy/train.en": b"other\n"}, "mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NMT_CORPORA", "mine")  # it comes before the cache
        assert [find("toy", "train", side).parent for side in ("en", "de")] == [Path("mine/toy"), cached]
        assert states() == ["different", "good"]
        write({"toy/train.de.gz": b"damaged"}, "mine")
        assert states() == ["different", "different"]


def test_both_sides_come_from_the_first_source_that_is_right(server: str, caplog: pytest.LogCaptureFixture) -> None:
    write({"wrong/train.en": b"one\ntwo\nFOUR\n", "wrong/train.de": GERMAN})
    places = ["/gone", "/wrong", "", "/never"]
    offer(*({"url": f"{server}{place}/{{split}}.{{language}}"} for place in places), sha256=DIGESTS)
    with caplog.at_level(logging.WARNING):
        assert loaded() == PAIRS
    first, second = (record.getMessage() for record in caplog.records if record.name.startswith("nmt."))
    assert "/gone/train.{language}: 404 Client Error" in first
    assert second.endswith(f", not {DIGESTS['en']}")
    assert not any("never" in address for address in requests)


@pytest.mark.parametrize(
    ("address", "content", "reason"),
    [
        ("/cut.{language}.gz", gzip.compress(ENGLISH)[:-9], "is damaged and cannot be read to its end"),
        ("/absent.{language}", None, "404 Client Error"),
        ("/other.{language}", b"one\ntwo\nFOUR\n", "the SHA-256 of train"),
        ("/page.{language}", b"\n<!DOCTYPE html><html>", "the server sent a web page instead of the file"),
        ("/{language}/all.zip", b"no archive", "not a zip file"),
        ("/{language}/all.tgz", b"no archive", "file could not be opened successfully"),
        ("/all.zip", None, "the archive has no file train.en"),
    ],
)
def test_what_is_not_whole_and_right_leaves_nothing(
    server: str, tmp_path: Path, address: str, content: bytes | None, reason: str
) -> None:
    pack("all.zip", {"train.fr": b"x"})
    if content is not None:
        write({address.replace("{language}", language)[1:]: content for language in ("en", "de")})
    member = {"member": "{split}.{language}"} if "all" in address else {}
    offer({"url": server + address, **member}, sha256=DIGESTS)
    with pytest.raises(DataError) as caught:
        find("toy", "train", "en")
    cached = tmp_path / "cache" / "corpora" / "toy"
    assert str(caught.value).startswith(f"Cannot fetch toy/train from {server}{address}")
    assert reason in str(caught.value)
    assert str(caught.value).endswith(f". Get it elsewhere and put it at {cached / 'train.en'}[.gz].")
    assert not list(cached.iterdir())


def test_unreachable_servers_and_caches(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer({"url": "http://127.0.0.1:9/train.{language}"})
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9/train\.\{language\}: .* Connection refused"):
        find("toy", "train", "en")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "toy.yaml"))
    with pytest.raises(DataError, match=r"Cannot write to .*/corpora/toy \(Not a directory\): set NMT_CACHE"):
        find("toy", "train", "en")


def test_a_wrong_number_of_lines_is_refused(server: str) -> None:
    offer({"url": f"{server}/{{split}}.{{language}}"}, lines=1000)
    with pytest.raises(DataError, match=r"train\.en has 3 lines, not 1,000\. Get it"):
        find("toy", "train", "en")


@pytest.mark.parametrize("name", ["all.zip", "all.tgz"])
def test_an_archive_is_downloaded_once_for_all_splits(server: str, name: str) -> None:
    pack(name, {"set/train.en": ENGLISH, "set/train.de": GERMAN, "set/dev.en": b"a\n", "set/dev.de": b"b\n"})
    offer({"url": f"{server}/{name}", "member": "set/{split}.{language}"}, splits=("train", "dev"))
    assert (loaded(), loaded("dev")) == (PAIRS, [("a", "b")])
    assert requests == [f"/{name}"]
    assert states() == ["unverified"] * 4


def test_members_are_put_together_in_their_order(server: str) -> None:
    pack("all.tgz", {f"{part}.{side}": f"{side} {part}\n".encode() for part in "abc" for side in ("en", "de")})
    offer({"url": f"{server}/all.tgz", "member": ["c.{language}", "a.{language}"]})
    assert loaded() == [("en c", "de c"), ("en a", "de a")]


def test_talks_and_segments_are_read_without_their_markup(server: str) -> None:
    head = b"<doc docid='1'>\n<url>http://x</url>\n<title>A talk</title>\n<reviewer></reviewer>\n"
    talks = {"train.en": head + b" one \n\n<i>two</i>\n</doc>\n", "train.de": head + b"eins\nzwei\ndrei\n</doc>\n"}
    english = b'<doc id="1">\n<seg id="1"> one </seg>\n<seg id="2">two\nlines</seg>'
    write({**talks, "dev.en": english, "dev.de": b'<seg>1</seg><seg id="2">2 &amp; 3</seg>'})
    offer({"url": f"{server}/train.{{language}}", "format": "talks"})
    assert loaded() == [("one", "eins"), ("", "zwei"), ("<i>two</i>", "drei")]
    offer({"url": f"{server}/dev.{{language}}", "format": "segments"}, splits=("dev",))
    assert loaded("dev") == [("one", "1"), ("two lines", "2 &amp; 3")]


def test_columns_of_tables_and_of_the_hub(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "hub"))
    rows = [{"translation": {"en": english, "de": german}} for english, german in PAIRS]
    flat = [{"english_text": english, "german_text": german} for english, german in PAIRS]
    for path, objects in (("www/all.jsonl", rows), ("set/test.jsonl", flat)):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in objects))
    offer({"url": f"{server}/all.jsonl"}, sha256=DIGESTS)
    assert loaded() == PAIRS
    assert requests == ["/all.jsonl"], "one table has both sides"
    columns = {"en": "english_text", "de": "german_text"}
    hub = [{"hub": "set:test", "column": column, "languages": [side]} for side, column in columns.items()]
    offer(*hub, splits=("test",), sha256=DIGESTS)
    assert loaded("test") == PAIRS
