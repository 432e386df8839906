"""Zip archives: which members are the text, and archives that cannot be read."""

import gzip
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.data.locators import load_corpus
from tests.data.formats.loading import load, refusal
from tests.data.formats.test_tmx import memory, unit

PAIRS = [("one", "eins"), ("two", "zwei")]
SIDES = {"en": "one\ntwo\n", "de": "eins\nzwei\n"}


def pack(path: Path, contents: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.mkdir("folder")
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def opus(folder: Path, **more: str) -> Path:
    """An archive as those of OPUS, from the folder in it."""
    sides = {f"Toy.de-en.{code}": text for code, text in SIDES.items()}
    rest = {"README": "read me\n", "LICENSE": "free\n", "Toy.de-en.xml": "<a/>", "Toy.de-en.ids": "1\t1\n"}
    return pack(folder / "de-en.txt.zip", {**rest, **sides, "__MACOSX/._x.tmx": "junk", **more})


def parquet() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"en": ["one", "two"], "de": ["eins", "zwei"]}), stream)
    return stream.getvalue()


def test_the_only_pair_is_the_text(tmp_path: Path) -> None:
    path = opus(tmp_path)
    assert load(path) == PAIRS
    assert load(path, "de", "en") == [(target, source) for source, target in PAIRS]
    for inside in ("Toy.de-en.{en,de}", "Toy.de-en.{de,en}", "Toy.de-en"):
        assert load(f"{path}/{inside}") == PAIRS
    assert sorted(item.name for item in tmp_path.iterdir()) == ["de-en.txt.zip"], "nothing is extracted"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep/a.tmx", memory(unit(en="one", de="eins"), unit(en="two", de="zwei"))),
        ("a.tsv", "one\teins\ntwo\tzwei\n"),
        ("a.csv.gz", gzip.compress(b"de,en\neins,one\nzwei,two\n", mtime=0)),
        ("a.po", 'msgid "one"\nmsgstr "eins"\nmsgid "two"\nmsgstr "zwei"\n'),
        ("a.parquet", parquet()),
    ],
)
def test_the_only_file_with_both_sides_is_the_text(tmp_path: Path, name: str, content: str | bytes) -> None:
    path = pack(tmp_path / "a.zip", {name: content, "README": "x"}, zipfile.ZIP_BZIP2)
    assert load(path) == PAIRS
    assert load(f"{path}/{name}") == PAIRS


def test_members_may_be_compressed_and_in_folders(tmp_path: Path) -> None:
    inside: dict[str, str | bytes] = {"text/train.en.gz": gzip.compress(b"one\ntwo\n"), "text/train.de": "eins\nzwei\n"}
    path = pack(tmp_path / "a.zip", inside)
    assert load(path) == load(f"{path}/text/train.{{en,de}}") == PAIRS
    folders = pack(tmp_path / "b.zip", {f"{code}/x.txt": text for code, text in SIDES.items()})
    assert load(f"{folders}/{{en,de}}/x.txt") == PAIRS


def test_a_member_without_a_name_is_none(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"a.en": SIDES["en"], "a.de": SIDES["de"], "nameless": "x"})
    path.write_bytes(path.read_bytes().replace(b"nameless", b"\0ameless"))  # a name ends at a 0
    assert load(path) == PAIRS


def test_two_sgml_members_are_a_text(tmp_path: Path) -> None:
    inside = {f"{code}.sgm": f'<doc docid="a"><seg id="1">{text}</seg></doc>' for code, text in SIDES.items()}
    assert load(f"{pack(tmp_path / 'a.zip', inside)}/{{en,de}}.sgm") == [("one two", "eins zwei")]


def test_names_that_leave_the_archive_are_names(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = pack(folder / "a.zip", {f"../../escaped.{code}": text for code, text in SIDES.items()})
    assert load(path) == PAIRS
    assert sorted(item.name for item in tmp_path.rglob("*")) == ["a.zip", "folder"]


def test_several_texts_are_listed_as_locators(tmp_path: Path) -> None:
    path = opus(tmp_path, **{"b.en": "x\n", "b.de": "y\n", "c.tmx": "<tmx/>"})
    expected = [f"{path}/Toy.de-en.{{en,de}}", f"{path}/b.{{en,de}}", f"{path}/c.tmx"]
    assert refusal(path) == f"{path} has several texts, so name one: {', '.join(expected)}."
    assert load(expected[1]) == [("x", "y")]


def test_an_archive_without_a_text_lists_what_it_has(tmp_path: Path) -> None:
    path = opus(tmp_path)
    assert "has no two files that end in .en and .ja, and none that holds both sides" in refusal(path, "en", "ja")
    assert refusal(f"{path}/nope").startswith(f"{path} has no file nope.en, only README, LICENSE, ")
    assert refusal(f"{path}/nope.tmx").startswith(f"{path} has no file nope.tmx, only README, ")
    assert "nothing." in refusal(pack(tmp_path / "empty.zip", {}))
    assert "names en and fr, but the languages are en and de" in refusal(f"{path}/train.{{en,fr}}")


def test_different_line_counts_name_both_members(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"a.en": "one\n", "a.de": "eins\nzwei\n"})
    assert refusal(path).startswith(f"{path}/a.en has 1 line, but {path}/a.de has 2: ")
    path = pack(tmp_path / "a.zip", {"a.en": b"one\n\xff\n", "a.de": "eins\nzwei\n"})
    assert refusal(path) == f"{path}/a.en, line 2: not valid UTF-8 (byte 0xFF)."


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    path = opus(tmp_path)
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.find(mark)
        while start >= 0:
            content[start + offset] |= 1
            start = content.find(mark, start + 4)
    path.write_bytes(content)
    assert refusal(path).startswith(f"{path}/Toy.de-en.en is encrypted: unpack the archive with its password")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_members_are_named(tmp_path: Path, method: int) -> None:
    path = pack(tmp_path / "a.zip", {f"a.{code}": f"{text * 50}\n" for code, text in SIDES.items()}, method)
    content = bytearray(path.read_bytes())
    start = content.find(b"a.en") + 12
    content[start : start + 8] = bytes(byte ^ 0x55 for byte in content[start : start + 8])
    path.write_bytes(content)
    assert f"{path}/a.en" in refusal(path)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = opus(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    assert refusal(path).startswith(f"{path} is damaged, or no zip archive: ")
    path.write_text("text")
    assert refusal(f"{path}/a.{{en,de}}").startswith(f"{path} is damaged, or no zip archive: ")
    assert "There is no file" in refusal(tmp_path / "missing.zip")


def test_a_folder_may_end_in_zip(tmp_path: Path) -> None:
    folder = tmp_path / "old.zip"
    folder.mkdir()
    for code, text in SIDES.items():
        (folder / f"a.{code}").write_text(text)
    assert load(f"{folder}/a") == PAIRS
    inner = pack(folder / "b.zip", {f"c.{code}": text for code, text in SIDES.items()})
    assert load(f"{inner}/c") == PAIRS


def test_members_are_not_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pack(tmp_path / "a.zip", {f"a.{code}": f"{'x' * 99}\n" * 20_000 for code in SIDES})
    read, lengths = zipfile.ZipExtFile.read1, []

    def read1(stream: zipfile.ZipExtFile, size: int | None) -> bytes:
        block = read(stream, size)
        lengths.append(len(block))
        return block

    monkeypatch.setattr(zipfile.ZipExtFile, "read1", read1)
    assert len(load_corpus(path, source="en", target="de")) == 20_000
    assert sum(lengths) == 4_000_000
    assert max(lengths) <= 2**20
