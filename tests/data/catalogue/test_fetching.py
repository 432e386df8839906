"""Fetching: several sources in order, archives, tables and the hub, and text that is not what it must be."""

import gzip
import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.data import catalogue
from nmt.data.catalogue import check, fetching
from nmt.data.catalogue.fetching import fetch, find
from nmt.data.locators import load_corpus
from nmt.errors import DataError
from tests.data.catalogue.toy import Server, entry, packed, serving, write_entry

ENGLISH, GERMAN = b"one\ntwo\nthree\n", "eins\nzwei\ngrün\n".encode()
PAIRS = [("one", "eins"), ("two", "zwei"), ("three", "grün")]
DIGESTS = {"en": hashlib.sha256(ENGLISH).hexdigest(), "de": hashlib.sha256(GERMAN).hexdigest()}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with two files; what is fetched goes to `tmp_path / "cache"`."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_CORPORA", raising=False)
    monkeypatch.setattr(fetching, "RETRIES", 0)
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path / "entries")
    with serving() as state:
        state.contents = {"/train.en": ENGLISH, "/train.de": GERMAN}
        yield state


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """Where the cache keeps the corpus."""
    return tmp_path / "cache" / "corpora" / "toy"


def offer(tmp_path: Path, *sources: dict[str, Any], splits: tuple[str, ...] = ("train",), **details: Any) -> None:
    """Write the entry of `toy` with splits that have these sources."""
    catalogue._entry.cache_clear()
    write_entry(tmp_path / "entries", entry({split: {"sources": list(sources), **details} for split in splits}))


def loaded(split: str = "train") -> list[tuple[str, str]]:
    return list(load_corpus(f"toy/{split}", source="en", target="de"))


def test_a_corpus_is_fetched_once_and_checked(server: Server, tmp_path: Path, cached: Path) -> None:
    server.contents |= {"/a/train.en.gz": gzip.compress(ENGLISH), "/a/0": GERMAN[:7], "/a/1": GERMAN[7:]}
    english = {"url": f"{server.address}/a/train.en.gz", "languages": ["en"]}
    german = {"url": [f"{server.address}/a/0", f"{server.address}/a/1"], "languages": ["de"]}
    offer(tmp_path, english, german, sha256=DIGESTS, lines=3)
    assert [checked.state for checked in check("toy")] == ["missing", "missing"]
    with pytest.raises(DataError, match=r"toy/train\.en must be fetched first: `nmt corpora fetch toy`"):
        find("toy", "train", "en", fetch=False)
    assert fetch("toy") == [cached / "train.en.gz", cached / "train.de.gz"]
    assert [checked.state for checked in check("toy")] == ["good", "good"]
    server.contents.clear()
    assert loaded() == PAIRS
    assert not list((tmp_path / "cache/downloads").glob("toy/*"))
    with pytest.raises(DataError, match=r"The corpus toy has no split 'trian'; did you mean 'train'\?"):
        fetch("toy", "trian")


def test_both_sides_come_from_the_first_source_that_is_right(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.contents |= {"/wrong/train.en": b"one\ntwo\nFOUR\n", "/wrong/train.de": GERMAN}
    places = ["/gone", "/wrong", "", "/never"]
    offer(
        tmp_path,
        *({"url": f"{server.address}{place}/{{split}}.{{language}}"} for place in places),
        sha256=DIGESTS,
    )
    with caplog.at_level(logging.WARNING):
        assert loaded() == PAIRS
    first, second = (record.getMessage() for record in caplog.records if record.name.startswith("nmt."))
    assert first.endswith("/gone/train.{language}: HTTP 404 Not Found")
    assert second.endswith(f", not {DIGESTS['en']}")
    assert not any("never" in address for address in server.requests)


@pytest.mark.parametrize(
    ("address", "content", "reason"),
    [
        ("/short/train.{language}", ENGLISH, "no connection, or it broke"),
        ("/cut.{language}.gz", gzip.compress(ENGLISH)[:-9], "is damaged and cannot be read to its end"),
        ("/plain.{language}.gz", ENGLISH, "is damaged and cannot be read to its end"),
        ("/absent.{language}", None, "HTTP 404 Not Found"),
        ("/other.{language}", b"one\ntwo\nFOUR\n", "the SHA-256 of train"),
        ("/page.{language}", b"\n<!DOCTYPE html><html>", "the server sent a web page instead of the file"),
        ("/{language}/all.zip", b"no archive", "not a zip file"),
        ("/{language}/all.tgz", b"no archive", "file could not be opened successfully"),
        ("/{language}/all.zip", packed("all.zip", {"train.fr": b"x"}), "the archive has no file train.en"),
    ],
)
def test_what_is_not_whole_and_right_leaves_nothing(
    server: Server, tmp_path: Path, cached: Path, address: str, content: bytes | None, reason: str
) -> None:
    for language in ("en", "de"):
        place = address.replace("{language}", language)
        if content is not None:
            server.contents[place] = content
        server.lengths["/short/train.en"] = 99
    member = {"member": "{split}.{language}"} if "all" in address else {}
    offer(tmp_path, {"url": server.address + address, **member}, sha256=DIGESTS)
    with pytest.raises(DataError) as caught:
        find("toy", "train", "en")
    assert str(caught.value).startswith(f"Cannot fetch toy/train from {server.address}{address}")
    assert reason in str(caught.value)
    assert str(caught.value).endswith(f". Get it elsewhere and put it at {cached / 'train.en'}[.gz].")
    assert not list(cached.iterdir())


def test_an_unreachable_server_and_an_unwritable_cache_are_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, {"url": "http://127.0.0.1:9/train.{language}"})
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9/train\.\{language\}: no connection"):
        find("toy", "train", "en")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"Cannot write to .*file/corpora/toy \(Not a directory\): set NMT_CACHE"):
        find("toy", "train", "en")


@pytest.mark.parametrize(("lines", "german"), [(1000, GERMAN), (None, GERMAN + b"vier\n")])
def test_wrong_numbers_of_lines_are_refused(server: Server, tmp_path: Path, lines: int | None, german: bytes) -> None:
    server.contents["/train.de"] = german
    offer(tmp_path, {"url": f"{server.address}/{{split}}.{{language}}"}, lines=lines)
    with pytest.raises(DataError, match=r"3 lines in train\.en, \d lines in train\.de, but "):
        find("toy", "train", "en")


@pytest.mark.parametrize("name", ["all.zip", "all.tgz"])
def test_an_archive_is_downloaded_once_for_all_splits(server: Server, tmp_path: Path, cached: Path, name: str) -> None:
    files = {"./set/train.en": ENGLISH, "./set/train.de": GERMAN, "set/dev.en": b"a\n", "set/dev.de": b"b\n"}
    server.contents[f"/{name}"] = packed(name, {"../evil": b"x", "README": b"y", **files})
    offer(tmp_path, {"url": f"{server.address}/{name}", "member": "set/{split}.{language}"}, splits=("train", "dev"))
    assert loaded() == PAIRS
    assert loaded("dev") == [("a", "b")]
    assert server.requests == [f"/{name}"]
    assert not list(tmp_path.rglob("evil"))
    assert [checked.state for checked in check("toy")] == ["unverified"] * 4


def test_members_are_put_together_in_their_order(server: Server, tmp_path: Path) -> None:
    files = {f"{part}.{side}": f"{side} {part}\n".encode() for part in "abc" for side in ("en", "de")}
    server.contents["/all.tgz"] = packed("all.tgz", files)
    offer(tmp_path, {"url": f"{server.address}/all.tgz", "member": ["c.{language}", "a.{language}"]})
    assert loaded() == [("en c", "de c"), ("en a", "de a")]


def test_talks_and_segments_are_read_without_their_markup(server: Server, tmp_path: Path) -> None:
    head = "<doc docid='1'>\n<url>http://x</url>\n<title>A talk</title>\n<reviewer></reviewer>\n"
    english = f"{head} one \n\n<i>two</i>\n</doc>\n"
    server.contents = {"/train.en": english.encode(), "/train.de": f"{head}eins\nzwei\ndrei\n</doc>\n".encode()}
    offer(tmp_path, {"url": f"{server.address}/train.{{language}}", "format": "talks"})
    assert loaded() == [("one", "eins"), ("", "zwei"), ("<i>two</i>", "drei")]
    segments = (
        '<doc id="1">\n<seg id="1"> one </seg>\n<seg id="2">two\nlines</seg>',
        '<seg>1</seg><seg id="2">2 &amp; 3</seg>',
    )
    server.contents = {f"/dev.{language}": text.encode() for language, text in zip(("en", "de"), segments, strict=True)}
    offer(tmp_path, {"url": f"{server.address}/dev.{{language}}", "format": "segments"}, splits=("dev",))
    assert loaded("dev") == [("one", "1"), ("two lines", "2 &amp; 3")]


def test_columns_of_tables_and_of_the_hub_are_read(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    rows = [{"translation": {"en": english, "de": german}} for english, german in PAIRS]
    server.contents["/all.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    folder = tmp_path / "set"
    folder.mkdir()
    flat = [{"english_text": english, "german_text": german} for english, german in PAIRS]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in flat))
    hub = [
        {"hub": f"{folder}:test", "column": column, "languages": [language]}
        for language, column in (("en", "english_text"), ("de", "german_text"))
    ]
    offer(tmp_path, {"url": f"{server.address}/all.jsonl"}, sha256=DIGESTS)
    assert loaded() == PAIRS
    assert server.requests == ["/all.jsonl"], "one table has both sides"
    offer(tmp_path, *hub, splits=("test",), sha256=DIGESTS)
    assert loaded("test") == PAIRS


def test_the_chosen_root_comes_before_the_cache(
    server: Server, tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, {"url": f"{server.address}/{{split}}.{{language}}"}, sha256=DIGESTS)
    fetch("toy")
    (tmp_path / "mine" / "toy").mkdir(parents=True)
    (tmp_path / "mine" / "toy" / "train.en").write_text("other\n")
    monkeypatch.setenv("NMT_CORPORA", str(tmp_path / "mine"))
    assert find("toy", "train", "en") == tmp_path / "mine" / "toy" / "train.en"
    assert find("toy", "train", "de").parent == cached
    assert [checked.state for checked in check("toy")] == ["different", "good"]
    (tmp_path / "mine" / "toy" / "train.de.gz").write_bytes(b"damaged")
    assert [checked.state for checked in check("toy")] == ["different", "different"]
