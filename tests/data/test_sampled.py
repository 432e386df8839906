"""Sampled segmentations are those that the seed of each shard determines, whatever the number of processes."""

import random
from pathlib import Path

import pytest

from nmt.data import encoded, sampled
from nmt.data.encoded import EncodedCorpus, encode_corpus
from nmt.data.locators import load_corpus
from nmt.data.sampled import SampledCorpus
from nmt.recipe import FiltersConfig
from nmt.text.subwords import Subwords

LINES = 300


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(
        ["abab baba abba", "ab ba aa bb", "cab bac"] * 5, kind="unigram", size=14, byte_fallback=False
    )


@pytest.fixture
def corpus(tmp_path: Path, subwords: Subwords, monkeypatch: pytest.MonkeyPatch) -> EncodedCorpus:
    """A corpus of which the filters remove some rows, read in small batches."""
    monkeypatch.setattr(encoded, "BATCH", 16)
    draw = random.Random(1)
    for side in ("en", "de"):
        lines = [" ".join(draw.choices(["abab", "baba", "cab", "bb"], k=draw.randint(0, 5))) for _ in range(LINES)]
        (tmp_path / f"text.{side}").write_text("".join(f"{line}\n" for line in lines))
    text = load_corpus(f"{tmp_path}/text", source="en", target="de")
    return encode_corpus(text, subwords, subwords, FiltersConfig(), tmp_path / "cache")


def ids(
    corpus: EncodedCorpus, subwords: Subwords, *, seed: int, processes: int = 1
) -> list[tuple[list[int], list[int]]]:
    pairs = SampledCorpus(corpus, subwords, subwords, alpha=0.3, seed=seed, processes=processes)
    rows = pairs[range(len(pairs))]
    assert pairs.source_lengths.tolist() == [len(source) for source, _ in rows]
    assert pairs.target_lengths.tolist() == [len(target) for _, target in rows]
    return rows


def test_one_shard_is_drawn_by_two_generators(corpus: EncodedCorpus, subwords: Subwords) -> None:
    assert len(corpus) < LINES
    sides = [list(subwords.sample(corpus.lines(side, 0, len(corpus)), 0.3, seed=8 + side)) for side in (0, 1)]
    assert ids(corpus, subwords, seed=8) == list(zip(*sides, strict=True))
    assert ids(corpus, subwords, seed=8) != ids(corpus, subwords, seed=10)


def test_the_ids_do_not_depend_on_the_number_of_processes(
    corpus: EncodedCorpus, subwords: Subwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampled, "SHARD", 50)
    monkeypatch.setattr(sampled, "_FEW", 0)
    alone = ids(corpus, subwords, seed=3)
    assert ids(corpus, subwords, seed=3, processes=3) == alone
    assert [subwords.decode(source) for source, _ in alone] == list(corpus.lines(0, 0, len(corpus)))
    monkeypatch.setattr(sampled, "SHARD", 100)
    assert ids(corpus, subwords, seed=3)[:50] == alone[:50]
    assert ids(corpus, subwords, seed=3)[50:100] != alone[50:100], "each shard has its own seed"
