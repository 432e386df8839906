"""Files of every kind, valid ones changed at random and others made up: a result or one clear message, never anything else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.alignment.link_files import read_gold
from nmt.bundle.folder import Bundle
from nmt.cli.streams import open_input
from nmt.data.lines import lines_of
from nmt.data.locators import load_corpus
from nmt.decoding.translator import Translator
from nmt.decoding.unknown import read_lexicon
from nmt.errors import NmtError
from nmt.recipe import Recipe, load_recipe
from tests.robustness import tiny

ResultT = TypeVar("ResultT")


def sentence_or(result: Callable[[], ResultT]) -> ResultT | None:
    """What a call gives; None if it refuses in one clear message. Anything else fails the test."""
    try:
        return result()
    except OSError:  # of a name that no file can have; the command says it in one message
        return None
    except NmtError as error:
        message = str(error)
        assert message.isprintable()
        assert 10 < len(message) < 2100
        return None


@st.composite
def changed(draw: st.DrawFn, content: bytes) -> bytes:
    """Some bytes of a file replaced, left out, put in or doubled, or the rest cut off."""
    changing = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(len(changing) - 1, 0)))
        end = start + draw(st.integers(0, 9))
        match draw(st.sampled_from(["replace", "leave out", "put in", "double", "cut"])):
            case "replace":
                changing[start:end] = draw(st.binary(min_size=end - start, max_size=end - start))
            case "leave out":
                del changing[start:end]
            case "put in":
                changing[start:start] = draw(st.binary(max_size=9))
            case "double":
                changing[start:start] = changing[start:end] * draw(st.integers(1, 50))
            case "cut":
                del changing[start:]
    return bytes(changing)


# --- recipes ----------------------------------------------------------------------------------------------------

RECIPE = """\
name: mine
data: {source: en, target: de, train: "data/train.{en,de}", valid: x, filters: {max_ratio: 9.0}}
subwords: {kind: bpe, size: 500, sampling: 0.1}
model:
  embedding: 64
  tie: none
  attention: {score: {kind: additive, size: 32}, coverage: true, window: {kind: local-p, half_width: 3}, heads: 2}
  decoder: {order: update-then-attend, readout: {kind: tanh, size: 64}, bridge: mean}
  dropout: 0.3
training:
  optimizer: {kind: adam, betas: [0.9, 0.98], rate: 1e-3}
  schedule: {kind: cosine, warmup: 10}
  guided_alignment: {links: hmm, weight: 0.5}
  scheduled_sampling: linear
decoding: {beam_size: 4, max_ratio: 1.5}
"""
WORDS = st.sampled_from(
    [
        *"name data model training decoding subwords base kind attention score size seed dot none local-p".split(),
        *(": ", "- ", "? ", "{", "}", "[", "]", ", ", "\n", "  ", "'", '"', "|\n", ">\n", "#", "---\n", "...\n"),
        *("&a ", "*a", "!!int ", "!!python/name:os.system ", "<<: ", "%YAML 1.1\n"),
        *("null", "true", "1e999", ".nan", "-1", "9" * 30),
        *('"\\ud800"', '"\\UFFFFFFFF"', "\u2028", "\x85", "\ufeff", "\x1b"),
    ]
)


@tiny.tries(15)
@given(content=changed(RECIPE.encode()) | st.lists(WORDS, max_size=30).map("".join).map(str.encode))
@example(content=b"? {a: b}\n: c")
@example(content=b"a: !!int [1]")
@example(content=b"a: !!timestamp x")
@example(content=b"!!map [x]")
@example(content=b'"\\UFFFFFFFF"')
@example(content=b"base: " + b"x" * 1000)
@example(content=b'base: "\\0"')
def test_recipes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(content)
    found = sentence_or(lambda: load_recipe(path))
    assert found is None or isinstance(found, Recipe)


# --- model folders ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder_in(tmp_path_factory.mktemp("model"))


def load_and_use(folder: Path) -> object:
    """Everything a stranger's model is made to do."""
    bundle = Bundle.load(folder)
    translator = Translator(
        [bundle], decoding=bundle.recipe.decoding.model_copy(update={"max_ratio": 0.1, "beam_size": 2})
    )
    assert [len(found.text.splitlines()) < 2 for found in translator.translate(["a cat", "", "xé\0"])] == [True] * 3
    [scored] = translator.score([("a cat", "the dog")])
    return scored.score


@pytest.fixture
def copied(model: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copied"
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["recipe.yaml", "source.model", "weights.safetensors"])
@tiny.tries(8)
@given(data=st.data())
def test_model_folders(model: Path, copied: Path, name: str, data: st.DataObject) -> None:
    whole = (model / name).read_bytes()
    head = (
        len(whole) if name == "recipe.yaml" else data.draw(st.sampled_from([2500, len(whole)]))
    )  # headers matter more
    (copied / name).write_bytes(data.draw(changed(whole[:head])) + whole[head:])
    sentence_or(lambda: load_and_use(copied))


# --- links, tables, lexicons, compressed text -------------------------------------------------------------------


def texts_of(*words: str) -> st.SearchStrategy[bytes]:
    """Some of these words after each other."""
    return st.lists(st.sampled_from(words), max_size=20).map(lambda chosen: "".join(chosen).encode())


def parquet() -> bytes:
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"en": ["a cat", "b"], "de": ["eine Katze", ""]}), stream)
    return stream.getvalue()


def both_sides(path: Path) -> None:
    """Read a corpus, whose sides are lines."""
    corpus = load_corpus(str(path), source="en", target="de")
    assert not any("\n" in side for pair in corpus.pairs() for side in pair) or path.suffix == ".parquet"


def one_side(path: Path) -> None:
    """Read a text, as `nmt translate` does and as a side of a corpus."""
    path.with_name("text.de").write_bytes(b"x\n" * 30)
    sentence_or(lambda: load_corpus(f"{path.parent}/text", source="en", target="de"))
    with open_input(path) as stream:
        list(lines_of(stream, str(path), "replace"))


LINKS = texts_of(
    *"0123456789-p \n\tSP.\0\u2028", "0-0", "1p2", "1 1 1 S\n", "2 3 4 P 0.5\n", "9" * 5000, "\u0663-\u0663"
)
CELLS = texts_of(
    *("en", "de", "translation", "null", "1", "\r\n", "en\tde\n", "en,de\n", "a,b\n", '"a\n', "1e999", "[" * 3000),
    *('{"en": "a", "de": "b"}\n', '{"translation": {"en": "a", "de": "b"}}\n', '{"en": 1, "de": "b"}\n'),
    *('"\\ud800"', "9" * 5000, *'\t,"\n\r{}[]:\0\\\ufeff\u2028\x85é'),
)
TMX = b"""<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>a
<ph>x<sub>y</sub></ph></seg></tuv><tuv lang="DE-at"><seg>b</seg></tuv></tu></body></tmx>"""
XLIFF = b"""<xliff srcLang="en" trgLang="de"><file source-language="en"><unit><segment><source>a</source><target>b</target>
</segment></unit><trans-unit><source>c</source><target>d</target></trans-unit></file></xliff>"""
PO = b"""msgid ""\nmsgstr "Language: de\\n"\n#, fuzzy\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\nmsgstr[1] "\\"d\\x41"\n"""
LINES = b"the dog\n" * 30
READERS: dict[str, tuple[st.SearchStrategy[bytes], Callable[[Path], object]]] = {
    "gold.links": (LINKS, read_gold),
    "table.tsv": (CELLS, both_sides),
    "table.csv": (CELLS, both_sides),
    "table.jsonl": (CELLS | st.just(b'{"en": "a", "de": "b"}\n' + b"[" * 100_000), both_sides),
    "table.tsv.gz": (CELLS.map(gzip.compress), both_sides),
    "table.parquet": (changed(parquet()), both_sides),
    "text.tmx": (changed(TMX), both_sides),
    "text.xlf": (changed(XLIFF), both_sides),
    "text.po": (changed(PO), both_sides),
    "lexicon.tsv": (tiny.raw | texts_of("a\tb\n", "a", "\t", "\n", "\r", " ", "\0"), read_lexicon),
    "text.en.gz": (changed(gzip.compress(LINES)), one_side),
    "text.en.bz2": (changed(bz2.compress(LINES)), one_side),
    "text.en.xz": (changed(lzma.compress(LINES)), one_side),
    "text.en.zst": (changed(bytes(pyarrow.compress(LINES, "zstd"))), one_side),
}


@pytest.mark.parametrize("name", READERS)
@tiny.tries(8)
@given(data=st.data())
def test_files_of_data(tmp_path: Path, name: str, data: st.DataObject) -> None:
    strategy, read = READERS[name]
    (tmp_path / name).write_bytes(data.draw(strategy | st.binary(max_size=40)))
    sentence_or(lambda: read(tmp_path / name))


@tiny.tries(8)
@given(
    locator=st.text(max_size=30)
    | texts_of(*"{},/:.", "sample:", "hf", "en", "de", ".tsv", "\0", "x" * 300).map(bytes.decode)
)
@example(locator="x" * 300 + "/\0")
def test_locators(locator: str) -> None:
    if not locator.startswith("hf:"):  # which would ask the network
        sentence_or(lambda: load_corpus(locator, source="en", target="de"))
