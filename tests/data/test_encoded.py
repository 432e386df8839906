"""Encoded text: the same ids whatever the cache did, mapped from disk, never a stale or a damaged file."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.data import encoded as encoding
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import EncodedCorpus, IdTable, encode_corpus
from nmt.data.filters import FilterReport
from nmt.data.locators import load_corpus
from nmt.errors import DataError
from nmt.recipe import FiltersConfig
from nmt.text.subwords import Subwords

PAIRS = [
    ("a small house", "ein kleines Haus"),
    ("", "nichts"),
    ("the house is small", "das Haus ist klein"),
    ("very " * 30 + "long", "lang"),
    ("a small house", "ein kleines Haus"),
    ("grün 日", "😀 \u2028 x"),
]
FILTERS = FiltersConfig(max_length=40, max_ratio=9.0, duplicates=False)
KEPT = [0, 2, 5]


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    lines = [text for pair in PAIRS for text in pair]
    return Subwords.train(lines, kind="char", size=290, byte_fallback=True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of two lines, so that a few lines are several batches, one of which keeps nothing."""
    monkeypatch.setattr(encoding, "BATCH", 2)


def _corpus(folder: Path, pairs: list[tuple[str, str]] = PAIRS) -> ParallelCorpus:
    for side, name in enumerate(("en", "de")):
        (folder / f"text.{name}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    return load_corpus(str(folder / "text"), source="en", target="de")


def _rows(corpus: EncodedCorpus) -> list[tuple[list[int], list[int]]]:
    return corpus[range(len(corpus))]


def _files(cache: Path) -> list[Path]:
    return sorted((cache / "encoded").iterdir())


@pytest.mark.usefixtures("small")
def test_the_pairs_that_pass_are_encoded(tmp_path: Path, subwords: Subwords) -> None:
    encoded = encode_corpus(_corpus(tmp_path), subwords, subwords, FILTERS, tmp_path / "cache")
    expected = [tuple(subwords.encode(text) for text in PAIRS[row]) for row in KEPT]
    assert _rows(encoded) == expected
    assert encoded.report == FilterReport({"kept": 3, "empty": 1, "too_long": 1, "duplicate": 1}, FILTERS)
    assert len(encoded) == 3
    for side, lengths in enumerate((encoded.source_lengths, encoded.target_lengths)):
        assert lengths[:].dtype == np.int32
        assert lengths[:].tolist() == [len(pair[side]) for pair in expected]
        assert lengths[[2, 0]].tolist() == [len(expected[2][side]), len(expected[0][side])]
    assert encoded.tokens == tuple(sum(len(pair[side]) for pair in expected) for side in (0, 1))
    assert encoded[[2, 0]] == [expected[2], expected[0]]
    rows: Any = np.array([1])
    assert encoded[rows] == [expected[1]]
    assert encoded.rows.tolist() == KEPT
    assert list(encoded.lines(1, 1, 3)) == [PAIRS[2][1], PAIRS[5][1]]
    for row in (3, -1):
        with pytest.raises(IndexError):
            encoded[[row]]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("empty", [[0, 1], [2, 3], [4, 5]])
def test_a_batch_of_which_nothing_is_kept(tmp_path: Path, subwords: Subwords, empty: list[int]) -> None:
    pairs = [("", "") if row in empty else (f"a {row}", f"b {row}") for row in range(6)]
    for _ in range(2):  # made, then found
        encoded = encode_corpus(_corpus(tmp_path, pairs), subwords, subwords, FILTERS, tmp_path / "cache")
        assert _rows(encoded) == [(subwords.encode(a), subwords.encode(b)) for a, b in pairs if a]
    everything = encode_corpus(_corpus(tmp_path, pairs), subwords, subwords, None, tmp_path / "cache")
    assert _rows(everything) == [(subwords.encode(a), subwords.encode(b)) for a, b in pairs]


def test_the_cache_is_hit_by_the_same_text(tmp_path: Path, subwords: Subwords, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    first = encode_corpus(_corpus(tmp_path), subwords, subwords, FILTERS, cache)
    (file,) = _files(cache)
    (tmp_path / "moved").mkdir()
    moved = _corpus(tmp_path / "moved")
    same = Subwords.from_bytes(subwords.serialized)
    monkeypatch.setattr(Subwords, "encode_batch", lambda *_, **__: pytest.fail("encoded although it was cached"))
    again = encode_corpus(moved, same, same, FILTERS, cache)
    assert _files(cache) == [file]
    assert (_rows(again), again.report) == (_rows(first), first.report)


def test_whatever_decides_the_ids_misses_the_cache(tmp_path: Path, subwords: Subwords) -> None:
    cache = tmp_path / "cache"
    other = Subwords.train([pair[1] for pair in PAIRS], kind="char", size=280, byte_fallback=True)
    longer = FiltersConfig(max_length=41, duplicates=False)
    changed = [*PAIRS[:2], ("the house is SMALL", PAIRS[2][1]), *PAIRS[3:]]
    for source, target, filters in (
        (subwords, subwords, FILTERS),
        (subwords, subwords, None),
        (subwords, subwords, longer),
        (subwords, other, FILTERS),
        (other, subwords, FILTERS),
    ):
        encode_corpus(_corpus(tmp_path), source, target, filters, cache)
    encoded = encode_corpus(_corpus(tmp_path, changed), subwords, subwords, FILTERS, cache)
    assert len(_files(cache)) == 6
    assert _rows(encoded)[1][0] == subwords.encode("the house is SMALL")


@pytest.mark.usefixtures("small")
def test_rules_on_text(tmp_path: Path, subwords: Subwords, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = _corpus(tmp_path, [*PAIRS, ("a copy", "a copy"), ("fine", "хорошо"), ("12", "1 2")])
    rules: dict[str, Any] = {"copies": False, "scripts": True, "min_letters": 0.1, "max_word_length": 15}
    settings = [FILTERS, *(FILTERS.model_copy(update={key: value}) for key, value in rules.items())]
    sizes = [len(encode_corpus(corpus, subwords, subwords, one, tmp_path / "cache")) for one in settings]
    assert sizes == [6, 5, 5, 5, 6]
    together = FILTERS.model_copy(update=rules)
    first = encode_corpus(corpus, subwords, subwords, together, tmp_path / "cache")
    assert first.rows.tolist() == KEPT
    assert str(first.report).endswith("1 duplicate, 1 copy, 1 with less than 10 % letters, 1 in another script")
    monkeypatch.setattr(Subwords, "encode_batch", lambda *_, **__: pytest.fail("encoded although it was cached"))
    again = encode_corpus(corpus, subwords, subwords, together, tmp_path / "cache")
    assert (again.report, _rows(again)) == (first.report, _rows(first))


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "header"])
def test_a_damaged_file_is_made_again(
    tmp_path: Path, subwords: Subwords, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    corpus, cache = _corpus(tmp_path), tmp_path / "cache"
    first = _rows(encode_corpus(corpus, subwords, subwords, FILTERS, cache))
    (file,) = _files(cache)
    good = file.read_bytes()
    bad = {"cut": good[: len(good) // 2], "empty": b"", "other": b"no ids", "header": good.replace(b"row", b"raw")}
    file.unlink()  # a new file, as after a crash: the old one is still mapped
    file.write_bytes(bad[damage])
    assert _rows(encode_corpus(corpus, subwords, subwords, FILTERS, cache)) == first
    assert f"{file} is damaged" in caplog.text
    assert file.read_bytes() == good


def test_without_a_writable_cache(tmp_path: Path, subwords: Subwords, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    encoded = encode_corpus(_corpus(tmp_path), subwords, subwords, FILTERS, tmp_path / "cache")
    assert "will be encoded again next time" in caplog.text
    assert _rows(encoded)[2] == (subwords.encode(PAIRS[5][0]), subwords.encode(PAIRS[5][1]))


def _count(counts: list[int], batches: Iterable[IdTable]) -> Iterator[IdTable]:
    for batch in batches:
        counts.append(batch.total)
        yield batch


@pytest.mark.usefixtures("small")
def test_several_processes(tmp_path: Path, subwords: Subwords, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("a house " * (row % 7), f"ein Haus {row % 60}") for row in range(100)]  # some empty, some twice
    corpus, contents, encoders = _corpus(tmp_path, pairs), [], tmp_path / "encoders"
    encode_batch = Subwords.encode_batch
    encoders.mkdir()

    def watched(self: Subwords, *args: Any, **options: Any) -> list[list[int]]:
        (encoders / str(os.getpid())).touch()
        return encode_batch(self, *args, **options)

    monkeypatch.setattr(Subwords, "encode_batch", watched)
    for cores in (1, 3):
        counts: list[int] = []
        monkeypatch.setattr(encoding, "usable_cores", lambda cores=cores: cores)
        watch = partial(_count, counts)
        encoded = encode_corpus(corpus, subwords, subwords, FILTERS, tmp_path / f"{cores}", watch)
        assert counts == [2] * 50, "the progress counts every pair"
        [file] = _files(tmp_path / f"{cores}")
        contents.append((file.name, file.read_bytes()))
        assert len(encoded) == 57
    assert contents[0] == contents[1]
    assert str(os.getpid()) in {path.name for path in encoders.iterdir()}
    assert len(list(encoders.iterdir())) > 2


def test_a_large_vocabulary(tmp_path: Path, subwords: Subwords, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _corpus(tmp_path)
    small = encode_corpus(text, subwords, subwords, FILTERS, tmp_path / "small")
    monkeypatch.setattr(Subwords, "__len__", lambda _: 2**16 + 1)
    large = encode_corpus(text, subwords, subwords, FILTERS, tmp_path / "large")
    assert _rows(small) == _rows(large)
    assert [corpus.source.values.dtype.itemsize for corpus in (small, large)] == [2, 4]


def test_nothing_left_is_an_error_with_the_reasons(tmp_path: Path, subwords: Subwords) -> None:
    corpus = _corpus(tmp_path, [("", "x"), ("y" * 50, "z" * 50)])
    with pytest.raises(DataError, match=r"No pair of .*text passes .*kept 0 of 2 pairs; dropped 1 empty, 1 .*relax"):
        encode_corpus(corpus, subwords, subwords, FILTERS, tmp_path / "cache")
