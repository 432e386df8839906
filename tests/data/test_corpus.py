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

from nmt.bundle.places import find_model
from nmt.data import arrays
from nmt.data.lines import lines_of, open_binary, read_lines
from nmt.data.locators import load_corpus
from nmt.data.tables import read_column
from nmt.errors import DataError, UsageError

PAIRS = [("one", "eins"), ("two  ", "\tzwei"), ("", "leer")]
OBJECTS = "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in PAIRS)
# No line of it ends anywhere but at "\n".
AWKWARD = ["tab\ttab", "😀 e\u0301", "שלום", "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei", "cr\rmid", "  "]


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


def _write_sides(first: str = "dir/train.en", second: str = "dir/train.de") -> None:
    for side, name in enumerate((first, second)):
        _write(name, "".join(pair[side] + "\n" for pair in PAIRS))


def _load(locator: str, source: str = "en", target: str = "de") -> list[tuple[str, str]]:
    return list(load_corpus(locator, source=source, target=target))


def _refusal(locator: str, source: str = "en", target: str = "de") -> str:
    """The message that refuses a locator."""
    with pytest.raises(DataError) as caught:
        _load(locator, source, target)
    assert str(caught.value).isprintable()
    return str(caught.value)


# --- two files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_are_found_and_decompressed(suffix: str) -> None:
    _write_sides(f"dir/train.en{suffix}", f"dir/train.de{suffix}")
    for locator in (f"dir/train.{{en,de}}{suffix}", "dir/train.{en,de}", "dir/train", "./dir/train"):
        assert _load(locator) == PAIRS
    assert _load(str(Path("dir/train").absolute()), "de", "en") == [(target, source) for source, target in PAIRS]


@pytest.mark.parametrize(
    ("first", "second", "locators", "languages"),
    [
        ("t.en.xz", "t.de.gz", ["t", "t.{en,de}"], "en de"),
        ("t.src", "t.trg", ["t.{src,trg}", "t.{src, trg}"], "en de"),
        ("t.src", "t.tgt", ["t.{src,tgt}", "t.{tgt,src}"], "en de"),
        ("t.en", "t.de", ["t.{de,en}"], "en de"),
        ("en/t.gz", "de/t.gz", ["{en,de}/t"], "en de"),
        ("t.en.tok", "t.de-AT", ["t.{en.tok,de-AT}", "t.{de-AT,en.tok}"], "en de"),
        ("t.zh-CN", "t.zh-TW", ["t.{zh-CN,zh-TW}", "t.{zh-TW,zh-CN}"], "zh-CN zh-TW"),
        ("t.eng", "t.deu", ["t.{eng,deu}", "t.{deu,eng}"], "en de"),
        ("t.eng_Latn", "t.deu_Latn", ["t.{eng_Latn,deu_Latn}", "t.{deu_Latn,eng_Latn}"], "en de"),
        ("t.english", "t.german", ["t.{english,german}", "t.{german,english}"], "en de"),
        ("multi30k/train.en", "multi30k/train.de", ["multi30k/train"], "en de"),  # before the name of the catalogue
    ],
)
def test_braces_name_the_sides(first: str, second: str, locators: list[str], languages: str) -> None:
    _write_sides(first, second)
    for locator in locators:
        assert _load(locator, *languages.split()) == PAIRS


@pytest.mark.parametrize("names", ["en,de", "fr,en", "fr.tok,de.tok", "ja-JP,fr", "clean,ref", "fr,x"])
def test_braces_that_name_no_or_another_language_are_refused(names: str) -> None:
    first, second = names.split(",")
    for languages in (("fr", "it"), ("it", "ja")):
        problem = _refusal(f"dir/train.{{{names}}}", *languages)
        assert f"must name the languages {' and '.join(languages)}, by codes or English names" in problem
        assert problem.endswith(f"but name {first} and {second}.")


def test_copying_may_be_an_exercise() -> None:
    for name in ("t.src", "t.copy"):
        _write(name, "a b\n" * 20)
    assert len(_load("t", "src", "copy")) == 20


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_awkward_characters_stay_and_shift_nothing(end: str) -> None:
    _write("odd.en", "\ufeff" + "".join(line + end for line in AWKWARD))
    _write("odd.de.gz", "".join(f"{number}{end}" for number, _ in enumerate(AWKWARD)))
    assert _load("odd") == [(line, str(number)) for number, line in enumerate(AWKWARD)]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("one\n\ntwo", ["one", "", "two"]),
        ("\ufeff", []),
        ("\n", [""]),
        ("\ufeffa\n\ufeffb\n", ["a", "\ufeffb"]),
        ("\ufeffa\u0a0ab\r\n\n\u010a".encode("utf-16-le"), ["a\u0a0ab", "", "\u010a"]),
        ("\ufeffa\u0a0ab\r\n\n\u010a\n".encode("utf-16-be"), ["a\u0a0ab", "", "\u010a"]),
    ],
)
def test_a_last_line_needs_no_end_and_a_mark_is_one_at_the_beginning(content: str | bytes, lines: list[str]) -> None:
    _write("a.en", content)
    assert list(read_lines("a.en")) == lines


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.en", b"PK\x03\x04\x14\0", "a.en is not text, but a zip file, such as a Word document: `pandoc"),
        ("a.en", b"%PDF-1.7\n%\xe2", "a.en is not text, but a PDF document: `pdftotext` writes"),
        ("a.en", gzip.compress(b"a\n"), "a.en is not text, but compressed: its name must end in .gz"),
        ("a.en", "a\nb\n".encode("utf-16-le"), "a.en, line 1: text has no NUL bytes. `iconv -f UTF-16LE -t UTF-8`"),
        ("a.en", "a\nb\n".encode("utf-16-be"), "a.en, line 1: text has no NUL bytes. `iconv -f UTF-16BE -t UTF-8`"),
        ("a.en.gz", b"a\nb\0\n", "a.en.gz, line 2: text has no NUL bytes."),
        ("a.en", "\ufeffab".encode("utf-16-le")[:-1], "a.en is damaged"),
        ("a.en", b"\xd6l", "(byte 0xD6); `iconv -f WINDOWS-1252 -t UTF-8` converts it if it is Windows-1252."),
        ("a.srt", b"1\n", "a.srt is no file with one sentence per line: `sub2po` and `po2txt` of translate-toolkit"),
        ("a.en.HTML", b"a\n", "a.en.HTML is no file with one sentence per line: `pandoc"),
        ("a.docx.gz", b"a\n", "`pandoc"),
        ("a.pdf", b"a\n", "`pdftotext`"),
        ("a.sgm", b"a\n", "name the test set itself, as in sacrebleu:wmt14/en-de"),
        ("a.xlsx", b"a\n", "save it as text"),
        ("a.po", b"a\n", "`nmt corpora export`"),
    ],
)
def test_what_is_no_text_is_refused_with_its_converter(name: str, content: bytes, problem: str) -> None:
    _write(name, content)
    with pytest.raises(DataError) as caught:
        list(read_lines(name))
    assert problem in str(caught.value)


def test_invalid_text_can_be_replaced_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    content = io.BytesIO(b"\xffa\nb\n\xffc\n")
    assert list(lines_of(content, "a.en", "replace")) == ["\ufffda", "b", "\ufffdc"]
    [warning] = caplog.messages
    assert warning.startswith("a.en, line 1: not valid UTF-8 (byte 0xFF), which is read as U+FFFD; `iconv")


def test_a_line_is_given_before_the_next_is_written() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as stream, open(writer, "wb", buffering=0) as sink:
        lines = lines_of(stream, "pipe")
        for line in ("first", "second", "third"):
            sink.write(line.encode() + b"\n")
            assert next(lines) == line


@pytest.mark.parametrize("before", [0, 1, 300_000])
def test_invalid_utf8_names_file_and_line(before: int) -> None:
    _write("bad.de.gz", b"fine\n" * before + b"bad \xff here\nfine\n")
    _write("bad.en", "x\n" * (before + 2))
    assert f"bad.de.gz, line {before + 1}: not valid UTF-8 (byte 0xFF); " in _refusal("bad")
    _write("bad.de.gz", b"fine\n" * before + b"cut \xe2\x82")
    assert f"line {before + 1}: not valid UTF-8" in _refusal("bad")


@pytest.mark.parametrize("suffix", list(COMPRESS)[1:])
def test_damaged_files_are_named(suffix: str) -> None:
    _write("d.de", "x\n")
    for content in (COMPRESS[suffix](os.urandom(3000).hex().encode())[:-200], b"no such format"):
        Path(f"d.en{suffix}").write_bytes(content)
        assert _refusal("d").startswith(f"d.en{suffix} is damaged and cannot be read to its end: ")


@pytest.mark.parametrize(
    ("locator", "problem"),
    [
        ("dir/nope", "There is no file dir/nope.en and no file dir/nope.de (also with .gz "),
        ("dir/nope", ", and no such name in the catalogue; `nmt corpora` lists what it has."),
        ("dir/half", "There is no file dir/half.de (also "),
        ("dir/half.en", "dir/half.en is one file; name two as in dir/train.{en,de}"),
        ("dir/half.{en}", "The braces in dir/half.{en} must hold two names"),
        ("multi30k/trian", "multi30k has no split 'trian'; did you mean 'train'?"),
        ("multi30/train", "did you mean 'multi30k/train'?"),
        ("./multi30", "There is no file ./multi30.en"),
        ("mine/train", "There is no file root/mine/train.de (also"),
        ("dir/empty", "The corpus dir/empty is empty: it has no line."),
        ("dir/empty.tsv", "The corpus dir/empty.tsv is empty"),
        ("dir/three[7:]", "The corpus dir/three[7:] is empty: it has no line of dir/three."),
        ("dir/uneven", "dir/uneven.en has 3 lines, but dir/uneven.de has 1: line n "),
        ("nope.parquet", "There is no file nope.parquet"),
        ("sample:nope", "no split 'nope', only train, valid, test"),
        ("dir/same", "dir/same names the same file for both sides (dir/same.en)"),
        ("dir", "dir is a folder: name its text, as dir/empty.{en,de}."),
        ("split", "split is a folder: name its text, as split/train.{en,de}."),
        ("split/all", "split/all is a folder: name its text, as split/all/web.tsv."),
        ("copy", "copy has the same text on both sides: name one for each language."),
    ],
)
def test_what_was_looked_for_is_named(locator: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CORPORA", "root")
    _write_sides("dir/three.en", "dir/three.de")
    empty = ("root/mine/train.en", "dir/half.en", "dir/empty.en", "dir/empty.de", "dir/empty.tsv", "dir/same.en")
    folders = ("split/dev.en.gz", "split/dev.de", "split/train.en", "split/train.de.gz", "split/all/web.tsv")
    for name in (*empty, *folders):
        _write(name, "")
    for name, content in {"dir/uneven.en": "a\nb\nc\n", "dir/uneven.de": "a\n"}.items():
        _write(name, content)
    Path("dir/same.de").symlink_to("same.en")
    for language in ("en", "de"):
        _write(f"copy.{language}", "one\n" * 10)
    assert problem in _refusal(locator)


def test_one_language_for_both_sides_needs_two_files() -> None:
    _write("s.tsv", "en\tde\na\tb\n")
    for locator in ("s", "s.tsv"):
        assert "source and target are both en: set two languages" in _refusal(locator, "en", "en")
    _write_sides("s.en", "simple.en")
    assert _load("{s,simple}.en", "en", "en") == PAIRS


def test_a_folder_is_not_a_file() -> None:
    Path("a.en").mkdir()
    for suffix in ("", ".gz", ".zst"):
        with pytest.raises(DataError, match="Cannot open"):
            open_binary(f"a.en{suffix}")


def test_addresses_of_the_web_are_no_names() -> None:
    with pytest.raises(UsageError, match="write hf:owner/name:SPLIT, such as :train for one on the Hugging Face hub"):
        _load("https://huggingface.co/datasets/owner/some-name")
    with pytest.raises(UsageError, match="write hf:owner/name for one on the Hugging Face hub"):
        find_model(Path("https://huggingface.co/owner/some-name"))
    with pytest.raises(UsageError, match="download the file, and name that"):
        _load("http://example.org/train.tsv")


# --- tables -----------------------------------------------------------------------------------------------------

HEADERS = """deu\teng|ger\tENG|German\tEnglish|de_DE\ten_US|deu_Latn\teng_Latn|DE\tEN|de-AT\ten|target\tsource|tgt\tsrc
target_text\tsource_text|de\tEnglish|translation\tsource""".replace("\n", "|").split("|")


@pytest.mark.parametrize(
    ("name", "content", "pairs"),
    [
        ("t.tsv", "\ufeffen\tde\r\na\tb\r\n", [("a", "b")]),
        ("t.tsv.gz", 'a "q\tb\nc\u2028\td\n', [('a "q', "b"), ("c\u2028", "d")]),
        *(("t.tsv", f"{header}\nb\ta\n", [("a", "b")]) for header in HEADERS),
        ("t.tsv", "en_US\tde\ten\nx\tb\ta\n", [("a", "b")]),
        ("t.tsv", "is\tist\n", [("is", "ist")]),
        ("t.tsv", 'en\tde\n"a ""b""."\tx\nd\t"""y"""\n', [('a "b".', "x"), ("d", '"y"')]),
        ("t.tsv", '"en"\t"de"\n"a\nb"\t"x\ny"\n', [("a b", "x y")]),
        ("t.tsv", 'en\tde\n"a"\t"x"\nb\ty\n', [('"a"', '"x"'), ("b", "y")]),
        ("t.tsv", '"a"\t"x"\nb\ty\n', [('"a"', '"x"'), ("b", "y")]),
        ("t.tsv", 'en\tde\n"a, b.\t"x.\n"c!"\t"z!", ""w"".\n', [('"a, b.', '"x.'), ('"c!"', '"z!", ""w"".')]),
        ("t.csv", 'id,en,de\r\n1,"a, ""x""\r\ny",b\r\n\r\n2,c,d\r\n', [('a, "x" y', "b"), ("c", "d")]),
        ("t.csv", '\ufeffEnglish;German\r\n"a; ""x""";"b, y"\r\n', [('a; "x"', "b, y")]),
        ("t.csv.xz", "en,de\na\x01,b\u2028\n", [("a\x01", "b\u2028")]),
        ("t.tsv", "en\tde\r\nÖl\tb\r\n".encode("utf-16"), [("Öl", "b")]),  # "Unicode text" of Excel
        ("t.jsonl", '\n{"translation":{"de":"d\\nx","en":"\\ud83d\\ude00"}}\n', [("😀", "d x")]),
        ("t.jsonl.zst", '{"deu":"b","eng":"a"}\n{"id":1,"translation":"d","source":"c"}', [("a", "b"), ("c", "d")]),
    ],
)
def test_tables(name: str, content: str | bytes, pairs: list[tuple[str, str]]) -> None:
    _write(name, content)
    assert _load(name) == pairs


def test_one_column_is_found_by_any_name_of_its_language() -> None:
    _write("t.tsv", "Deutsch\ten_GB\nb\ta\n")
    assert [*read_column(Path("t.tsv"), "en"), *read_column(Path("t.tsv"), "de")] == ["a", "b"]
    with pytest.raises(DataError, match=r"^t\.tsv, line 1: needs the column fr, but has Deutsch, en_GB\.$"):
        read_column(Path("t.tsv"), "fr")


NEEDS = "line 1: needs the columns en and de, but has "


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.tsv", 'en\tde\n"a\nb"\tc\n', "line 2: the number of columns is 1, but 2 in the first line; save text"),
        ("t.tsv", "a\n", f"{NEEDS}a"),
        ("t.tsv", "1\ta\t2\tb\n", f"{NEEDS}1, a, 2, b; a table without a header has source and target alone"),
        ("t.tsv", "en\tfr\na\tb\n", f"{NEEDS}en, fr"),
        ("t.tsv", "German\tKauderwelsch\na\tb\n", f"{NEEDS}German, Kauderwelsch"),
        ("t.tsv", "source\tZiel\na\tb\n", f"{NEEDS}source, Ziel"),
        ("t.csv", "a,b\n", f"{NEEDS}a, b."),
        ("t.tsv", "en\tEnglish\tde\n", "the columns en and English could both be en: rename or remove all but"),
        ("t.csv", "en,de-AT,de-CH\n", "the columns de-AT and de-CH could both be de"),
        ("t.jsonl", '{"en":"a","de":"b","deu":"b"}', "the columns de and deu could both be de"),
        ("t.csv", 'en,de\n"a\nb",c\nd,e,f\n', "line 4: the number of columns is 3, but 2"),
        ("t.csv", 'en,de\na,b\nc,"d\ne,f\n', "line 3: not valid CSV"),
        ("t.csv", b"en,de\na,\xff\n", "line 2: not valid UTF-8"),
        ("t.jsonl", '{"en":"a","de":"b"}\n{"en":"a"}\n', 'line 2: needs {"en": text, "de": text}, but is'),
        ("t.jsonl", '{"en":"a","de":null}\n', 'line 1: needs {"en": text, "de": text}, but is'),
        ("t.jsonl", "[1]\n", "line 1: needs"),
        ("t.jsonl", '\n{"en":"a","de"\n', "line 2: not valid JSON (Expecting ':' delimiter"),
        ("t.jsonl", "[" * 100_000, "line 1: not valid JSON"),
        ("t.jsonl", '{"en":"a\\ud83d","de":"b"}\n', "line 1: not valid JSON ('utf-8' codec can't encode"),
        ("t.parquet", "no parquet", "is not a valid Parquet file"),
    ],
)
def test_bad_rows_are_named(name: str, content: str | bytes, problem: str) -> None:
    _write(name, content)
    refusal = _refusal(name)
    assert refusal.startswith(name)
    assert problem in refusal
    assert refusal.endswith(".")


def test_parquet() -> None:
    english, german = map(list, zip(*PAIRS, strict=True))
    nested = [{"de": target, "en": source} for source, target in PAIRS]
    coded = {"translation": ["by hand"] * 3, "en": pa.array(english).dictionary_encode(), "de": german}
    for columns in ({"en": english, "de": german, "id": [1, 2, 3]}, {"translation": nested}, coded):
        pq.write_table(pa.table(columns), "t.parquet", row_group_size=2)
        assert _load("t.parquet") == PAIRS


def test_bad_parquet_rows_are_named() -> None:
    """Also those that are not among the first 10,000, which are read at a time."""
    pq.write_table(pa.table({"en": ["a"] * 10_005, "de": [*["b"] * 10_003, None, "b"]}), "t.parquet")
    assert _refusal("t.parquet") == "t.parquet, row 10004: every side must be text, but one is None."
    assert _refusal("t.parquet", "en", "fr") == "t.parquet has no column fr, only en, de."
    wrong = pa.array([*[b"a"] * 10_000, b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"en": wrong, "de": ["x"] * 10_001}), "t.parquet")
    assert _refusal("t.parquet").startswith("t.parquet, rows 10001 to 10001: not valid UTF-8")


# --- the carrier ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["dir/train", "dir/train.{de,en}", "f.jsonl", "sample:valid"])
def test_a_corpus_is_two_sequences_of_which_rows_can_be_taken(place: str) -> None:
    _write_sides()
    _write("f.jsonl", OBJECTS)
    pairs = _load(place)
    for rows, expected in {"[:2]": pairs[:2], "[1:]": pairs[1:], "[1:2]": pairs[1:2], "[0:999]": pairs}.items():
        corpus = load_corpus(place + rows, source="en", target="de")
        assert list(corpus) == expected
        assert (corpus.name, len(corpus)) == (place + rows, len(expected))
        assert (corpus.source[0], corpus.target[-1]) == (expected[0][0], expected[-1][1])
        assert corpus.source[:2] == [source for source, _ in expected[:2]]
    with pytest.raises(IndexError):
        corpus.source[len(corpus)]


@pytest.mark.parametrize(("pairs", "kept_back"), [(30_000, 1000), (155, 15), (15, 1)])
def test_pairs_kept_back_are_spread_over_the_text(pairs: int, kept_back: int) -> None:
    _write("t.tsv", "".join(f"{number}\tpair {number}\n" for number in range(pairs)))
    held_out, rest = ([int(source) for source, _ in _load(f"t.tsv[{part}]")] for part in ("held-out", "rest"))
    assert len(held_out) == kept_back
    assert sorted([*held_out, *rest]) == list(range(pairs))
    assert rest == sorted(rest)
    tenths = {10 * number // pairs for number in held_out}
    assert len(tenths) == min(10, kept_back)
    assert _load("t.tsv[:10][held-out]") == _load("t.tsv[9:10]")
    assert "too few lines to keep some back for validation" in _refusal("t.tsv[:9][held-out]")


def test_the_fingerprint_is_that_of_the_text() -> None:
    def fingerprint(*pairs: tuple[str, str], name: str = "f.jsonl") -> str:
        _write(name, "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in pairs))
        return load_corpus(name, source="en", target="de").fingerprint

    _write_sides("dir/train.en.gz")
    same = fingerprint(*PAIRS)
    assert load_corpus("dir/train", source="en", target="de").fingerprint == same
    assert fingerprint(*PAIRS, name="g.jsonl.xz") == same
    swapped = [(b, a) for a, b in PAIRS]
    texts = [PAIRS[:2], PAIRS[::-1], swapped, [*PAIRS[:2], ("", "leer ")], [("one", "eins\0"), *PAIRS[1:]]]
    assert len({same, *(fingerprint(*text) for text in texts)}) == 6


def test_a_large_corpus_moves_to_a_temporary_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert list(corpus) == pairs
    monkeypatch.setattr("tempfile.tempdir", str(folder / "absent"))
    with pytest.raises(DataError, match=r"Cannot keep a large corpus in .*absent .*: set TMPDIR to another folder\."):
        load_corpus("big.tsv", source="en", target="de")
