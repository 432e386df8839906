"""Corpora of mtdata's index, with a stand-in of the package whose addresses are of a server on this machine."""

import gzip
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nmt.data.locators import load_corpus
from nmt.data.mtdata_index import fetch_mtdata
from nmt.errors import DataError, UsageError
from nmt.runtime.cache import cache_folder
from tests.data.catalogue.fetching import Server, packed

PAIRS = [("Hallo", "Hello"), ("Tür zu", "Close the door")]


@dataclass
class Did:
    """A name in the index."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def langs(self) -> list[str]:
        return self.name.split("-")[3:]


@dataclass
class Entry:
    """An entry of the index, with the attributes of mtdata's that are used."""

    did: Did
    url: str | list[str]
    ext: str
    in_paths: list[str] | None = None
    in_ext: str | None = None
    meta: dict[str, str] = field(default_factory=dict)

    @property
    def is_archive(self) -> bool:
        return self.ext in ("zip", "tgz")


class Parser:
    """Reads plain text and tables of two columns; it logs as mtdata does."""

    def __init__(self, paths: list[Path], ext: str, ent: Entry) -> None:
        self.paths, self.ext = paths, ext

    def read_segs(self, show_pbar: bool) -> Iterator[list[str]]:
        logging.warning("mtdata reads %s", self.paths)  # noqa: LOG015 -- as mtdata does
        if "tsv" in self.ext:
            with gzip.open(self.paths[0], "rt", encoding="utf-8") as stream:
                yield from (line.rstrip("\n").split("\t") for line in stream)
            return
        sides = [path.read_text(encoding="utf-8").splitlines() for path in self.paths]
        yield from map(list, zip(*sides, strict=True))


class Index:
    """The index, which takes names with languages of two letters too."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = {str(entry.did): entry for entry in entries}

    def get_entries(self) -> Sequence[Entry]:
        return list(self.entries.values())


class DatasetId:
    """Parses a name into a key of the index."""

    @classmethod
    def parse(cls, name: str) -> str:
        return name.replace("-de-en", "-deu-eng")


@pytest.fixture
def server(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    german, english = ("".join(f"{pair[side]}\n" for pair in PAIRS).encode() for side in (0, 1))
    sides = {"../../README": b"no", "x/Text.de-en.de": german, "x/Text.de-en.en": english}
    server.contents = {
        "/t.tsv.gz": gzip.compress("".join(f"{one}\t{two}\n" for one, two in PAIRS).encode()),
        "/t.zip": packed("zip", sides),
        "/t.tgz": packed("tgz", sides),
        "/t.de": german,
        "/t.en": english,
    }
    inside = ["*.de", "x/*.en"]
    at = server.address
    entries = [
        Entry(Did("G-tsv-1-deu-eng"), f"{at}/t.tsv.gz", "tsv.gz"),
        Entry(Did("G-zip-1-deu-eng"), f"{at}/t.zip", "zip", inside, "txt"),
        Entry(Did("G-tgz-1-deu-eng"), f"{at}/t.tgz", "tgz", inside, "txt"),
        Entry(Did("G-two-1-deu-eng"), [f"{at}/t.de", f"{at}/t.en"], "txt"),
        Entry(Did("G-other-1-deu-eng"), f"{at}/t.zip", "zip", ["*.de", "*.fr"], "txt"),
        Entry(Did("G-broken-1-deu-eng"), f"{at}/t.de", "tsv.gz"),
        Entry(Did("G-away-1-deu-eng"), f"{at}/none.zip", "zip", inside, "txt"),
        Entry(Did("G-hub-1-deu-eng"), "https://huggingface.co/datasets/a/b", "hfds", ["x"], "hfds", {"orig_id": "a/b"}),
        Entry(Did("G-mono-1-deu"), f"{at}/t.de", "txt"),
    ]
    package, index, entry, parser = (
        ModuleType(name) for name in ("mtdata", "mtdata.index", "mtdata.entry", "mtdata.parser")
    )
    contents: dict[ModuleType, dict[str, Any]] = {
        package: {"cached_index_file": Path("/nowhere/mtdata.index.0.5.1.pkl")},
        index: {"INDEX": Index(entries)},
        entry: {"DatasetId": DatasetId},
        parser: {"Parser": Parser},
    }
    for module, values in contents.items():
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return server


@pytest.mark.parametrize("kind", ["tsv", "zip", "tgz", "two"])
def test_a_corpus_is_fetched_once_and_read_in_both_directions(
    kind: str, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    locator = f"mtdata:G-{kind}-1-deu-eng"
    assert list(load_corpus(locator, source="de", target="en").pairs()) == PAIRS
    requests = len(server.requests)
    assert list(load_corpus(f"{locator}[1:]", source="en", target="de").pairs()) == [PAIRS[1][::-1]]
    assert len(server.requests) == requests
    assert [path.name for path in fetch_mtdata(locator)] == ["deu.gz", "eng.gz"]
    assert not [path for path in (cache_folder() / "downloads").iterdir() if path.suffix != ".lock"]
    assert not [record for record in caplog.records if record.name == "root"]


def test_logging_stays_as_it_was_set_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    load_corpus("mtdata:G-tsv-1-deu-eng", source="de", target="en")
    assert logging.root.handlers == []


def test_names_may_have_languages_of_two_letters(server: Server) -> None:
    assert list(load_corpus("mtdata:G-tsv-1-de-en", source="de", target="en").pairs()) == PAIRS


def test_a_broken_download_continues(server: Server) -> None:
    server.cut["/t.zip"] = [30]
    assert len(load_corpus("mtdata:G-zip-1-deu-eng", source="de", target="en")) == 2
    assert server.requests == [("/t.zip", None), ("/t.zip", "bytes=30-")]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("G-none-1-deu-eng", "mtdata has no corpus mtdata:G-none-1-deu-eng: `nmt corpora list --search WORDS` finds"),
        ("G-mono-1-deu", "'mtdata:G-mono-1-deu' names no parallel corpus of mtdata: write mtdata:GROUP-NAME"),
        ("../x", "'mtdata:../x' names no parallel corpus of mtdata"),
        ("G-tsv-1-deu-fra", "mtdata:G-tsv-1-deu-fra translates de to fr, but the languages are de and en."),
        (
            "G-other-1-deu-eng",
            "Cannot fetch mtdata:G-other-1-deu-eng from ADDRESS/t.zip: the archive has no file *.fr.",
        ),
        (
            "G-broken-1-deu-eng",
            "Cannot fetch mtdata:G-broken-1-deu-eng from ADDRESS/t.de: mtdata cannot read it (Not a g",
        ),
        ("G-away-1-deu-eng", "Cannot fetch mtdata:G-away-1-deu-eng from ADDRESS/none.zip: HTTP 404 Not Found."),
        ("G-hub-1-deu-eng", "mtdata:G-hub-1-deu-eng is a data set of the hub: name it hf:a/b[/CONFIG]:SPLIT."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(name: str, sentence: str, server: Server) -> None:
    with pytest.raises(DataError) as caught:
        load_corpus(f"mtdata:{name}", source="de", target="en")
    assert str(caught.value).startswith(sentence.replace("ADDRESS", server.address))
    assert not list((cache_folder() / "mtdata").glob("*/*.gz"))


def test_names_are_found_by_words_and_described(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    from nmt.cli.corpora import describe_corpus, fetch_corpus, list_corpora

    list_corpora("ENG zip")
    assert capsys.readouterr().out.split() == ["mtdata:G-zip-1-deu-eng"]
    with pytest.raises(DataError, match="No corpus has 'mono deu' in its name"):
        list_corpora("mono deu")
    describe_corpus("mtdata:G-zip-1-deu-eng")
    assert f"{server.address}/t.zip" in capsys.readouterr().out
    fetch_corpus("mtdata:G-zip-1-deu-eng")
    assert capsys.readouterr().out.split() == [
        str(cache_folder() / "mtdata/G-zip-1-deu-eng" / f"{code}.gz") for code in ("deu", "eng")
    ]


def test_nothing_is_fetched_where_that_is_off(server: Server) -> None:
    with pytest.raises(DataError, match="may have to be fetched"):
        load_corpus("mtdata:G-zip-1-deu-eng", source="de", target="en", fetch=False)
    assert server.requests == []


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mtdata", None)
    monkeypatch.setenv("NMT_CACHE", str(tmp_path))
    with pytest.raises(UsageError, match=r'need the package mtdata: pip install "attentional-nmt\[mtdata\]"'):
        load_corpus("mtdata:G-zip-1-deu-eng", source="de", target="en")
