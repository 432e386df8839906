"""Corpora of mtdata's index, with modules that stand in for the package."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from nmt.data.locators import load_corpus
from nmt.data.mtdata_index import search_mtdata
from nmt.errors import DataError, UsageError

NAME = "Group-set-1-deu-eng"
ROWS: list[tuple[str | None, str | None]] = [("eins", "one"), (None, "two"), ("drei\nvier", "three")]


class Index(dict[str, Any]):
    def get_entries(self) -> list[Any]:
        return list(self.values())


class Cache:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get_entry(self, entry: Any) -> list[Path]:
        if entry.url == "gone":
            raise AssertionError(404)
        return [self.folder / entry.url]


class Parser:
    def __init__(self, paths: list[Path], ext: str | None, ent: Any) -> None:
        assert ext is None
        assert all(path.parent.name == "mtdata" for path in paths)

    def read_segs(self, *, show_pbar: bool) -> list[tuple[str | None, str | None]]:
        return ROWS


class Id(str):
    __slots__ = ()

    @property
    def langs(self) -> list[str]:
        return self.split("-")[3:]

    @classmethod
    def parse(cls, name: str) -> "Id":
        return cls(name)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path))
    monkeypatch.setenv("MTDATA", str(tmp_path / "mtdata"))
    urls = {NAME: "file", "Group-gone-1-deu-eng": "gone", "Group-mono-1-deu": "file"}
    index = Index({name: SimpleNamespace(did=Id(name), url=url, in_ext="") for name, url in urls.items()})
    contents: dict[str, dict[str, Any]] = {"index": {"INDEX": index}, "entry": {"DatasetId": Id}}
    contents |= {"cache": {"Cache": Cache}, "parser": {"Parser": Parser}}
    monkeypatch.setitem(sys.modules, "mtdata", ModuleType("mtdata"))
    for name, values in contents.items():
        module = ModuleType(f"mtdata.{name}")
        module.__dict__.update(values)
        monkeypatch.setitem(sys.modules, f"mtdata.{name}", module)


def test_a_corpus_is_read_in_either_direction() -> None:
    pairs = [("eins", "one"), ("", "two"), ("drei vier", "three")]
    assert list(load_corpus(f"mtdata:{NAME}", source="de", target="en")) == pairs
    assert list(load_corpus(f"mtdata:{NAME}[1:]", source="eng", target="de-DE")) == [pair[::-1] for pair in pairs[1:]]


def test_the_index_is_searched() -> None:
    assert search_mtdata(["SET", "deu"]) == [f"mtdata:{NAME}"]
    assert search_mtdata([]) == ["mtdata:Group-gone-1-deu-eng", f"mtdata:{NAME}"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "Group-none-1-deu-eng",
            "mtdata cannot read mtdata:Group-none-1-deu-eng; `nmt corpora list --search WORDS` finds",
        ),
        ("Group-mono-1-deu", "not enough values to unpack"),
        ("Group-gone-1-deu-eng", "mtdata cannot read mtdata:Group-gone-1-deu-eng: 404"),
        (NAME, "translates deu to eng, but the languages are en and fr"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, problem: str) -> None:
    languages = ("en", "fr") if name == NAME else ("en", "de")
    with pytest.raises(DataError) as caught:
        load_corpus(f"mtdata:{name}", source=languages[0], target=languages[1])
    assert problem in str(caught.value)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mtdata", "mtdata.index", "mtdata.entry"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r'pip install "attentional-nmt\[mtdata\]"'):
        load_corpus(f"mtdata:{NAME}", source="en", target="de")
