"""Corpora of other packages: local data sets, a folder that stands for sacreBLEU's cache, and modules that stand for mtdata."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sacrebleu.dataset import DATASETS

from nmt.data.external import search_mtdata
from nmt.data.locators import load_corpus
from nmt.errors import DataError, UsageError

PAIRS = [("one", "eins"), ("two  ", "\tzwei"), ("", "leer")]
NAME = "Group-set-1-deu-eng"
ROWS: list[tuple[str | None, str | None]] = [("eins", "one"), (None, "two"), ("drei\nvier", "three")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "hub"))
    return tmp_path


def load(locator: str, source: str = "en", target: str = "de") -> list[tuple[str, str]]:
    return list(load_corpus(locator, source=source, target=target))


def write_rows(path: str, rows: list[dict[str, Any]]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


# --- the hub ----------------------------------------------------------------------------------------------------


def test_a_local_dataset_is_read_through_the_hub_package() -> None:
    write_rows("set/train.jsonl", [{"translation": {"en": source, "de": target}} for source, target in PAIRS])
    assert load("hf:set:train") == PAIRS
    assert load("hf:./set:train[:2]", "de", "en") == [(target, source) for source, target in PAIRS[:2]]
    Path("columns").mkdir()
    pq.write_table(pa.table({"German": ["b"], "en_US": ["a"]}), "columns/train.parquet")
    assert load(f"hf:{Path('columns').absolute()}:train") == load("columns/train.parquet") == [("a", "b")]


def test_the_first_rows_of_a_dataset_are_streamed() -> None:
    lines = [(f"one {row}", f"eins {row}") for row in range(25_000)]
    write_rows("set/train/0.jsonl", [{"en": source, "de": target} for source, target in lines])
    Path("set/train/1.jsonl").write_text("not json\n")
    assert load("hf:set:train[:12345]") == load("hf:set:train[0:12345]") == lines[:12345]
    assert load("hf:set:train[:20000]") == lines[:20000], "the second file is not read"
    assert not list(Path("hub").rglob("*.arrow")), "nothing was converted as a whole"


@pytest.mark.parametrize(
    ("locator", "problem"),
    [
        *((locator, "write hf:owner/name:split") for locator in ("hf:", "hf:owner/name", "hf::train", "hf:owner/n:")),
        ("hf:set:train", "hf:set:train, row 2: every side must be text, but one is None."),
        ("hf:set:train[:1]", "hf:set:train[:1] has no column fr, only en, de."),
        ("hf:set:train[:0]", "The corpus hf:set:train[:0] is empty"),
        ("hf:set:nope", "Cannot load hf:set:nope: "),
        ("hf:set:nope[:5]", "Cannot load hf:set:nope[:5]: "),
        ("hf:bad:train[:9]", "Cannot load hf:bad:train[:9]: JSON parse error"),
        ("hf:tables:train", "hf:tables:train is a folder of tables: name one of them, such as tables/train/0.tsv.gz."),
    ],
)
def test_bad_datasets_are_named(locator: str, problem: str) -> None:
    write_rows("set/train.jsonl", [{"en": "a", "de": "b"}, {"en": "a", "de": None}])
    Path("bad").mkdir()
    Path("bad/train.jsonl").write_text("not json\n")
    Path("tables/train").mkdir(parents=True)
    Path("tables/train/0.tsv.gz").touch()
    with pytest.raises(DataError) as caught:
        load(locator, "en", "fr" if "fr," in problem else "de")
    assert problem in str(caught.value)
    assert "connection" not in str(caught.value)


def test_without_a_connection_the_hub_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("Couldn't reach 'owner/name' on the Hub (OfflineModeIsEnabled)")

    monkeypatch.setattr("datasets.load_dataset", offline)
    with pytest.raises(DataError, match=r"hf:owner/name:train: Couldn't reach .*; without a connection, load"):
        load("hf:owner/name:train")


# --- mtdata -----------------------------------------------------------------------------------------------------


class Id(str):
    __slots__ = ()
    parse = classmethod(lambda cls, name: cls(name))

    @property
    def langs(self) -> list[str]:
        return self.split("-")[3:]


class Index(dict[str, Any]):
    def get_entries(self) -> list[Any]:
        return list(self.values())


@pytest.fixture
def mtdata(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CACHE", str(folder))
    monkeypatch.setenv("MTDATA", str(folder / "mtdata"))
    urls = {NAME: "file", "Group-gone-1-deu-eng": "gone", "Group-mono-1-deu": "file"}
    index = Index({name: SimpleNamespace(did=Id(name), url=url, in_ext="") for name, url in urls.items()})

    def get_entry(entry: Any) -> list[Path]:
        if entry.url == "gone":
            raise AssertionError(404)
        return [folder / "mtdata" / entry.url]

    def parser(paths: list[Path], ext: str | None, ent: Any) -> Any:
        assert (paths, ext) == ([folder / "mtdata" / "file"], None)
        return SimpleNamespace(read_segs=lambda show_pbar: ROWS)

    cache = SimpleNamespace(get_entry=get_entry)
    contents = {"index.INDEX": index, "entry.DatasetId": Id, "cache.Cache": lambda _: cache, "parser.Parser": parser}
    for path, value in contents.items():
        name, _, attribute = path.partition(".")
        module = ModuleType(f"mtdata.{name}")
        setattr(module, attribute, value)
        monkeypatch.setitem(sys.modules, f"mtdata.{name}", module)
    monkeypatch.setitem(sys.modules, "mtdata", ModuleType("mtdata"))


@pytest.mark.usefixtures("mtdata")
def test_a_corpus_of_mtdata_is_read_in_either_direction_and_found() -> None:
    pairs = [("eins", "one"), ("", "two"), ("drei vier", "three")]
    assert load(f"mtdata:{NAME}", "de", "en") == pairs
    assert load(f"mtdata:{NAME}[1:]", "eng", "de-DE") == [pair[::-1] for pair in pairs[1:]]
    assert search_mtdata(["SET", "deu"]) == [f"mtdata:{NAME}"]
    assert search_mtdata([]) == ["mtdata:Group-gone-1-deu-eng", f"mtdata:{NAME}"]


@pytest.mark.usefixtures("mtdata")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Group-none-1-deu-eng", "mtdata cannot read mtdata:Group-none-1-deu-eng (`nmt corpora list --search"),
        ("Group-mono-1-deu", "not enough values to unpack"),
        ("Group-gone-1-deu-eng", "404"),
        (NAME, "translates deu to eng, but the languages are en and fr"),
    ],
)
def test_what_mtdata_cannot_read_is_named(name: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError) as caught:
        load(f"mtdata:{name}", "en", "fr" if name == NAME else "de")
    assert problem in str(caught.value)
    monkeypatch.setitem(sys.modules, "mtdata.index", None)
    with pytest.raises(UsageError, match=r'pip install "attentional-nmt\[mtdata\]"'):
        load(f"mtdata:{name}")


# --- sacreBLEU --------------------------------------------------------------------------------------------------


@pytest.fixture
def wmt14(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The test set with a folder that has the text of en-de, and nothing to download from."""
    test_set: Any = DATASETS["wmt14"]
    monkeypatch.setattr(test_set, "_outdir", str(folder))
    monkeypatch.setattr(test_set, "_rawdir", str(folder / "raw"))
    monkeypatch.setattr(test_set, "data", ["http://127.0.0.1:9/test.tgz"])
    monkeypatch.setenv("no_proxy", "*")
    for name, text in {"src": "one\ntwo\n", "ref": "eins\nzwei\n", "docid": "", "genre": "", "origlang": ""}.items():
        (folder / f"wmt14.en-de.{name}").write_text(text)
    return test_set


@pytest.mark.usefixtures("wmt14")
def test_a_test_set_is_a_corpus_in_both_directions() -> None:
    assert load("sacrebleu:wmt14/en-de") == [("one", "eins"), ("two", "zwei")]
    assert load("sacrebleu:wmt14/en-de", "de", "en")[1] == ("zwei", "two")


@pytest.mark.usefixtures("wmt14")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("wmt14/fool/en-de", "sacreBLEU has no test set 'wmt14/fool'; did you mean 'wmt14/full'?"),
        ("nothing", "sacreBLEU has no test set 'nothing'; it has "),
        ("wmt14", "sacrebleu:wmt14 needs a language pair, as in sacrebleu:wmt14/cs-en."),
        ("wmt14/en-da", "sacreBLEU's wmt14 has no en-da; did you mean 'en-"),
        ("wmt14/en-fr", "sacrebleu:wmt14/en-fr translates en to fr, but the languages are en and de."),
        ("wmt14/de-en", "sacreBLEU cannot provide sacrebleu:wmt14/de-en: [Errno 111] Connection refused; on a machine"),
    ],
)
def test_what_sacrebleu_does_not_have_is_one_sentence(name: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        load(f"sacrebleu:{name}")
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)


def test_a_wrong_checksum_is_no_end_of_the_program(wmt14: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "raw").mkdir()
    monkeypatch.setattr(wmt14, "data", [(folder / "other.tgz").as_uri()])
    (folder / "other.tgz").write_bytes(b"not the archive")
    with pytest.raises(DataError, match=r"^sacreBLEU cannot provide sacrebleu:wmt14/de-en; the line above says why\.$"):
        load("sacrebleu:wmt14/de-en", "de", "en")
