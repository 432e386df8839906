"""Fetching: several sources in order, archives, tables, the hub, and text whose checksum nobody knows yet."""

import gzip
import hashlib
import io
import json
import logging
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.data import catalogue
from nmt.data.catalogue import check, download
from nmt.data.catalogue.fetching import fetch, find
from nmt.data.locators import load_corpus
from nmt.errors import DataError
from tests.data.catalogue.fetching import Server, entry, packed, write_entry

ENGLISH, GERMAN = b"one\ntwo\nthree\n", "eins\nzwei\ngrün\n".encode()
PAIRS = [("one", "eins"), ("two", "zwei"), ("three", "grün")]
DIGESTS = {"en": hashlib.sha256(ENGLISH).hexdigest(), "de": hashlib.sha256(GERMAN).hexdigest()}


@pytest.fixture
def server(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path / "entries")
    server.contents = {"/train.en": ENGLISH, "/train.de": GERMAN}
    return server


def offer(tmp_path: Path, *sources: dict[str, Any], splits: Sequence[str] = ("train",), **details: Any) -> None:
    """Write the entry of `toy` with splits that have these sources."""
    catalogue._entry.cache_clear()
    write_entry(tmp_path / "entries", entry({split: {"sources": list(sources), **details} for split in splits}))


def loaded(split: str = "train") -> list[tuple[str, str]]:
    return list(load_corpus(f"toy/{split}", source="en", target="de").pairs())


def downloads(tmp_path: Path) -> list[str]:
    """What is left of downloads."""
    return [path.name for path in (tmp_path / "cache" / "downloads").iterdir() if path.suffix != ".lock"]


# --- several sources --------------------------------------------------------------------------------------------


def test_sources_are_tried_in_order_and_each_failure_is_one_line(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.contents["/wrong/train.en"] = b"one\ntwo\nFOUR\n"
    places = ["/gone", "/wrong", "", "/never"]
    sources = [{"url": f"{server.address}{place}/{{split}}.{{language}}"} for place in places]
    offer(tmp_path, *sources, sha256=DIGESTS, lines=3)
    with caplog.at_level(logging.WARNING):
        path = find("toy", "train", "en")
    assert gzip.decompress(path.read_bytes()) == ENGLISH
    wrong = hashlib.sha256(server.contents["/wrong/train.en"]).hexdigest()
    assert [record.getMessage() for record in caplog.records] == [
        f"{server.address}/gone/train.en: HTTP 404 Not Found; trying the next source",
        f"{server.address}/wrong/train.en: the SHA-256 of its text is {wrong}, not {DIGESTS['en']}; trying the next source",
    ]
    assert not any("never" in address for address, _ in server.requests)
    assert downloads(tmp_path) == []


def test_the_last_error_names_all_that_failed_and_says_what_to_do(server: Server, tmp_path: Path, cached: Path) -> None:
    sources = [{"url": f"{server.address}/{place}/train.{{language}}"} for place in ("a", "b")]
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"en": "one"}\n')
    offer(tmp_path, *sources, {"hub": f"{folder}:test"}, sha256=DIGESTS)
    with pytest.raises(DataError) as caught:
        find("toy", "train", "en")
    sentence = str(caught.value)
    assert sentence.startswith(
        f"Cannot fetch toy/train.en from any of its 3 sources: {server.address}/a/train.en (HTTP 404 Not Found); "
        f"{server.address}/b/train.en (HTTP 404 Not Found); hf:{folder}:test (Cannot load hf:{folder}:test: "
    )
    assert f"get it elsewhere and put it at {cached / 'train.en'}[.gz], or set NMT_CORPORA" in sentence
    assert list(cached.iterdir()) == []


def test_an_interrupted_fetch_continues(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.contents["/train.en"] = english = b"a line\n" * 30_000
    server.cut["/train.en"] = [100_000]
    offer(tmp_path, {"url": f"{server.address}/train.{{language}}"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "ATTEMPTS", 1)
        with pytest.raises(DataError, match="only 100,000 of 210,000 bytes came"):
            find("toy", "train", "en")
    assert len(downloads(tmp_path)) == 2
    assert gzip.decompress(find("toy", "train", "en").read_bytes()) == english
    assert [byte_range for _, byte_range in server.requests] == [None, "bytes=100000-"]
    assert downloads(tmp_path) == []


# --- text without a known checksum ------------------------------------------------------------------------------


def test_the_first_fetch_is_recorded_and_compared_from_then_on(server: Server, tmp_path: Path, cached: Path) -> None:
    offer(tmp_path, {"url": f"{server.address}/{{split}}.{{language}}"})
    assert loaded() == PAIRS
    record = json.loads((cached / "train.en.fetched.json").read_text())
    place = f"{server.address}/{{split}}.{{language}}"
    assert record == {"sha256": DIGESTS["en"], "lines": 3, "source": place}
    assert [item.state for item in check("toy")] == ["good", "good"]

    (cached / "train.en.gz").unlink()
    server.contents["/train.en"] = b"one\ntwo\nFOUR\n"
    with pytest.raises(
        DataError,
        match=rf"not {DIGESTS['en']} as at the first fetch; remove .*train\.en\.fetched\.json to accept it; get",
    ):
        find("toy", "train", "en")
    server.contents["/train.en"] = ENGLISH
    find("toy", "train", "en")
    (cached / "train.en.gz").write_bytes(gzip.compress(b"damaged\n"))
    assert [item.state for item in check("toy")] == ["different", "good"]


def test_a_copy_of_ones_own_is_unverified(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, {"url": f"{server.address}/{{split}}.{{language}}"})
    (tmp_path / "mine" / "toy").mkdir(parents=True)
    (tmp_path / "mine" / "toy" / "train.en").write_bytes(ENGLISH)
    monkeypatch.setenv("NMT_CORPORA", str(tmp_path / "mine"))
    assert [item.state for item in check("toy")] == ["unverified", "missing"]


def test_both_sides_come_from_one_source(server: Server, tmp_path: Path, cached: Path) -> None:
    server.contents = {"/b/train.en": ENGLISH, "/b/train.de": GERMAN, "/a/train.de": b"x\ny\nz\n"}
    offer(tmp_path, *({"url": f"{server.address}/{place}/{{split}}.{{language}}"} for place in "ab"))
    find("toy", "train", "en")
    assert gzip.decompress(find("toy", "train", "de").read_bytes()) == GERMAN, "the first source has no English side"
    (cached / "train.de.gz").unlink()
    (cached / "train.de.fetched.json").unlink()
    del server.contents["/b/train.de"]
    address = f"{server.address}/b/train.de"
    with pytest.raises(
        DataError, match=f"Cannot fetch toy/train.de from {address}: HTTP 404 .* remove the other sides of train"
    ):
        find("toy", "train", "de")
    for path in cached.glob("train.en.*"):
        path.unlink()
    assert gzip.decompress(find("toy", "train", "de").read_bytes()) == b"x\ny\nz\n"


def test_a_recorded_checksum_lets_other_sources_serve(server: Server, tmp_path: Path, cached: Path) -> None:
    server.contents["/b/train.en"] = ENGLISH
    offer(tmp_path, *({"url": f"{server.address}{place}/{{split}}.{{language}}"} for place in ("", "/b")))
    find("toy", "train", "en")
    (cached / "train.en.gz").unlink()
    del server.contents["/train.en"]
    assert gzip.decompress(find("toy", "train", "en").read_bytes()) == ENGLISH


def test_a_wrong_number_of_lines_is_refused(server: Server, tmp_path: Path, cached: Path) -> None:
    offer(tmp_path, {"url": f"{server.address}/{{split}}.{{language}}"}, lines=1000)
    with pytest.raises(DataError, match="it has 3 lines, not 1,000; get"):
        find("toy", "train", "en")
    assert list(cached.iterdir()) == []
    server.contents["/train.de"] = GERMAN + b"vier\n"
    offer(tmp_path, {"url": f"{server.address}/{{split}}.{{language}}"})
    find("toy", "train", "en")
    with pytest.raises(DataError, match="it has 4 lines, but another side of train has 3; get"):
        find("toy", "train", "de")
    assert not (cached / "train.de.gz").exists()


# --- archives ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["all.zip", "all.tgz"])
def test_an_archive_is_downloaded_once_for_all_its_files(
    server: Server, tmp_path: Path, cached: Path, name: str
) -> None:
    files = {"./set/train.en": ENGLISH, "./set/train.de": GERMAN, "set/dev.en": b"a\n", "set/dev.de": b"b\n"}
    server.contents[f"/{name}"] = packed(name, {"../evil": b"x", "README": b"y", **files})
    offer(tmp_path, {"url": f"{server.address}/{name}", "member": "set/{split}.{language}"}, splits=("train", "dev"))
    assert loaded() == PAIRS
    assert loaded("dev") == [("a", "b")]
    assert len(server.requests) == 1
    assert downloads(tmp_path) == []
    assert not list(tmp_path.rglob("evil"))
    assert sorted(path.name for path in cached.glob("*.gz")) == ["dev.de.gz", "dev.en.gz", "train.de.gz", "train.en.gz"]


def test_members_are_put_together_in_their_order(server: Server, tmp_path: Path) -> None:
    files = {f"{part}.{side}": f"{side} {part}\n".encode() for part in "abc" for side in ("en", "de")}
    server.contents["/all.tgz"] = packed("all.tgz", files)
    offer(tmp_path, {"url": f"{server.address}/all.tgz", "member": ["c.{language}", "a.{language}"]})
    assert loaded() == [("en c", "de c"), ("en a", "de a")]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("all.zip", b"no archive", "the archive is damaged"),
        ("all.tgz", b"no archive", "the archive is damaged"),
        ("all.tgz", packed("all.tgz", {"train.en": ENGLISH * 9999})[:-200], "the archive is damaged"),
        ("all.zip", packed("all.zip", {"train.fr": b"x"}), "the archive has no file train.en"),
        ("all.tgz", packed("all.tgz", {"sub/train.en": b"x"}), "the archive has no file train.en"),
    ],
)
def test_a_damaged_archive_is_named(
    server: Server, tmp_path: Path, cached: Path, name: str, content: bytes, reason: str
) -> None:
    server.contents[f"/{name}"] = content
    offer(tmp_path, {"url": f"{server.address}/{name}", "member": "{split}.{language}"})
    with pytest.raises(DataError, match=rf"Cannot fetch toy/train\.en from {server.address}/{name}: {reason}"):
        find("toy", "train", "en")
    assert list(cached.iterdir()) == []
    assert downloads(tmp_path) == []


def test_a_link_in_a_tar_file_is_not_followed(server: Server, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as pack:
        info = tarfile.TarInfo("train.en")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        pack.addfile(info)
    server.contents["/all.tgz"] = buffer.getvalue()
    offer(tmp_path, {"url": f"{server.address}/all.tgz", "member": "{split}.{language}"})
    with pytest.raises(DataError, match=r"the archive has no file train\.en"):
        find("toy", "train", "en")


# --- formats ----------------------------------------------------------------------------------------------------


def test_metadata_of_talks_is_left_out_and_blank_lines_are_kept(server: Server, tmp_path: Path) -> None:
    head = "<doc docid='1'>\n<url>http://x</url>\n<title>A talk</title>\n<reviewer></reviewer>\n"
    english = f"{head} one \n\n<i>two</i>\n</doc>\n"
    server.contents = {"/train.en": english.encode(), "/train.de": f"{head}eins\nzwei\ndrei\n</doc>\n".encode()}
    offer(tmp_path, {"url": f"{server.address}/train.{{language}}", "format": "talks"})
    assert loaded() == [("one", "eins"), ("", "zwei"), ("<i>two</i>", "drei")]


def test_segments_are_read_from_xml(server: Server, tmp_path: Path) -> None:
    def document(*segments: str) -> bytes:
        body = "".join(f'<seg id="{number}">{text}</seg>\n' for number, text in enumerate(segments))
        return f'<?xml version="1.0"?>\n<mteval>\n<doc id="1">\n{body}</doc>\n</mteval>\n'.encode()

    server.contents = {"/t.en": document(" one ", "two\nlines"), "/t.de": document("eins", "zwei &amp; mehr")}
    offer(tmp_path, {"url": f"{server.address}/t.{{language}}", "format": "segments"})
    assert loaded() == [("one", "eins"), ("two lines", "zwei &amp; mehr")]


def test_a_column_of_a_table_is_read(server: Server, tmp_path: Path) -> None:
    rows = [{"translation": {"en": english, "de": german}} for english, german in PAIRS]
    server.contents["/all.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    offer(tmp_path, {"url": f"{server.address}/all.jsonl"}, sha256=DIGESTS)
    assert loaded() == PAIRS
    assert len(server.requests) == 1, "one table has both sides"


def test_a_local_folder_serves_as_the_hub(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [{"english": english, "german": german} for english, german in PAIRS]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dead = {"url": f"{server.address}/dead.{{language}}"}
    english, german = (
        {"hub": f"{folder}:train", "column": column, "languages": [side]}
        for side, column in (("en", "english"), ("de", "german"))
    )
    offer(tmp_path, dead, english, german, sha256=DIGESTS)
    assert loaded() == PAIRS
    assert [item.state for item in check("toy")] == ["good", "good"]


def test_fetch_takes_one_split(server: Server, tmp_path: Path, cached: Path) -> None:
    server.contents |= {"/dev.en": b"a\n", "/dev.de": b"b\n"}
    offer(tmp_path, {"url": f"{server.address}/{{split}}.{{language}}"}, splits=("train", "dev"))
    assert fetch("toy", "dev") == [cached / "dev.en.gz", cached / "dev.de.gz"]
    with pytest.raises(DataError, match=r"The corpus toy has no split 'dve'; did you mean 'dev'\?"):
        fetch("toy", "dve")
