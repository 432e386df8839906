"""Every locator gives the same pairs, no character shifts a line, and bad input is named in one sentence."""

import bz2
import gzip
import io
import json
import lzma
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.alignment.corpus_links import load_links
from nmt.alignment.gold import gold_links
from nmt.bundle.places import find_model
from nmt.data import arrays
from nmt.data.lines import lines_of, open_binary, read_lines
from nmt.data.locators import load_corpus
from nmt.data.tables import read_column
from nmt.errors import DataError, UsageError

PAIRS = [("one", "eins"), ("two  ", "\tzwei"), ("", "leer")]
# No line of it ends anywhere but at "\n".
AWKWARD = [
    "nul \0 here",
    "tab\there",
    "😀 e\u0301",
    "שלום",
    "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei",
    "cr\rmid",
    "  ",
]


def _zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": _zstd,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NMT_CORPORA", raising=False)
    return tmp_path


def _write(name: str, content: str | bytes) -> None:
    raw = content.encode() if isinstance(content, str) else content
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(COMPRESS.get(Path(name).suffix, bytes)(raw))


def _write_sides(suffix: str = "", *, names: tuple[str, str] = ("en", "de")) -> None:
    for side, name in enumerate(names):
        _write(f"dir/train.{name}{suffix}", "".join(pair[side] + "\n" for pair in PAIRS))


def _load(locator: str, source: str = "en", target: str = "de") -> list[tuple[str, str]]:
    return list(load_corpus(locator, source=source, target=target).pairs())


# --- two files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_are_found_and_decompressed(suffix: str) -> None:
    _write_sides(suffix)
    for locator in (f"dir/train.{{en,de}}{suffix}", "dir/train.{en,de}", "dir/train", "./dir/train"):
        assert _load(locator) == PAIRS
    assert _load(str(Path("dir/train").absolute()), "de", "en") == [(target, source) for source, target in PAIRS]


def test_the_sides_may_be_compressed_differently() -> None:
    _write("dir/train.en.xz", "one\n")
    _write("dir/train.de.gz", "eins\n")
    assert _load("dir/train") == [("one", "eins")]


def test_braces_name_source_and_target() -> None:
    _write_sides(names=("src", "trg"))
    assert _load("dir/train.{src,trg}") == PAIRS
    assert _load("dir/train.{src, trg}") == PAIRS
    _write_sides(names=("en", "de"))
    assert _load("dir/train.{de,en}") == PAIRS, "language codes count, not their order"
    _write("en/text.gz", "one\n")
    _write("de/text.gz", "eins\n")
    assert _load("{en,de}/text") == [("one", "eins")]


@pytest.mark.parametrize("names", ["en,de", "fr,en", "fr.tok,de.tok", "ja-JP,fr", "clean,ref", "fr,x"])
def test_braces_that_name_no_or_another_language_are_refused(names: str) -> None:
    for name in names.split(","):
        _write(f"dir/train.{name}", "one\n")
    for languages in (("fr", "it"), ("it", "ja")):
        first, second = names.split(",")
        with pytest.raises(
            DataError, match=rf"must name the languages .* codes or English names, but .* {first} and {second}\.$"
        ):
            _load(f"dir/train.{{{names}}}", *languages)


def test_braces_with_language_codes_among_other_marks_are_read_in_the_declared_order() -> None:
    _write("dir/train.en.tok", "one\n")
    _write("dir/train.de-AT", "eins\n")
    for locator in ("dir/train.{en.tok,de-AT}", "dir/train.{de-AT,en.tok}"):
        assert _load(locator) == [("one", "eins")]
    _write("t.zh-CN", "one\n")
    _write("t.zh-TW", "two\n")
    for locator in ("t.{zh-CN,zh-TW}", "t.{zh-TW,zh-CN}"):
        assert _load(locator, "zh-CN", "zh-TW") == [("one", "two")]


@pytest.mark.parametrize("names", [("eng", "deu"), ("eng_Latn", "deu_Latn"), ("english", "german"), ("src", "tgt")])
def test_braces_and_headers_name_languages_in_the_same_ways(names: tuple[str, str]) -> None:
    _write_sides(names=names)
    _write("t.tsv", "".join(f"{second}\t{first}\n" for first, second in [names, ("one", "eins")]))
    for ordered in (names, names[::-1]):
        assert _load(f"dir/train.{{{','.join(ordered)}}}") == PAIRS
    assert _load("t.tsv") == [("one", "eins")]


def test_a_file_comes_before_a_catalogue_name() -> None:
    _write("multi30k/train.en", "mine\n")
    _write("multi30k/train.de", "meins\n")
    assert _load("multi30k/train") == [("mine", "meins")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_awkward_characters_stay_and_shift_nothing(end: str) -> None:
    _write("odd.en", "\ufeff" + "".join(line + end for line in AWKWARD))
    _write("odd.de.gz", "".join(f"{number}{end}" for number, _ in enumerate(AWKWARD)))
    assert _load("odd") == [(line, str(number)) for number, line in enumerate(AWKWARD)]


def test_a_last_line_needs_no_end_and_a_mark_alone_is_no_line() -> None:
    _write("a.en", "one\n\ntwo")
    assert list(read_lines("a.en")) == ["one", "", "two"]
    _write("a.en", "\ufeff")
    assert list(read_lines("a.en")) == []
    _write("a.en", "\n")
    assert list(read_lines("a.en")) == [""]
    _write("a.en", "\ufeffone\n\ufefftwo")
    assert list(read_lines("a.en")) == ["one", "\ufefftwo"], "a mark is one only at the beginning"


class _Trickle(io.BytesIO):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, content: bytes, step: int) -> None:
        super().__init__(content)
        self.step = step

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self.step)


@given(
    lines=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\ufeff")), max_size=5),
    step=st.integers(1, 9),
    mark=st.booleans(),
)
@settings(max_examples=60)
def test_lines_do_not_depend_on_how_the_bytes_arrive(lines: list[str], step: int, mark: bool) -> None:
    content = ("\ufeff" * mark + "".join(line + "\n" for line in lines)).encode()
    assert list(lines_of(_Trickle(content, step), "pipe")) == [line.removesuffix("\r") for line in lines]


def test_a_line_is_given_before_the_next_is_written() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as stream, open(writer, "wb", buffering=0) as sink:
        lines = lines_of(stream, "pipe")
        for line in ("first", "second"):
            sink.write(line.encode() + b"\n")
            assert next(lines) == line


def test_different_line_counts_name_both_files() -> None:
    _write("m.en", "a\nb\nc\n")
    _write("m.de.gz", "a\n" * 2)
    with pytest.raises(DataError, match=r"^m\.en has 3 lines, but m\.de\.gz has 2: line n "):
        _load("m")


@pytest.mark.parametrize("before", [1, 300_000])
def test_invalid_utf8_names_file_and_line(before: int) -> None:
    _write("bad.de.gz", b"fine\n" * before + b"bad \xff here\nfine\n")
    _write("bad.en", "x\n" * (before + 2))
    with pytest.raises(DataError, match=rf"^bad\.de\.gz, line {before + 1}: not valid UTF-8 \(byte 0xFF\)\.$"):
        _load("bad")
    _write("bad.de.gz", b"fine\ncut \xe2\x82")
    with pytest.raises(DataError, match="line 2: not valid UTF-8"):
        list(read_lines("bad.de.gz"))


@pytest.mark.parametrize("suffix", list(COMPRESS)[1:])
def test_damaged_files_are_named(suffix: str) -> None:
    _write("d.de", "x\n")
    for content in (COMPRESS[suffix](os.urandom(3000).hex().encode())[:-200], b"no such format"):
        Path(f"d.en{suffix}").write_bytes(content)
        with pytest.raises(DataError, match=rf"^d\.en\{suffix} is damaged and cannot be read to its end: .+\.$"):
            _load("d")


@pytest.mark.parametrize(
    ("locator", "sentence"),
    [
        ("dir/nope", r"no file dir/nope\.en and no file dir/nope\.de \(also with \.gz .*`nmt corpora` lists"),
        ("dir/nope.{en,de}.gz", r"no file dir/nope\.en\.gz and no file dir/nope\.de\.gz \(also [^)]*\)\.$"),
        ("dir/half", r"There is no file dir/half\.de \(also [^)]*\)"),
        ("dir/half.en", r"dir/half\.en is one file; name two as in dir/train\.\{en,de\}"),
        ("dir/half.{en}", r"braces in dir/half\.\{en\} must hold two names"),
        ("multi30k/trian", r"multi30k has no split 'trian'; did you mean 'train'\?"),
        ("multi30/train", r"did you mean 'multi30k/train'\?"),
        ("./multi30", r"no file \./multi30\.en"),
        ("mine/train", r"There is no file root/mine/train\.de \(also"),
        ("dir/empty", "The corpus dir/empty is empty"),
        ("dir/empty.tsv", "The corpus dir/empty.tsv is empty"),
        ("dir/header.csv", "The corpus dir/header.csv is empty"),
        ("nope.parquet", r"There is no file nope\.parquet"),
        ("sample:nope", "no split 'nope', only train, valid, test"),
    ],
)
def test_what_was_looked_for_is_named(locator: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", "root")
    for name in ("root/mine/train.en", "dir/half.en", "dir/empty.en", "dir/empty.de", "dir/empty.tsv"):
        _write(name, "")
    _write("dir/header.csv", "en,de\n")
    with pytest.raises(DataError, match=sentence):
        _load(locator)


def test_a_folder_is_not_a_file() -> None:
    Path("a.en").mkdir()
    for suffix in ("", ".gz", ".zst"):
        with pytest.raises(DataError, match="Cannot open"):
            open_binary(f"a.en{suffix}")


# --- tables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "pairs"),
    [
        ("t.tsv", "\ufeffen\tde\r\na\tb\r\n", [("a", "b")]),
        ("t.tsv", "de\tid\ten\nb\t1\ta\n", [("a", "b")]),
        ("t.tsv.gz", 'a "q\tb\nc\u2028\td\n', [('a "q', "b"), ("c\u2028", "d")]),
        ("t.csv", 'id,en,de\r\n1,"a, ""x""\r\ny",b\r\n\r\n2,c,d\r\n', [('a, "x" y', "b"), ("c", "d")]),
        *(
            ("t.tsv", f"{header}\nb\ta\n", [("a", "b")])
            for header in (
                "deu\teng",
                "ger\tENG",
                "German\tEnglish",
                "de_DE\ten_US",
                "DE\tEN",
                "de-AT\ten",
                "target\tsource",
                "tgt\tsrc",
                "target_text\tsource_text",
                "de\tEnglish",
                "translation\tsource",
            )
        ),
        ("t.tsv", "en_US\tde\ten\nx\tb\ta\n", [("a", "b")]),
        ("t.tsv", "is\tist\n", [("is", "ist")]),
        ("t.tsv", 'en\tde\n"a ""b""."\tx\nd\t"""y"""\n', [('a "b".', "x"), ("d", '"y"')]),
        ("t.tsv", '"en"\t"de"\n"a\nb"\t"x\ny"\n', [("a b", "x y")]),
        ("t.tsv", '"en"\t"de"\n"a"\t"x"\n', [("a", "x")]),
        ("t.tsv", 'en\tde\n"a"\t"x"\nb\ty\n', [('"a"', '"x"'), ("b", "y")]),
        ("t.tsv", '"a"\t"x"\nb\ty\n', [('"a"', '"x"'), ("b", "y")]),
        ("t.tsv", 'en\tde\n"a"\tx\n"b ""c"""\ty\n', [('"a"', "x"), ('b "c"', "y")]),
        ("t.tsv", 'en\tde\n"a, b.\t"x, y.\n"c!" d.\t"z!", w.\n', [('"a, b.', '"x, y.'), ('"c!" d.', '"z!", w.')]),
        ("t.csv", "id,target,source\n1,b,a\n", [("a", "b")]),
        ("t.csv", '\ufeffEnglish;German\r\n"a; ""x""";"b, y"\r\n', [('a; "x"', "b, y")]),
        ("t.csv.xz", "en,de\na\0,b\u2028\n", [("a\0", "b\u2028")]),
        (
            "t.jsonl",
            '{"en":"a","de":"b"}\n\n{"translation":{"de":"d\\nx","en":"\\ud83d\\ude00"}}\n',
            [("a", "b"), ("😀", "d x")],
        ),
        ("t.jsonl.zst", '{"en":"a","de":"b","id":1}', [("a", "b")]),
        ("t.jsonl", '{"deu":"b","eng":"a"}\n{"German":"d","en_US":"c"}\n', [("a", "b"), ("c", "d")]),
        ("t.jsonl", '{"id":1,"translation":"b","source":"a"}\n', [("a", "b")]),
    ],
)
def test_tables(name: str, content: str, pairs: list[tuple[str, str]]) -> None:
    _write(name, content)
    assert _load(name) == pairs


def test_one_column_is_found_by_any_name_of_its_language() -> None:
    _write("t.tsv", "Deutsch\ten_GB\nb\ta\n")
    assert [*read_column(Path("t.tsv"), "en")] == ["a"]
    assert [*read_column(Path("t.tsv"), "de")] == ["b"]
    with pytest.raises(DataError, match=r"^t\.tsv, line 1: needs the column fr, but has Deutsch, en_GB\.$"):
        read_column(Path("t.tsv"), "fr")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.tsv", "a\tb\nc\n", "line 2: the number of columns is 1, but 2 in the first line"),
        ("t.tsv", "a\n", "line 1: needs the columns en and de, but has a"),
        ("t.tsv", "1\ta\t2\tb\n", "but has 1, a, 2, b; a table without a header has source and target alone"),
        ("t.tsv", "en\tfr\na\tb\n", "line 1: needs the columns en and de, but has en, fr"),
        ("t.tsv", "fr\tja\na\tb\n", "line 1: needs the columns en and de, but has fr, ja"),
        ("t.tsv", "fra\teng\na\tb\n", "line 1: needs the columns en and de, but has fra, eng"),
        ("t.tsv", "French\tGerman\na\tb\n", "line 1: needs the columns en and de, but has French, German"),
        ("t.tsv", "German\tKauderwelsch\na\tb\n", "line 1: needs the columns en and de, but has German, Kauder"),
        ("t.tsv", "source\tZiel\na\tb\n", "line 1: needs the columns en and de, but has source, Ziel"),
        (
            "t.tsv",
            "en\tEnglish\tde\na\tb\tc\n",
            "the columns en and English could both be en: rename or remove all but",
        ),
        ("t.csv", "en,de-AT,de-CH\n", "the columns de-AT and de-CH could both be de"),
        ("t.csv", "en,en,de\n", "the columns en and en could both be en"),
        ("t.jsonl", '{"en":"a","de":"b","deu":"b"}', "the columns de and deu could both be de"),
        ("t.csv", "a,b\n", "line 1: needs the columns en and de, but has a, b"),
        ("t.csv", 'en,de\n"a\nb",c\nd,e,f\n', "line 4: the number of columns is 3, but 2"),
        ("t.csv", 'en,de\na,b\nc,"d\ne,f\n', "line 3: not valid CSV"),
        ("t.csv", b"en,de\na,\xff\n", "line 2: not valid UTF-8"),
        ("t.jsonl", '{"en":"a","de":"b"}\n{"en":"a"}\n', 'line 2: needs {"en": text, "de": text}, but is'),
        ("t.jsonl", '\n{"en":"a","de"\n', "line 2: not valid JSON (Expecting ':' delimiter"),
        ("t.jsonl", "[" * 100_000, "line 1: not valid JSON"),
        ("t.jsonl", "[1]\n", "line 1: needs"),
        ("t.jsonl", '{"en":"a","de":null}\n', 'line 1: needs {"en": text, "de": text}, but is'),
        ("t.jsonl", '{"en":"a\\ud83d","de":"b"}\n', "line 1: not valid JSON ('utf-8' codec can't encode"),
        ("t.parquet", "no parquet", "is not a valid Parquet file"),
    ],
)
def test_bad_rows_are_named(name: str, content: str | bytes, sentence: str) -> None:
    _write(name, content)
    with pytest.raises(DataError) as caught:
        _load(name)
    assert str(caught.value).startswith(name)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "columns",
    [
        {"en": [source for source, _ in PAIRS], "de": [target for _, target in PAIRS], "id": [1, 2, 3]},
        {"translation": [{"de": target, "en": source} for source, target in PAIRS]},
        {
            "translation": ["by hand"] * 3,
            "en": pa.array([s for s, _ in PAIRS]).dictionary_encode(),
            "de": [t for _, t in PAIRS],
        },
    ],
)
def test_parquet(columns: dict[str, object]) -> None:
    pq.write_table(pa.table(columns), "t.parquet", row_group_size=2)
    assert _load("t.parquet") == PAIRS


def test_bad_parquet_rows_are_named() -> None:
    """Also those that are not among the first 10,000, which are read at a time."""
    pq.write_table(pa.table({"en": ["a"] * 10_005, "de": [*["b"] * 10_003, None, "b"]}), "t.parquet")
    with pytest.raises(DataError, match=r"^t\.parquet, row 10004: every side must be text, but one is None\.$"):
        _load("t.parquet")
    with pytest.raises(DataError, match=r"^t\.parquet has no column fr, only en, de\.$"):
        _load("t.parquet", "en", "fr")
    wrong = pa.array([*[b"a"] * 10_000, b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"en": wrong, "de": ["x"] * 10_001}), "t.parquet")
    with pytest.raises(DataError, match=r"^t\.parquet, rows 10001 to 10001: not valid UTF-8"):
        _load("t.parquet")


# --- the carrier ------------------------------------------------------------------------------------------------


def test_the_sample_goes_both_ways() -> None:
    there, back = _load("sample:valid"), _load("sample:valid", "de", "en")
    assert there == [(source, target) for target, source in back]
    assert len(there) == 500
    with pytest.raises(DataError, match="en and de, not in de and fr"):
        _load("sample:test", "de", "fr")


def test_a_corpus_is_two_sequences() -> None:
    _write_sides()
    corpus = load_corpus("dir/train", source="en", target="de")
    assert (len(corpus), corpus.name) == (3, "dir/train")
    assert list(corpus.target) == [target for _, target in PAIRS]
    assert (corpus.source[1], corpus.source[-1], corpus.source[:2]) == ("two  ", "", ["one", "two  "])
    with pytest.raises(IndexError):
        corpus.source[3]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [("[:2]", PAIRS[:2]), ("[1:]", PAIRS[1:]), ("[1:2]", PAIRS[1:2]), ("[0:99]", PAIRS), ("[:]", PAIRS)],
)
@pytest.mark.parametrize("place", ["dir/train", "dir/train.{de,en}", "f.jsonl", "sample:valid"])
def test_rows_after_a_locator_take_these_pairs_alone(place: str, rows: str, expected: list[tuple[str, str]]) -> None:
    _write_sides()
    _write("f.jsonl", "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in PAIRS))
    corpus = load_corpus(place + rows, source="en", target="de")
    if place == "sample:valid":
        start, stop = (int(end) if end else None for end in rows[1:-1].split(":"))
        expected = _load(place)[start:stop]
    assert list(corpus.pairs()) == expected
    assert (corpus.name, len(corpus)) == (place + rows, len(expected))


def test_rows_beyond_the_end_are_no_corpus() -> None:
    _write_sides()
    with pytest.raises(DataError, match=r"The corpus dir/train\[7:\] is empty: it has no line of dir/train\."):
        load_corpus("dir/train[7:]", source="en", target="de")


def test_gold_links_follow_the_rows() -> None:
    links = gold_links("sample:valid", source="en")
    assert links is not None
    assert gold_links("sample:valid[5:9]", source="en") == links[5:9]
    corpus = load_corpus("sample:valid[5:9]", source="en", target="de")
    words = load_links("gold", corpus, source="en")
    found = [frozenset(map(tuple, pair.tolist())) for pair in words.of_rows(range(len(corpus)))]
    assert found == [pair.possible for pair in links[5:9]]


def test_the_fingerprint_is_that_of_the_text() -> None:
    def fingerprint(*pairs: tuple[str, str], name: str = "f.jsonl") -> str:
        _write(name, "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in pairs))
        return load_corpus(name, source="en", target="de").fingerprint

    _write_sides(".gz")
    same = fingerprint(*PAIRS)
    assert load_corpus("dir/train", source="en", target="de").fingerprint == same
    assert fingerprint(*PAIRS, name="g.jsonl.xz") == same
    others = [
        PAIRS[:2],
        PAIRS[::-1],
        [(b, a) for a, b in PAIRS],
        [*PAIRS[:2], ("", "leer ")],
        [("one", "eins\0"), *PAIRS[1:]],
    ]
    assert len({same, *(fingerprint(*other) for other in others)}) == 6


def test_a_large_corpus_moves_to_a_file_that_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
    monkeypatch.setattr(arrays, "IN_MEMORY", 50_000)
    pairs = [(f"{number} {'x' * 20}", f"{number}") for number in range(30_000)]
    _write("big.tsv", "".join(f"{source}\t{target}\n" for source, target in pairs))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    corpus = load_corpus("big.tsv", source="en", target="de")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held + pa.total_allocated_bytes() - before < 200_000, "the text is mapped, not held"
    assert not list((folder / "temporary").iterdir())
    assert list(corpus.pairs()) == pairs
    monkeypatch.setattr("tempfile.tempdir", str(folder / "absent"))
    with pytest.raises(DataError, match=r"Cannot keep a large corpus in .*absent .*: set TMPDIR to another folder\."):
        load_corpus("big.tsv", source="en", target="de")


def test_one_file_for_both_sides_is_refused() -> None:
    _write("s.en", "one\n")
    Path("s.de").symlink_to("s.en")
    for locator in ("s", "s.{en,de}"):
        with pytest.raises(DataError, match=r"names the same file for both sides \(s\.en\)"):
            _load(locator)
    _write("s.tsv", "en\tde\na\tb\n")
    for locator in ("s", "s.tsv"):
        with pytest.raises(DataError, match="source and target are both en: set two languages"):
            load_corpus(locator, source="en", target="en")
    _write("simple.en", "1\n")
    assert list(load_corpus("{s,simple}.en", source="en", target="en").pairs()) == [("one", "1")]


def test_sgml_is_refused_with_the_name_of_the_test_sets() -> None:
    _write("t-src.en.sgm", "<seg>a</seg>")
    _write("t-ref.de.sgm.gz", "<seg>b</seg>")
    for locator in ("t-{src.en,ref.de}.sgm", "t-{src.en.sgm,ref.de.sgm}"):
        with pytest.raises(
            DataError, match=r"t-src\.en\.sgm is SGML: name the test set itself, as in sacrebleu:wmt14/en-de"
        ):
            _load(locator)


def test_addresses_of_the_web_are_no_names() -> None:
    with pytest.raises(
        UsageError, match=r"or write hf:owner/name:SPLIT, such as :train for one on the Hugging Face hub"
    ):
        _load("https://huggingface.co/datasets/owner/some-name")
    with pytest.raises(UsageError, match=r"or write hf:owner/name for one on the Hugging Face hub"):
        find_model(Path("https://huggingface.co/owner/some-name"))
    with pytest.raises(UsageError, match="download the file, and name that"):
        _load("http://example.org/train.tsv")
